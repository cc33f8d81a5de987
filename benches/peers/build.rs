//! Writes the peers' versions from Cargo.lock, which are printed above every table.
#![allow(missing_docs, reason = "a build script")]

use std::path::Path;
use std::{env, fs};

const PEERS: [&str; 6] = ["sublet", "vk-mem", "gpu-allocator", "gpu-alloc", "gpu-descriptor", "ash"];
/// The VMA version in vk-mem 0.5.0.
const VMA: (&str, &str, &str) = ("vk-mem", "0.5.0", "VMA 3.3.0");

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(&lock).unwrap_or_default();
    let value = |line: &str| line.split('"').nth(1).unwrap_or("unknown").to_owned();
    let mut versions = Vec::new();
    for package in text.split("[[package]]") {
        let field = |name: &str| package.lines().find(|line| line.starts_with(name)).map(value);
        let (Some(name), Some(version)) = (field("name = "), field("version = ")) else {
            continue;
        };
        if PEERS.contains(&name.as_str()) {
            let inner = if (name.as_str(), version.as_str()) == (VMA.0, VMA.1) { VMA.2 } else { "" };
            let inner = if inner.is_empty() { String::new() } else { format!(" ({inner})") };
            versions.push((name, format!("{version}{inner}")));
        }
    }
    // The workspace's stand-in for gpu-allocator has the name and version of the original.
    versions.dedup();
    if let Some(out) = env::var_os("OUT_DIR") {
        let written = fs::write(Path::new(&out).join("versions.rs"), format!("&{versions:?}"));
        assert!(written.is_ok(), "the versions could not be written");
    }
}
