//! Checks the documentation of public items. Each needs a sentence. Public types with methods that are not obvious, and
//! public traits, also need a compiled example. Errors and plain records need none. No example is an escaped string.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files whose public items the crate does not export.
const PRIVATE: &[&str] = &[
    "src/blocks",
    // Used by other packages of this workspace, through a hidden module.
    "src/private.rs",
    "src/record/bytes.rs",
    "crates/report/src/chrome.rs",
];

/// Records and errors without methods that keep their examples, because these show how to use them.
const TEACHING: &[&str] = &[
    "AllocationCreateFlags",
    "AllocationError",
    "BlockSizes",
    "CompleteMoveError",
    "DebugSettings",
    "DefragmentationInfo",
    "FreeError",
    "HeapBudget",
    "Leak",
    "Tracking",
];

/// Types whose methods are obvious.
const OBVIOUS: &[&str] = &["Granted", "TimelineId", "VulkanFunctions"];

/// Public methods that belong to a sequence of calls that the signature does not show, as `file: method`.
const SEQUENCES: &[&str] = &[
    "src/allocator/alias.rs: create_aliasing_buffer",
    "src/allocator/allocate.rs: allocate_memory",
    "src/allocator/allocate.rs: allocate_memory_for_buffer",
    "src/allocator/allocate.rs: allocate_memory_pages",
    "src/allocator/bind.rs: bind_buffer_memory",
    "src/allocator/create.rs: create_buffer",
    "src/allocator/create.rs: create_image",
    "src/allocator/create_info.rs: from_raw",
    "src/allocator/debug.rs: check_corruption",
    "src/allocator/dedicated.rs: allocate_dedicated_memory",
    "src/allocator/defragment/mod.rs: begin_defragmentation",
    "src/allocator/defragment/moves.rs: complete",
    "src/allocator/defragment/moves.rs: create_buffer",
    "src/allocator/defragment/moves.rs: free",
    "src/allocator/empty_blocks.rs: set_empty_blocks_kept",
    "src/allocator/external.rs: memory_fd",
    "src/allocator/external.rs: win32_handle",
    "src/allocator/find.rs: find_memory_type_index",
    "src/allocator/fit.rs: would_fit",
    "src/allocator/copy.rs: copy_to_allocation",
    "src/allocator/map.rs: flush_many",
    "src/allocator/map.rs: into_raw",
    "src/allocator/memory_map.rs: memory_map",
    "src/allocator/life.rs: destroy",
    "src/allocator/maintain.rs: maintain",
    "src/allocator/mod.rs: trim",
    "src/allocator/pools.rs: create_pool",
    "src/allocator/priority.rs: set_allocation_priority",
    "src/allocator/recording/mod.rs: start_recording",
    "src/allocator/reserve.rs: reserve",
    "src/allocator/retire/resources.rs: drain",
    "src/allocator/retire/timelines.rs: poll_timelines",
    "src/allocator/attach.rs: attach_to_memory_type",
    "src/allocator/statistics.rs: heap_budgets",
    "crates/descriptors/src/sets/persistent.rs: allocate_many",
    "crates/descriptors/src/sets/persistent.rs: retire",
    "crates/descriptors/src/sets/persistent.rs: set",
    "crates/descriptors/src/transient/allocate.rs: allocate_variable",
    "crates/descriptors/src/transient/create_info.rs: from_create_info",
    "crates/descriptors/src/transient/recycle.rs: collect",
    "crates/engines/src/tlsf/at.rs: allocate_at",
    "crates/engines/src/tlsf/mod.rs: exact",
    "src/retire/clock/frames.rs: begin_frame",
    "src/retire/clock/mod.rs: poll",
    "src/retire/clock/mod.rs: submit",
    "src/retire/queue.rs: collect",
    "src/trace/environment.rs: start_from_environment",
    "src/trace/replay/simulated.rs: create_info",
    "src/upload/arena/allocate.rs: wait_for_space",
    "src/upload/arena/allocate.rs: write_with",
    "src/virtual_block/mod.rs: walk",
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

/// Returns kind and name of the public item that a line starts to define.
fn public_item(line: &str) -> Option<(&'static str, &str)> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const fn ").map_or(rest, |name| name);
    let kinds =
        ["fn ", "unsafe fn ", "const unsafe fn ", "struct ", "enum ", "trait ", "type ", "const ", "static "];
    let (kind, name) = match kinds.iter().find_map(|kind| Some((*kind, rest.strip_prefix(kind)?))) {
        Some(found) => found,
        None if line.trim_start().starts_with("pub const fn ") => ("fn ", rest),
        None => return None,
    };
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (!name.starts_with("Sealed")).then_some((kind, &name[..end]))
}

/// Returns the type of an `impl` block without a trait.
fn inherent_impl(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if line.contains(" for ") || !line.ends_with('{') {
        return None;
    }
    if rest.starts_with('<') {
        rest = &rest[rest.find("> ")? + 1..];
    }
    let rest = rest.trim_start();
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

struct Item {
    place: String,
    file: String,
    kind: &'static str,
    name: String,
    sentence: bool,
    example: bool,
}

/// Returns the public items of a file. Collects the types with public methods and the error types.
fn items(path: &Path, with_methods: &mut BTreeSet<String>, errors: &mut BTreeSet<String>) -> Vec<Item> {
    let text = fs::read_to_string(path).expect("it is text");
    let file = path.to_string_lossy().replace('\\', "/");
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut of = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("#[cfg(test)]")
            && lines.get(at + 1).is_some_and(|next| next.starts_with("mod tests {"))
        {
            break;
        }
        let error = match line.strip_prefix("sublet_engines::errors! { ") {
            Some(table) => Some(table.strip_prefix("struct ").unwrap_or(table)),
            None => line.strip_prefix("impl").and_then(|rest| Some(rest.split_once("Error for ")?.1)),
        };
        let name = error.and_then(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        errors.extend(name.map(str::to_owned));
        if line.starts_with("impl") {
            of = inherent_impl(line);
        }
        let Some((kind, name)) = public_item(line) else { continue };
        let above = lines[..at].iter().rev().take_while(|line| {
            let line = line.trim_start();
            line.starts_with("//")
                || line.starts_with("#[")
                || line.starts_with(')')
                || line.ends_with(")]")
                || line.starts_with("reason =")
                || line.starts_with("clippy::")
        });
        let (mut example, mut sentence, mut hidden) = (false, false, false);
        for doc in above {
            example |= doc.contains("```");
            sentence |= doc.trim_start().strip_prefix("/// ").is_some_and(|text| !text.trim().is_empty());
            hidden |= doc.contains("#[doc(hidden)]") || doc.contains("#[test]");
        }
        if hidden {
            continue;
        }
        if kind.ends_with("fn ") {
            with_methods.extend(of.filter(|_| line.starts_with(' ')).map(str::to_owned));
        }
        let place = format!("{file}:{}: {}", at + 1, line.trim());
        found.push(Item { place, file: file.clone(), kind, name: name.to_owned(), sentence, example });
    }
    found
}

fn shown() -> (Vec<Item>, BTreeSet<String>, BTreeSet<String>) {
    let mut files = Vec::new();
    rust_files(Path::new("src"), &mut files);
    for package in ["crates/descriptors/src", "crates/engines/src"] {
        rust_files(Path::new(package), &mut files);
    }
    let (mut with_methods, mut errors) = (BTreeSet::new(), BTreeSet::new());
    let mut all = Vec::new();
    for path in &files {
        let name = path.to_string_lossy().replace('\\', "/");
        if !PRIVATE.iter().any(|private| path.starts_with(private)) && !name.contains("/tests") {
            all.extend(items(path, &mut with_methods, &mut errors));
        }
    }
    (all, with_methods, errors)
}

#[test]
fn types_with_methods_and_named_items_have_an_example() {
    let (all, with_methods, errors) = shown();
    let wants = |item: &Item| match item.kind {
        "trait " => true,
        "struct " | "enum " => {
            TEACHING.contains(&item.name.as_str())
                || with_methods.contains(&item.name)
                    && !errors.contains(&item.name)
                    && !OBVIOUS.contains(&item.name.as_str())
        }
        kind if kind.ends_with("fn ") => SEQUENCES.contains(&&*format!("{}: {}", item.file, item.name)),
        _ => false,
    };
    let missing: Vec<&str> =
        all.iter().filter(|item| wants(item) && !item.example).map(|item| &*item.place).collect();
    assert!(missing.is_empty(), "{} public items have no example:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn every_name_in_the_lists_is_a_public_item() {
    let (all, ..) = shown();
    for name in TEACHING.iter().chain(OBVIOUS) {
        assert!(all.iter().any(|item| item.name == *name), "there is no public {name}");
    }
    for place in SEQUENCES {
        assert!(
            all.iter().any(|item| format!("{}: {}", item.file, item.name) == *place),
            "there is no {place}"
        );
    }
}

#[test]
fn every_public_item_has_a_sentence() {
    let (all, ..) = shown();
    let missing: Vec<&str> = all.iter().filter(|item| !item.sentence).map(|item| &*item.place).collect();
    assert!(missing.is_empty(), "{} public items have no sentence:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn no_example_is_an_escaped_string() {
    let mut files = Vec::new();
    rust_files(Path::new("src"), &mut files);
    let mut bad = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("it is text");
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("#[doc = ") && line.contains("```") {
                bad.push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    assert!(bad.is_empty(), "examples are written as lines of `///`:\n{}", bad.join("\n"));
}

#[test]
fn the_scan_finds_items() {
    assert_eq!(public_item("    pub unsafe fn free_memory(&self)"), Some(("unsafe fn ", "free_memory")));
    assert_eq!(public_item("pub struct Pool {"), Some(("struct ", "Pool")));
    assert_eq!(public_item("    pub const fn size(&self) -> u64 {"), Some(("fn ", "size")));
    assert_eq!(public_item("pub(crate) fn allocate("), None);
    assert_eq!(public_item("    pub name: u32,"), None);
    assert_eq!(public_item("pub use pool::Pool;"), None);
    assert_eq!(inherent_impl("impl Allocator {"), Some("Allocator"));
    assert_eq!(inherent_impl("impl Drop for Pool {"), None);
}

/// crates.io and docs.rs show a page for each package, and the feature that an item needs.
#[test]
fn packages_have_a_page_and_their_features_are_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.to_owned()];
    // The published package has no `crates` folder.
    if let Ok(entries) = fs::read_dir(root.join("crates")) {
        folders.extend(entries.map(|entry| entry.expect("it is readable").path()));
    }
    for folder in folders {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("it is text");
        assert!(manifest.contains("\nreadme = \"README.md\"\n"), "{}", folder.display());
        let page = fs::read_to_string(folder.join("README.md")).expect("it is text");
        // Pages of the registry do not exist before the packages are published. It resolves the other links.
        assert!(!page.contains("crates.io/crates/sublet"), "{}", folder.display());
        for link in page.split("](").skip(1).filter_map(|link| link.split([')', '#']).next()) {
            let is_there = link.starts_with("http") || folder.join(link).exists();
            assert!(is_there || !root.join("crates").exists(), "{}: {link}", folder.display());
        }
        let Ok(library) = fs::read_to_string(folder.join("src/lib.rs")) else { continue };
        if manifest.contains("\n[features]\n") {
            let is_shown = manifest
                .contains("\nall-features = true\nrustdoc-args = [\"--cfg\", \"docsrs\"]\n")
                && library.contains("#![cfg_attr(docsrs, feature(doc_cfg))]\n");
            assert!(is_shown, "{}", folder.display());
        }
    }
}
