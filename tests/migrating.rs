//! The tables of the chapter on migrating are complete. They list every function of VMA and every method of the
//! stand-ins, which have all methods of their originals. A documentation search for a name of another allocator finds
//! the counterpart.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the first two columns of all tables in a section.
fn rows(heading: &str) -> Vec<(String, String)> {
    let chapter = read("src/guide/migrating.md");
    let section = chapter.split("\n# ").find(|section| section.starts_with(heading)).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let columns = rows.map(|row| row.split_once(" | ").unwrap());
    columns.map(|(old, new)| (old.to_owned(), new.split(" | ").next().unwrap().to_owned())).collect()
}

/// Returns the names, without paths, in the first columns of all tables in a section.
fn old_names(heading: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (old, _) in rows(heading) {
        names.extend(quoted(&old).map(|name| name.rsplit("::").next().unwrap().to_owned()));
    }
    names
}

/// Returns the files in a folder of the repository, or none if the folder is missing, as in a published package.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Returns the public functions in a folder's files.
fn functions(folder: &str, trait_file: Option<&str>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(folder) {
        let in_trait = trait_file.is_some_and(|name| path.ends_with(name));
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let line = line.trim_start();
            let public = line.strip_prefix("pub ").or(in_trait.then_some(line));
            let name = public.and_then(|line| line.trim_start_matches("unsafe ").strip_prefix("fn "));
            names.extend(name.map(|name| name.split(['(', '<']).next().unwrap().to_owned()));
        }
    }
    names
}

fn first_word(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next().unwrap()
}

/// Returns the type of an `impl` block.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest };
    let owner = rest.split_once(" for ").map_or(rest, |(_, owner)| owner);
    Some(first_word(owner.trim_start()))
}

/// Returns the items in a folder's files, as `Type` or `Type::method`, each with its rustdoc aliases.
fn aliases(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut items: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for path in files(folder).iter().filter(|path| path.extension().is_some_and(|it| it == "rs")) {
        let (mut owner, mut waiting) = (String::new(), BTreeSet::new());
        for line in std::fs::read_to_string(path).unwrap().lines() {
            if let Some(name) = implemented(line) {
                name.clone_into(&mut owner);
            }
            let line = line.trim_start();
            if let Some(alias) = line.strip_prefix("#[doc(alias = \"") {
                waiting.insert(alias.trim_end_matches("\")]").to_owned());
                continue;
            }
            // Flag constants have no `pub`.
            let Some(rest) = line.strip_prefix("pub ").or(line.starts_with("const ").then_some(line)) else {
                continue;
            };
            let rest = rest.trim_start_matches("const ").trim_start_matches("unsafe ");
            let kind =
                ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| rest.strip_prefix(kind));
            let item = if let Some(name) = kind {
                first_word(name).clone_into(&mut owner);
                owner.clone()
            } else {
                format!("{owner}::{}", first_word(rest.trim_start_matches("fn ")))
            };
            items.entry(item).or_default().append(&mut waiting);
        }
        assert!(waiting.is_empty(), "{}: of which item are {waiting:?}?", path.display());
    }
    items
}

/// Returns the last parts of a path: `Type` or `Type::method`.
fn item(path: &str) -> &str {
    let start =
        path.split("::").take_while(|part| !part.starts_with(|letter: char| letter.is_ascii_uppercase()));
    &path[start.map(|module| module.len() + 2).sum()..]
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
    let documented: BTreeSet<String> =
        old_names("VMA's functions").into_iter().filter(|name| name.starts_with("vma")).collect();
    assert_eq!(documented, declared);
}

#[test]
fn the_code_for_vma_names_what_its_header_declares() {
    let chapter = read("src/guide/switching.md");
    let code = chapter.split("```cpp\n").nth(1).unwrap().split("```").next().unwrap();
    let header = read("include/vk_mem_alloc.h");
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let declared: BTreeSet<_> = header.split(|letter| !is_name(letter)).collect();
    let mut used: Vec<_> = code.split(|letter| !is_name(letter)).collect();
    used.retain(|name| name.to_ascii_lowercase().starts_with("vma"));
    assert!(used.len() > 8, "these cannot be all: {used:?}");
    for name in used {
        assert!(declared.contains(name), "{name}");
    }
}

/// The flags that the chapter on switching gives for programs that never flush.
#[test]
fn every_gpu_has_coherent_memory_that_the_host_maps() {
    for profile in sim::profiles::ALL {
        let gpu = sim::Gpu::new(profile);
        // SAFETY: the simulated device outlives the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        for access in
            [AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE, AllocationCreateFlags::HOST_ACCESS_RANDOM]
        {
            let info_of_memory = AllocationCreateInfo {
                flags: access | AllocationCreateFlags::MAPPED,
                required_flags: vk::MemoryPropertyFlags::HOST_COHERENT,
                ..AllocationCreateInfo::new(MemoryUsage::Auto)
            };
            // SAFETY: the create-info is valid, and the device never uses the buffer.
            let (buffer, memory) = unsafe { allocator.create_buffer(&info, &info_of_memory) }.unwrap();
            assert!(memory.mapped_pointer().is_some());
            let types = allocator.memory_properties().memory_types;
            let flags = types[usize::try_from(memory.memory_type_index()).unwrap()].property_flags;
            assert!(flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT), "{}", profile.name);
            // SAFETY: as above.
            unsafe { allocator.destroy_buffer(buffer, memory) }.unwrap();
        }
        gpu.assert_silent();
    }
}

#[test]
fn every_method_of_vk_mem_has_a_row() {
    let mut methods = functions("compat/vk-mem/src", Some("alloc.rs"));
    if methods.is_empty() {
        return;
    }
    assert!(methods.len() > 50, "these cannot be all: {methods:?}");
    // These return Sublet's types and are not part of vk-mem's API. The last two are not public.
    for own in ["as_sublet", "as_sublet_mut", "sublet_info", "named"] {
        methods.remove(own);
    }
    let documented = old_names("vk-mem's methods");
    let missing: Vec<_> = methods.difference(&documented).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
    let gone: Vec<_> = documented.difference(&methods).collect();
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
    let documented = old_names("gpu-allocator's methods");
    let missing: Vec<_> = methods.difference(&documented).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
}

/// In each row, the first Sublet item in the second column is the counterpart of each name in the first column.
#[test]
fn counterparts_are_found_by_their_old_names() {
    let mut own = aliases("src");
    own.extend(aliases("crates/engines/src"));
    let packages = [
        ("sublet_frame::", aliases("crates/frame/src")),
        ("sublet_descriptors::", aliases("crates/descriptors/src")),
    ];
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let mut documented = BTreeSet::new();
    for (old, new) in ["From Direct3D 12", "From Granite", "From NVRHI"].into_iter().flat_map(rows) {
        if new.starts_with("nothing") || quoted(&old).next().is_none() {
            continue;
        }
        let new_name = quoted(&new).next().unwrap();
        let of_package =
            packages.iter().find_map(|(prefix, items)| Some((items, new_name.strip_prefix(prefix)?)));
        let (items, path) = of_package.unwrap_or((&own, new_name));
        let known = match items.get(item(path)) {
            Some(known) => known,
            // A published package contains no other package.
            None if packages[0].1.is_empty() => continue,
            None => panic!("there is no {path}: {new}"),
        };
        for name in quoted(&old) {
            // The search ignores case and underscores.
            let same = plain(path.rsplit("::").next().unwrap()) == plain(name);
            assert!(same || known.contains(name), "{path} is not found as {name}");
            documented.insert(name.to_owned());
        }
    }
    assert!(documented.len() > 90, "the tables are read: {documented:?}");
    // Vulkan's own names need no row.
    let all = own.values().chain(packages.iter().flat_map(|(_, items)| items.values())).flatten();
    let untold: Vec<_> =
        all.filter(|alias| !alias.to_lowercase().starts_with("vk") && !documented.contains(*alias)).collect();
    assert!(untold.is_empty(), "without a row: {untold:?}");
}

#[test]
fn every_row_says_what_to_write_instead() {
    for row in read("src/guide/migrating.md").lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() >= 2 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}
