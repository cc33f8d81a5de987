//! Every public item has a doc example: types, functions, methods and constants. Examples of a trait's methods stand on the
//! trait; fields and variants need none. Rust's own documentation tests run the examples.

use std::fs;
use std::path::{Path, PathBuf};

/// Files whose public items the crate does not show.
const PRIVATE: &[&str] = &[
    "src/metadata/engine.rs",
    "src/blocks",
    // For the C interface.
    "src/private.rs",
    "src/base/append_table.rs",
    "src/base/align.rs",
    "src/base/cast.rs",
    "crates/report/src/chrome.rs",
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Whether a line begins the definition of a public item that wants an example.
fn is_public_item(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else { return false };
    let words = [
        "fn ",
        "const fn ",
        "unsafe fn ",
        "const unsafe fn ",
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "const ",
        "static ",
    ];
    words.iter().any(|word| rest.starts_with(word)) && !rest.starts_with("trait Sealed")
}

/// Lines of public items without an example, as `file:line: text`.
fn without_example(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("it is text");
    let lines: Vec<&str> = text.lines().collect();
    let mut missing = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("#[cfg(test)]")
            && lines.get(at + 1).is_some_and(|next| next.starts_with("mod tests {"))
        {
            break;
        }
        if !is_public_item(line) {
            continue;
        }
        let above = lines[..at].iter().rev();
        let docs = above.take_while(|line| {
            let line = line.trim_start();
            line.starts_with("///")
                || line.starts_with("#[")
                || line.starts_with(')')
                || line.starts_with("//")
                || line.ends_with(")]")
                || line.starts_with("reason =")
                || line.starts_with("clippy::")
        });
        let (mut example, mut hidden) = (false, false);
        for doc in docs {
            example |= doc.contains("```");
            hidden |= doc.contains("#[doc(hidden)]") || doc.contains("#[test]");
        }
        if !example && !hidden {
            missing.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
        }
    }
    missing
}

#[test]
fn every_public_item_has_an_example() {
    let mut files = Vec::new();
    rust_files(Path::new("src"), &mut files);
    rust_files(Path::new("crates/report/src"), &mut files);
    let shown = files.iter().filter(|path| {
        let path = path.to_string_lossy().replace('\\', "/");
        !PRIVATE.iter().any(|private| path.starts_with(private)) && !path.contains("/tests")
    });
    let missing: Vec<String> = shown.flat_map(|path| without_example(path)).collect();
    assert!(missing.is_empty(), "{} public items have no example:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn the_scan_finds_items() {
    assert!(is_public_item("    pub unsafe fn free_memory(&self)"));
    assert!(is_public_item("pub struct Pool {"));
    assert!(!is_public_item("pub(crate) fn allocate("));
    assert!(!is_public_item("    pub name: u32,"));
    assert!(!is_public_item("pub use pool::Pool;"));
}
