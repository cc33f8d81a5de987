//! Reads from the environment which version of VMA's structures the library uses.
#![allow(missing_docs, reason = "a build script")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SUBLET_VMA_3_3");
    println!("cargo::rustc-check-cfg=cfg(sublet_vma_3_3)");
    if std::env::var_os("SUBLET_VMA_3_3").is_some_and(|value| value == "1") {
        println!("cargo::rustc-cfg=sublet_vma_3_3");
    }
}
