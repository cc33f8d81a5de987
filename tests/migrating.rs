//! The tables of the chapter on migrating leave nothing out: every function of VMA's, every method of the stand-ins,
//! which have all of their originals'.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// What the first columns of all tables of a section name, without paths.
fn old_names(heading: &str) -> BTreeSet<String> {
    let chapter = read("src/guide/migrating.md");
    let section = chapter.split("\n# ").find(|section| section.starts_with(heading)).unwrap();
    let mut names = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| ")) {
        let first = row.split('|').nth(1).unwrap();
        // What stands between backticks.
        for name in first.split('`').skip(1).step_by(2) {
            names.insert(name.rsplit("::").next().unwrap().to_owned());
        }
    }
    names
}

/// The public functions of the files in a folder of the repository; none where the folder is not there, as in a
/// package.
fn functions(folder: &str, trait_file: Option<&str>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let in_trait = trait_file.is_some_and(|name| path.ends_with(name));
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim_start();
                let public = line.strip_prefix("pub ").or(in_trait.then_some(line));
                let name = public.and_then(|line| line.trim_start_matches("unsafe ").strip_prefix("fn "));
                names.extend(name.map(|name| name.split(['(', '<']).next().unwrap().to_owned()));
            }
        }
    }
    names
}

#[test]
fn every_function_of_vma_has_a_row() {
    let header = read("include/vk_mem_alloc.h");
    let declared: BTreeSet<String> = header
        .split('(')
        .filter_map(|before| before.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next())
        .filter(|word| word.starts_with("vma"))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared.len(), 76, "the header declares all functions");
    let told: BTreeSet<String> =
        old_names("VMA's functions").into_iter().filter(|name| name.starts_with("vma")).collect();
    assert_eq!(told, declared);
}

#[test]
fn every_method_of_vk_mem_has_a_row() {
    let mut methods = functions("compat/vk-mem/src", Some("alloc.rs"));
    if methods.is_empty() {
        return;
    }
    assert!(methods.len() > 50, "these cannot be all: {methods:?}");
    // They lead to Sublet's own, and are part of no interface of vk-mem's; the last two are not public.
    for own in ["as_sublet", "as_sublet_mut", "sublet_info", "named"] {
        methods.remove(own);
    }
    let told = old_names("vk-mem's methods");
    let missing: Vec<_> = methods.difference(&told).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
    let gone: Vec<_> = told.difference(&methods).collect();
    assert!(gone.is_empty(), "rows of what is not there: {gone:?}");
}

#[test]
fn every_method_of_gpu_allocator_has_a_row() {
    let mut methods = functions("compat/gpu-allocator/src", None);
    if methods.is_empty() {
        return;
    }
    assert!(methods.len() > 20, "these cannot be all: {methods:?}");
    methods.remove("as_sublet");
    let told = old_names("gpu-allocator's methods");
    let missing: Vec<_> = methods.difference(&told).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
}

#[test]
fn every_row_says_what_to_write_instead() {
    for row in read("src/guide/migrating.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() >= 2 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}
