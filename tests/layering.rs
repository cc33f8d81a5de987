//! Rules that the compiler does not check: which module may import which, which files may hold `unsafe`, and how long a
//! file may be.
//!
//! The tests work on the text of the files. It reads paths that start with `crate::` or `super::`, in `use` and
//! elsewhere.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rooms from the ground up. A room imports from lower floors only, and from nobody on its own floor, except on the
/// top one, which is one room with many files.
const FLOORS: &[&[&str]] = &[
    &["base", "operations"],
    &["metadata", "device", "retire"],
    &["vector"],
    &["error", "create_info", "memory_type", "pool"],
    &["record"],
    &["blocks"],
    &["allocator", "allocation", "virtual_block", "defragment", "statistics"],
    &["upload"],
    &["descriptor"],
    &["trace"],
    &["private"],
    &["guide"],
];

/// Floors whose rooms may import from one another.
const OPEN_FLOORS: &[&str] = &["error", "allocator"];

/// The page whose picture of the layers is this list.
const PICTURE: &str = "ARCHITECTURE.md";

/// Rooms that know no Vulkan.
const WITHOUT_VULKAN: &[&str] = &["base", "metadata", "retire", "vector", "virtual_block"];

/// The files that may hold `unsafe`. Each of them does.
const UNSAFE_FILES: &[&str] = &[
    "allocator/alias.rs",
    "allocator/allocate.rs",
    "allocator/bind.rs",
    "allocator/create.rs",
    "allocator/debug.rs",
    "allocator/defragment/moves.rs",
    "allocator/external.rs",
    "allocator/find.rs",
    "allocator/fit.rs",
    "allocator/map.rs",
    "allocator/mod.rs",
    "allocator/pools.rs",
    "allocator/retire/mod.rs",
    "allocator/retire/timelines.rs",
    "allocator/scopes.rs",
    "base/sync/brief_mutex.rs",
    "blocks/device_block.rs",
    "blocks/mapped_pointer.rs",
    "descriptor/binder/bound.rs",
    "descriptor/binder/bytes.rs",
    "descriptor/binder/commit.rs",
    "descriptor/binder/layout.rs",
    "descriptor/binder/mod.rs",
    "descriptor/binder/plan.rs",
    "descriptor/binder/source.rs",
    "descriptor/binder/tests/mod.rs",
    "descriptor/device.rs",
    "descriptor/heap/arrays.rs",
    "descriptor/heap/bindless.rs",
    "descriptor/heap/buffer.rs",
    "descriptor/heap/classic.rs",
    "descriptor/heap/heap.rs",
    "descriptor/heap/host.rs",
    "descriptor/heap/mapped.rs",
    "descriptor/heap/native.rs",
    "descriptor/heap/set.rs",
    "descriptor/heap/sets.rs",
    "descriptor/heap/store.rs",
    "descriptor/layout.rs",
    "descriptor/pool.rs",
    "descriptor/sets/persistent.rs",
    "descriptor/sets/supply.rs",
    "descriptor/sets/tests/buckets.rs",
    "descriptor/transient/allocate.rs",
    "descriptor/transient/create_info.rs",
    "descriptor/transient/recycle.rs",
    "descriptor/transient/tests.rs",
    "device/address.rs",
    "device/callbacks.rs",
    "device/chain.rs",
    "device/descriptors/buffer.rs",
    "device/descriptors/driver.rs",
    "device/descriptors/facts.rs",
    "device/descriptors/heap.rs",
    "device/descriptors/commands.rs",
    "device/descriptors/write.rs",
    "device/driver.rs",
    "device/external.rs",
    "device/functions.rs",
    "device/next.rs",
    "device/timeline.rs",
    "device/win32.rs",
    "record/clock.rs",
    "trace/replay/hands.rs",
    "trace/replay/tests.rs",
    "upload/arena/mod.rs",
    "upload/arena/pages.rs",
    "upload/backing.rs",
    "upload/buffers.rs",
];

/// The same for `crates/capi/src`, whose every door has the C ABI.
const UNSAFE_FILES_OF_CAPI: &[&str] = &[
    "allocator.rs",
    "defragmentation.rs",
    "functions/alias.rs",
    "functions/allocator.rs",
    "functions/bind.rs",
    "functions/corruption.rs",
    "functions/defragmentation.rs",
    "functions/external.rs",
    "functions/map.rs",
    "functions/memory.rs",
    "functions/pool.rs",
    "functions/resource.rs",
    "functions/settings.rs",
    "functions/statistics.rs",
    "functions/strings.rs",
    "functions/virtual_block.rs",
    "functions/volk.rs",
    "guard.rs",
    "held.rs",
    "log.rs",
    "pool.rs",
    "simulated.rs",
    "slab/mod.rs",
    "slab/tests.rs",
    "types.rs",
];

/// The same for `benches/peers/src`, which calls drivers, other allocators and the clock.
const UNSAFE_FILES_OF_PEERS: &[&str] = &[
    "clock.rs",
    "differential/run.rs",
    "differential/sublet_side.rs",
    "differential/tap.rs",
    "differential/vma_side.rs",
    "gpu.rs",
    "heap.rs",
    "peers/driver.rs",
    "peers/gpu_alloc.rs",
    "peers/gpu_allocator.rs",
    "peers/mod.rs",
    "peers/replay/gpu_alloc.rs",
    "peers/replay/gpu_allocator.rs",
    "peers/replay/sublet.rs",
    "peers/replay/vma.rs",
    "peers/rlsf.rs",
    "peers/sets/gpu_descriptor.rs",
    "peers/sets/mod.rs",
    "peers/sets/raw.rs",
    "peers/sets/sublet.rs",
    "peers/sublet.rs",
    "peers/vma/ffi.rs",
    "peers/vma/mod.rs",
    "ring.rs",
];
/// The same for `crates/sim/src`: its doors have the C ABI, and its tests call them.
const UNSAFE_FILES_OF_SIM: &[&str] = &[
    "commands/barriers.rs",
    "commands/buffers.rs",
    "commands/clear.rs",
    "commands/descriptor_buffers.rs",
    "commands/descriptors.rs",
    "commands/dispatch.rs",
    "commands/draw.rs",
    "commands/events.rs",
    "commands/heaps.rs",
    "commands/images/blit.rs",
    "commands/images/buffer.rs",
    "commands/images/copy.rs",
    "commands/images/multisampled.rs",
    "commands/pass.rs",
    "commands/pool.rs",
    "commands/rendering.rs",
    "commands/set.rs",
    "commands/tests/bench.rs",
    "commands/tests/buffers.rs",
    "commands/tests/draws.rs",
    "commands/tests/images.rs",
    "commands/tests/life.rs",
    "commands/tests/passes.rs",
    "commands/tests/rendering.rs",
    "commands/tests/scaled.rs",
    "commands/tests/wrong_images.rs",
    "driver/device.rs",
    "driver/instance.rs",
    "driver/messenger.rs",
    "driver/mod.rs",
    "driver/null/descriptor_buffer.rs",
    "driver/null/descriptors.rs",
    "driver/null/mod.rs",
    "driver/physical.rs",
    "execution/kernel/tests/bench.rs",
    "execution/kernel/tests/images.rs",
    "execution/kernel/tests/mod.rs",
    "execution/kernel/tests/pipelines.rs",
    "execution/queue/mod.rs",
    "execution/queue/run.rs",
    "execution/queue/tests.rs",
    "execution/sparse.rs",
    "execution/sync.rs",
    "facts/chain.rs",
    "facts/extensions.rs",
    "facts/machine.rs",
    "facts/profiles/measure/facts.rs",
    "facts/profiles/measure/mod.rs",
    "facts/profiles/measure/pools.rs",
    "facts/profiles/measure/probe.rs",
    "facts/profiles/measure/tests.rs",
    "gpu/builder.rs",
    "gpu/inspect.rs",
    "gpu/mod.rs",
    "lib.rs",
    "memory/allocate.rs",
    "memory/bind.rs",
    "memory/describe.rs",
    "memory/external.rs",
    "memory/mapping.rs",
    "memory/memory_chain.rs",
    "memory/requirements.rs",
    "memory/resource.rs",
    "objects/descriptors/features.rs",
    "objects/entry.rs",
    "objects/features.rs",
    "objects/host.rs",
    "objects/messages.rs",
    "objects/registry.rs",
    "objects/store.rs",
    "pipelines/descriptor_buffer/get.rs",
    "pipelines/descriptor_buffer/mod.rs",
    "pipelines/descriptor_buffer/tests/misuse.rs",
    "pipelines/descriptor_buffer/tests/mod.rs",
    "pipelines/descriptor_heap/mapping.rs",
    "pipelines/descriptor_heap/mod.rs",
    "pipelines/descriptor_heap/tests/mod.rs",
    "pipelines/descriptor_heap/tests/records.rs",
    "pipelines/descriptor_heap/write.rs",
    "pipelines/descriptors/layout.rs",
    "pipelines/descriptors/limits.rs",
    "pipelines/descriptors/pipeline_layout.rs",
    "pipelines/descriptors/pool.rs",
    "pipelines/descriptors/sampler.rs",
    "pipelines/descriptors/set.rs",
    "pipelines/descriptors/template.rs",
    "pipelines/descriptors/tests/bound.rs",
    "pipelines/descriptors/tests/capabilities.rs",
    "pipelines/descriptors/tests/copies.rs",
    "pipelines/descriptors/tests/kit.rs",
    "pipelines/descriptors/tests/layouts.rs",
    "pipelines/descriptors/tests/objects.rs",
    "pipelines/descriptors/tests/pending.rs",
    "pipelines/descriptors/tests/pools.rs",
    "pipelines/descriptors/tests/templates.rs",
    "pipelines/descriptors/tests/writes.rs",
    "pipelines/descriptors/update.rs",
    "pipelines/descriptors/write.rs",
    "pipelines/passes.rs",
    "pipelines/pipeline/graphics.rs",
    "pipelines/pipeline/mod.rs",
    "tests/allocation.rs",
    "tests/binding.rs",
    "tests/chains.rs",
    "tests/content.rs",
    "tests/faults.rs",
    "tests/mapping.rs",
    "tests/misuse.rs",
    "tests/mod.rs",
    "tests/null.rs",
    "tests/objects.rs",
    "tests/queues.rs",
    "tests/threads.rs",
];
/// The same for `crates/frame/src`: what lists record, and what frames submit. The tracker has none.
const UNSAFE_FILES_OF_FRAME: &[&str] = &[
    "compact/compactor.rs",
    "compact/transfer.rs",
    "device/api.rs",
    "device/core.rs",
    "device/passes.rs",
    "device/uploads.rs",
    "frame/frames.rs",
    "frame/mod.rs",
    "frame/submit.rs",
    "list/bind.rs",
    "list/buffers.rs",
    "list/downsample.rs",
    "list/draw.rs",
    "list/images.rs",
    "list/layout.rs",
    "list/mips.rs",
    "list/mod.rs",
    "list/moving.rs",
    "list/pass.rs",
    "list/rendering.rs",
    "list/state.rs",
    "list/texels.rs",
    "list/upload.rs",
    "resource/body.rs",
    "resource/buffer.rs",
    "resource/image.rs",
    "resource/memory.rs",
    "resource/transient.rs",
    "resource/write.rs",
];
/// The floors of `crates/frame/src`, the lowest first. Files of one floor may import from one another.
const FLOORS_OF_FRAME: &[&[&str]] = &[&["track"], &["device", "resource", "list", "frame"], &["compact"]];
/// Files with more lines of code are to be split. Documentation, blank lines and tests within a file do not count.
const MAX_LINES: usize = 750;
/// Files with more lines of code are named in the test's output.
const MANY_LINES: usize = 400;

struct File {
    /// From `src/`, with slashes.
    path: String,
    /// Without comments and the contents of strings.
    code: String,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), code: strip(text) }
    }

    /// The modules that the file is in, the outermost first; the last is its own.
    fn modules(&self) -> Vec<&str> {
        let path = self.path.trim_end_matches(".rs");
        let mut modules: Vec<&str> = path.split('/').collect();
        if matches!(modules.last(), Some(&("mod" | "lib"))) {
            modules.pop();
        }
        modules
    }

    fn room(&self) -> String {
        room_of(&self.modules())
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    fn may_be_unsafe(&self) -> bool {
        UNSAFE_FILES.contains(&self.path.as_str())
    }

    /// A module above one of these files: what it forbids would be forbidden there too.
    fn is_above<'a>(&self, mut files: impl Iterator<Item = &'a &'a str>) -> bool {
        let doors = ["mod.rs", "lib.rs", "main.rs"];
        let folder = doors.iter().find_map(|door| self.path.strip_suffix(door));
        folder.is_some_and(|folder| files.any(|file| file.starts_with(folder)))
    }

    fn is_above_unsafe(&self) -> bool {
        self.is_above(UNSAFE_FILES.iter())
    }

    /// Lines that hold code, up to the tests that some files end with.
    fn lines_of_code(&self) -> usize {
        let end = self.code.find("\n#[cfg(test)]\nmod tests {").unwrap_or(self.code.len());
        self.code[..end].lines().filter(|line| !line.trim().is_empty()).count()
    }
}

fn room_of(modules: &[&str]) -> String {
    match modules {
        [room, ..] => (*room).to_owned(),
        [] => "lib".to_owned(),
    }
}

/// Blanks comments and the contents of strings, and keeps everything else where it is.
fn strip(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            quoted(rest)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            raw(rest)
        } else if first == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().filter(|&c| c == '\n'));
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Bytes of the string literal that `rest` starts with.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Bytes of the raw string that `rest` starts with; 0 for a raw identifier.
fn raw(rest: &str) -> usize {
    let hashes = rest[1..].chars().take_while(|&c| c == '#').count();
    if !rest[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    rest[2 + hashes..].find(&end).map_or(rest.len(), |at| 2 + hashes + at + end.len())
}

/// Bytes of the character literal that `rest` starts with; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |end| 3 + end + 1),
        Some(_) => chars.next().map_or(0, |(at, c)| if c == '\'' { at + 1 } else { 0 }),
        None => 0,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `word` stands in `code` on its own.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word))
}

/// The names of a path such as `a::b::{c, d}`, up to the first brace or star.
fn path_names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = code;
    loop {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            return names;
        }
        names.push(&rest[..end]);
        match rest[end..].trim_start().strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => return names,
        }
    }
}

/// The rooms that a file names, its own left out, and paths that this test cannot read.
fn imports(file: &File, public: &BTreeMap<String, String>) -> (BTreeSet<String>, Vec<String>) {
    let mut rooms = BTreeSet::new();
    let mut unreadable = Vec::new();
    let mut add = |modules: &[&str]| {
        let room = room_of(modules);
        // A name of the root is in the room that it is re-exported from.
        rooms.insert(public.get(&room).cloned().unwrap_or(room));
    };
    for start in ["crate", "super"] {
        for (at, _) in file.code.match_indices(start) {
            let before = &file.code[..at];
            // Only where a path begins, and not at the second `super` of one; `pub(super)` is no path.
            if before.ends_with(is_word) || before.trim_end().ends_with("::") {
                continue;
            }
            let names = path_names(&file.code[at..]);
            let ups = names.iter().take_while(|&&name| name == "super").count();
            let from_root = if names[0] == "crate" {
                names[1..].to_vec()
            } else if names[0] == "super" {
                let modules = file.modules();
                // One more than there are: a module within the file, whose parent is the file itself.
                let kept = modules.len().saturating_sub(ups);
                modules[..kept].iter().copied().chain(names[ups..].iter().copied()).collect()
            } else {
                continue;
            };
            let after = file.code[at + start.len()..].trim_start();
            if from_root.is_empty() {
                if after.starts_with("::") {
                    let line = file.code[..at].lines().count();
                    unreadable.push(format!("src/{}:{line}", file.path));
                }
                continue;
            }
            add(&from_root);
        }
    }
    rooms.remove(&file.room());
    (rooms, unreadable)
}

/// The names that the root re-exports, with the room that each is from.
fn re_exports(lib: &File) -> BTreeMap<String, String> {
    let mut public = BTreeMap::new();
    for statement in lib.code.split(';') {
        let Some(at) = statement.find("pub use ") else {
            continue;
        };
        let path = statement[at + "pub use ".len()..].trim();
        let names = path_names(path.trim_start_matches("crate::"));
        let room = room_of(&names);
        for name in path.split(|c| !is_word(c)).filter(|name| !name.is_empty()) {
            public.insert(name.to_owned(), room.clone());
        }
    }
    for room in FLOORS.iter().copied().flatten() {
        public.remove(*room);
    }
    public.remove("crate");
    public
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// What is wrong with an import, if anything is.
fn verdict(from: &str, to: &str) -> Option<String> {
    let Some(own) = floor_of(from) else {
        return Some(format!("{from} is on no floor"));
    };
    // Not a room but a macro or an item of the root.
    let Some(other) = floor_of(to) else {
        return Some(format!("{from} imports {to}, which is on no floor"));
    };
    let open = FLOORS[own].iter().any(|room| OPEN_FLOORS.contains(room));
    if other > own {
        Some(format!("{from} imports {to}, which is above it"))
    } else if other == own && !open {
        Some(format!("{from} imports {to}, which is beside it"))
    } else {
        None
    }
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push((path.to_str().unwrap().replace('\\', "/"), fs::read_to_string(&path).unwrap()));
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library.
fn sources() -> Vec<File> {
    files_in("src")
}

fn files_in(folder: &str) -> Vec<File> {
    let mut files = Vec::new();
    let folder = root().join(folder);
    collect(&folder, &mut files);
    assert!(files.len() > 10, "only {} files in {}", files.len(), folder.display());
    let prefix = format!("{}/", folder.to_str().unwrap().replace('\\', "/"));
    files.iter().map(|(path, text)| File::new(path.strip_prefix(&prefix).unwrap(), text)).collect()
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn imports_point_downwards() {
    let files = sources();
    let public = re_exports(files.iter().find(|file| file.path == "lib.rs").unwrap());
    assert_eq!(public.get("MemoryUsage").map(String::as_str), Some("create_info"));
    let mut faults = Vec::new();
    let mut seen = 0;
    for file in files.iter().filter(|file| file.path != "lib.rs") {
        let (rooms, unreadable) = imports(file, &public);
        faults.extend(unreadable.into_iter().map(|place| format!("{place}: one path for each room, please")));
        for room in rooms {
            seen += 1;
            faults.extend(verdict(&file.room(), &room).map(|fault| format!("src/{}: {fault}", file.path)));
        }
    }
    report(&faults);
    assert!(seen > 3, "only {seen} imports were found");
}

#[test]
fn every_module_of_the_root_has_a_floor() {
    let lib = File::new("lib.rs", &fs::read_to_string(root().join("src/lib.rs")).unwrap());
    let mut count = 0;
    for line in lib.code.lines() {
        let line = line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        assert!(floor_of(name).is_some(), "{name} is on no floor");
        count += 1;
    }
    assert!(count >= 5, "only {count} modules were found");
}

/// The one picture of the floors has a line for each, the highest first: the rooms, two blanks or more, and what the
/// floor is. A comma stands between rooms that may import from one another, a bar between rooms that are blind to one
/// another.
#[test]
fn the_picture_shows_the_floors() {
    let chapter = fs::read_to_string(root().join(PICTURE)).unwrap();
    let section = chapter.split("\n# Layers of `sublet`\n").nth(1).expect("there is a section of layers");
    let picture = section.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let drawn: Vec<&str> = picture.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let floors: Vec<String> = FLOORS
        .iter()
        .rev()
        .map(|rooms| {
            let open = rooms.iter().any(|room| OPEN_FLOORS.contains(room));
            rooms.join(if open { ", " } else { " | " })
        })
        .collect();
    assert_eq!(drawn, floors, "{PICTURE} and FLOORS differ");
}

/// Files that the page names exist, and a function that follows its file's name in a list is defined there.
#[test]
fn the_page_names_what_exists() {
    let page = fs::read_to_string(root().join(PICTURE)).unwrap();
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let mut faults = Vec::new();
    let mut seen = 0;
    for path in quoted.iter().filter(|text| text.contains('/') && !text.contains(char::is_whitespace)) {
        seen += 1;
        if !root().join(path).exists() {
            faults.push(format!("{PICTURE} names {path}"));
        }
    }
    for line in page.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let mut parts = line.split('`');
        if let (Some(path), Some(", "), Some(function)) = (parts.nth(1), parts.next(), parts.next()) {
            seen += 1;
            let name = function.rsplit("::").next().unwrap();
            let text = fs::read_to_string(root().join(path)).unwrap_or_default();
            if !text.contains(&format!("fn {name}")) {
                faults.push(format!("{PICTURE} names {function} in {path}"));
            }
        }
    }
    assert!(seen > 50, "only {seen}");
    report(&faults);
}

#[test]
fn some_rooms_know_no_vulkan() {
    let mut faults = Vec::new();
    for file in sources().iter().filter(|file| WITHOUT_VULKAN.contains(&file.room().as_str())) {
        for word in ["ash", "vk"] {
            if has_word(&file.code, word) {
                faults.push(format!("src/{} names {word}", file.path));
            }
        }
    }
    report(&faults);
}

#[test]
fn unsafe_stays_in_its_files() {
    let mut faults = Vec::new();
    for file in sources() {
        let forbids = file.code.contains("#![forbid(unsafe_code)]");
        if has_word(&file.code, "unsafe") && !file.may_be_unsafe() {
            faults.push(format!("src/{} holds unsafe code", file.path));
        }
        // A module of tests is bound by what the module above it forbids.
        if !forbids && !file.may_be_unsafe() && !file.is_above_unsafe() && !file.is_test() {
            faults.push(format!("src/{} lacks #![forbid(unsafe_code)]", file.path));
        }
    }
    report(&faults);
}

/// What is wrong with a list of files that may hold `unsafe`: entries that stand for nothing.
fn stale(list: &[&str], files: &[File]) -> Vec<String> {
    let holds_unsafe =
        |path: &&&str| files.iter().any(|file| file.path == **path && has_word(&file.code, "unsafe"));
    list.iter()
        .filter(|path| !holds_unsafe(path))
        .map(|path| format!("{path} is gone, or holds no unsafe code: strike it from the list"))
        .collect()
}

#[test]
fn every_unsafe_file_is_still_one() {
    let files = sources();
    report(&stale(UNSAFE_FILES, &files));
}

/// Other packages are not part of the library's: where they are not, there is nothing to look at.
fn keeps_unsafe_in(folder: &str, unsafe_files: &[&str]) {
    if !root().join(folder).is_dir() {
        return;
    }
    let files = files_in(folder);
    let mut faults = stale(unsafe_files, &files);
    for file in &files {
        let path = file.path.as_str();
        let may = unsafe_files.contains(&path);
        let forbids = file.code.contains("#![forbid(unsafe_code)]");
        // What a door forbids would be forbidden in the files below it too.
        if !may && !forbids && !file.is_above(unsafe_files.iter()) {
            faults.push(format!("{folder}/{path} lacks #![forbid(unsafe_code)]"));
        }
        if has_word(&file.code, "unsafe") && !may {
            faults.push(format!("{folder}/{path} holds unsafe code"));
        }
        if file.lines_of_code() > MAX_LINES {
            faults.push(format!("{folder}/{path} has {} lines of code", file.lines_of_code()));
        }
    }
    report(&faults);
}

#[test]
fn peers_keep_unsafe_in_its_files() {
    keeps_unsafe_in("benches/peers/src", UNSAFE_FILES_OF_PEERS);
}

#[test]
fn the_c_interface_keeps_unsafe_in_its_files() {
    keeps_unsafe_in("crates/capi/src", UNSAFE_FILES_OF_CAPI);
}

#[test]
fn the_simulated_driver_keeps_unsafe_in_its_files() {
    keeps_unsafe_in("crates/sim/src", UNSAFE_FILES_OF_SIM);
}

/// The command sees the library as everybody does, calls Vulkan in one file, and prints in one.
#[test]
fn the_command_is_a_client_of_the_library() {
    const CALLS_VULKAN: &str = "vulkan.rs";
    const PRINTS: &str = "answer.rs";
    // It is no part of the library's package.
    if !root().join("crates/cli").is_dir() {
        return;
    }
    let mut faults = Vec::new();
    for file in files_in("crates/cli/src") {
        let File { path, code, .. } = &file;
        let mut wrong = |what: &str| faults.push(format!("crates/cli/src/{path} {what}"));
        if has_word(code, "unsafe") && path != CALLS_VULKAN {
            wrong("holds unsafe code");
        }
        // What `main.rs` forbids would be forbidden in that file too.
        let lock = if path == "main.rs" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        if !code.contains(lock) && path != CALLS_VULKAN {
            wrong(&format!("lacks {lock}"));
        }
        let mut prints = ["println", "print", "eprintln", "eprint", "stdout", "stderr"].iter();
        let prints = prints.any(|word| has_word(code, word) && code.contains(&format!("{word}!")))
            || code.contains("io::stdout")
            || code.contains("io::stderr");
        if prints && path != PRINTS && path != "progress.rs" {
            wrong("prints by itself");
        }
        // What is public for the C interface alone is not for the command.
        if code.contains("sublet::private") || code.contains("#[path") || code.contains("include!") {
            wrong("reaches into the library");
        }
        if file.lines_of_code() > MANY_LINES {
            wrong("is too long");
        }
    }
    report(&faults);
}

/// Reports see the library as everybody does, and need no unsafe code.
#[test]
fn reports_are_a_client_of_the_library() {
    keeps_unsafe_in("crates/report/src", &[]);
    // They are no part of the library's package.
    if !root().join("crates/report").is_dir() {
        return;
    }
    let reaches = |file: &File| file.code.contains("sublet::private");
    let files = files_in("crates/report/src");
    let faults = files.iter().filter(|file| reaches(file));
    let faults = faults.map(|file| format!("crates/report/src/{} reaches into the library", file.path));
    report(&faults.collect::<Vec<_>>());
}

/// States are tracked without a call of Vulkan: of `ash` only its types are named. Lists and frames stand on that floor,
/// and see the allocator as everybody does.
#[test]
fn frames_stand_on_the_tracker() {
    // It is no part of the library's package.
    if !root().join("crates/frame").is_dir() {
        return;
    }
    keeps_unsafe_in("crates/frame/src", UNSAFE_FILES_OF_FRAME);
    let floor = |room: &str| FLOORS_OF_FRAME.iter().position(|rooms| rooms.contains(&room));
    let mut faults = Vec::new();
    for file in files_in("crates/frame/src") {
        let mut wrong = |what: &str| faults.push(format!("crates/frame/src/{} {what}", file.path));
        if file.path == "lib.rs" {
            continue;
        }
        if file.code.contains("sublet::private") {
            wrong("reaches into the library");
        }
        let (rooms, unreadable) = imports(&file, &BTreeMap::new());
        unreadable.iter().for_each(|place| wrong(&format!("has a path that this test cannot read, {place}")));
        for room in rooms.iter().filter(|room| floor(room).is_some() && floor(room) > floor(&file.room())) {
            wrong(&format!("imports {room}, which is above it"));
        }
        if file.room() != "track" {
            continue;
        }
        for (at, _) in file.code.match_indices("ash::") {
            if !file.code[at + "ash::".len()..].starts_with("vk") {
                wrong("names more of ash than its types");
            }
        }
        if has_word(&file.code, "sublet") {
            wrong("names the allocator");
        }
        if has_word(&file.code, "unsafe") {
            wrong("holds unsafe code");
        }
    }
    report(&faults);
}

#[test]
fn every_folder_has_a_door() {
    let mut folders = BTreeSet::new();
    let files = sources();
    for file in &files {
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            folders.insert(folder.to_owned());
        }
    }
    let mut faults = Vec::new();
    for folder in &folders {
        if !files.iter().any(|file| file.path == format!("{folder}/mod.rs")) {
            faults.push(format!("src/{folder} has no mod.rs"));
        }
        if files.iter().any(|file| file.path == format!("{folder}.rs")) {
            faults.push(format!("src/{folder} has a second door, src/{folder}.rs"));
        }
    }
    report(&faults);
}

#[test]
fn no_file_is_too_long() {
    let mut faults = Vec::new();
    for file in sources() {
        let lines = file.lines_of_code();
        if lines > MAX_LINES {
            faults.push(format!("src/{} has {lines} lines of code", file.path));
        } else if lines > MANY_LINES {
            println!("src/{} has {lines} lines of code, more than {MANY_LINES}", file.path);
        }
    }
    report(&faults);
}

#[test]
fn nothing_is_left_to_do() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "examples"] {
        let folder = root().join(folder);
        if folder.is_dir() {
            collect(&folder, &mut files);
        }
    }
    // In two halves, so that this file does not find itself.
    let words =
        [concat!("TO", "DO"), concat!("XX", "X"), concat!("db", "g!("), concat!("unimpl", "emented!(")];
    let mut faults = Vec::new();
    for (path, text) in files {
        for (number, line) in (1..).zip(text.lines()) {
            faults.extend(
                words
                    .iter()
                    .filter(|word| line.contains(*word))
                    .map(|word| format!("{path}:{number}: {word}")),
            );
        }
    }
    report(&faults);
}

/// The test's own tests: it must see what it claims to see.
mod of_this_test {
    use super::*;

    fn rooms(path: &str, text: &str) -> Vec<String> {
        let public = BTreeMap::from([("Allocator".to_owned(), "allocator".to_owned())]);
        imports(&File::new(path, text), &public).0.into_iter().collect()
    }

    #[test]
    fn imports_are_found_in_every_form() {
        assert_eq!(rooms("blocks/budget.rs", "use crate::device::Device;"), ["device"]);
        assert_eq!(rooms("blocks/budget.rs", "fn f() { crate :: device::driver::x() }"), ["device"]);
        assert_eq!(rooms("blocks/budget.rs", "pub(crate) use crate::{\n};"), [""; 0]);
        assert_eq!(rooms("blocks/budget.rs", "use crate::Allocator;"), ["allocator"]);
        assert_eq!(rooms("blocks/budget.rs", "use super::super::metadata::Key;"), ["metadata"]);
        assert_eq!(rooms("blocks/budget.rs", "use super::growth::Growth;"), [""; 0]);
        assert_eq!(rooms("blocks/mod.rs", "use super::pool::Pool; pub(super) fn f() {}"), ["pool"]);
        assert_eq!(rooms("metadata/a/b.rs", "use super::super::super::device::Device;"), ["device"]);
        assert_eq!(rooms("metadata/a/b.rs", "use super::super::tlsf;"), [""; 0]);
        assert_eq!(rooms("error.rs", "// use crate::blocks::X;\nconst A: &str = \"crate::pool\";"), [""; 0]);
        assert_eq!(rooms("error.rs", "const Q: char = '\"'; use crate::blocks::X;"), ["blocks"]);
        assert_eq!(
            rooms("error.rs", "fn f<'a>(a: &'a str) { r#\"crate::pool \"# ; crate::base::x('\\'') }"),
            ["base"]
        );
        assert_eq!(rooms("error.rs", "use supercrate::blocks; use other::crate_::blocks;"), [""; 0]);
    }

    #[test]
    fn groups_at_the_root_are_refused() {
        let public = BTreeMap::new();
        let file = File::new("blocks/budget.rs", "use crate::{device, pool};");
        assert_eq!(imports(&file, &public).1.len(), 1);
        let file = File::new("blocks/budget.rs", "pub(crate) fn f() {}\nuse crate::device::{A, B};");
        assert!(imports(&file, &public).1.is_empty());
    }

    #[test]
    fn re_exports_are_read() {
        let lib = File::new("lib.rs", "mod a;\npub use base::sync::{Mutex, Guard};\npub use pool::Pool;");
        let public = re_exports(&lib);
        assert_eq!(public["Guard"], "base");
        assert_eq!(public["Pool"], "pool");
        assert!(!public.contains_key("base") && !public.contains_key("device"));
    }

    #[test]
    fn floors_are_floors() {
        assert!(verdict("blocks", "metadata").is_none());
        assert!(verdict("allocator", "pool").is_none());
        assert!(verdict("create_info", "pool").is_none());
        assert!(verdict("create_info", "allocator").is_some());
        assert!(verdict("pool", "blocks").is_some());
        assert!(verdict("metadata", "device").is_some());
        assert!(verdict("device", "metadata").is_some());
        assert!(verdict("metadata", "blocks").is_some());
        assert!(verdict("base", "metadata").is_some());
        assert!(verdict("blocks", "allocator").is_some());
        assert!(verdict("nowhere", "base").is_some());
        assert!(verdict("blocks", "nowhere").is_some());
    }

    #[test]
    fn lines_of_code_are_counted() {
        let text = "//! What.\n\n/// A.\nfn a() {\n    /* b\n    c */\n}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(File::new("a.rs", text).lines_of_code(), 2);
    }

    #[test]
    fn stale_entries_are_found() {
        let files = [File::new("a.rs", "unsafe {}"), File::new("b.rs", "// unsafe")];
        assert!(stale(&["a.rs"], &files).is_empty());
        assert_eq!(stale(&["a.rs", "b.rs", "c.rs"], &files).len(), 2);
    }

    #[test]
    fn unsafe_files_are_told_apart() {
        let file = |path: &str| File::new(path, "");
        assert!(file("device/driver.rs").may_be_unsafe());
        assert!(file("blocks/mapped_pointer.rs").may_be_unsafe());
        assert!(!file("blocks/budget.rs").may_be_unsafe());
        assert!(!file("blocks/mod.rs").may_be_unsafe() && file("blocks/mod.rs").is_above_unsafe());
        assert!(file("base/mod.rs").is_above_unsafe() && file("lib.rs").is_above_unsafe());
        assert!(!file("metadata/mod.rs").is_above_unsafe());
        assert!(has_word("unsafe { x }", "unsafe") && !has_word("forbid(unsafe_code)", "unsafe"));
        assert!(!has_word(&strip("// unsafe\nlet a = \"unsafe\";"), "unsafe"));
    }
}
