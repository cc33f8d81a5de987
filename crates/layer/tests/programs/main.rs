//! Runs small programs under the layer on this machine's Vulkan driver, and checks their recordings.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

mod program;
mod recorded;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use recorded::Recorded;

/// Selects the program of `program::run`.
const PROGRAM: &str = "SUBLET_TEST_PROGRAM";
const LAYER: &str = "VK_LAYER_SUBLET_memory";
const VALIDATION: &str = "VK_LAYER_KHRONOS_validation";

/// Not a test: the program that the tests start.
#[test]
fn program() {
    if let Ok(name) = std::env::var(PROGRAM) {
        program::run(&name);
    }
}

/// A temporary folder with the layer's manifest.
struct Run(PathBuf);

impl Run {
    /// Returns `None` if this machine has no Vulkan driver. Panics if it must have one.
    fn new() -> Option<Self> {
        if program::extensions_of_device().is_none() {
            let required = std::env::var_os("SUBLET_REQUIRE_VULKAN").is_some_and(|value| value == "1");
            assert!(!required, "SUBLET_REQUIRE_VULKAN=1, and there is no Vulkan driver");
            println!("SKIPPED: there is no Vulkan driver");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layer-{}-{number}", std::process::id()));
        // A killed process with the same number may have left it.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let executable = std::env::current_exe().unwrap();
        let library = executable.parent().unwrap().join("libsublet_layer.so");
        assert!(library.is_file(), "{} is missing", library.display());
        let manifest = format!(
            r#"{{"file_format_version": "1.2.0", "layer": {{"name": "{LAYER}", "type": "GLOBAL", "library_path": "{}",
            "api_version": "1.3.281", "implementation_version": "1", "description": "test"}}}}"#,
            library.display()
        );
        std::fs::write(folder.join("layer.json"), manifest).unwrap();
        Some(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command that runs a program below the layers.
    fn command(&self, name: &str, layers: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "program", "--nocapture", "--test-threads", "1"])
            .env(PROGRAM, name)
            .env("VK_ADD_LAYER_PATH", &self.0)
            .env_remove("VK_LAYER_PATH")
            .env("VK_INSTANCE_LAYERS", layers.join(":"))
            .env("SUBLET_WATCH", self.path("a.trace"));
        command
    }

    /// Runs a program to its end, and asserts that it succeeds silently.
    fn run(&self, name: &str, layers: &[&str]) -> String {
        said(&self.command(name, layers).output().unwrap(), 0)
    }

    fn recorded(&self, name: &str) -> Recorded {
        Recorded::read(&self.path(name))
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".trace"));
        names.sort();
        names
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of a program that ended with a code.
#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn each_kind_of_call_is_recorded() {
    let Some(run) = Run::new() else { return };
    run.run("basics", &[LAYER]);
    let found = run.recorded("a.trace");
    assert_eq!(found.all(0x88), [[1, 4096, 2, 0]]);
    assert_eq!(found.all(0x89), [[2, 37, 64, 32, 1, 3, 2, 1, 0, 4, 0, 1]]);
    assert_eq!(&found.all(0x80)[0][2..], [1 << 20, 0, 0]);
    // The program asked for those of the buffer, the layer for those of the image.
    let asked: Vec<_> = found.all(0x8A).iter().map(|numbers| (numbers[0], numbers[1])).collect();
    assert_eq!(asked, [(1, 0), (2, 0)]);
    assert_eq!(found.all(0x8B)[0], [1, 0, 1, 0]);
    assert_eq!(&found.all(0x8B)[1][..3], [2, 0, 1]);
    assert_eq!(found.names(), ["block", "albedo \u{e9}"]);
    for (operation, numbers) in [(0x83, [1, 0, 0]), (0x85, [1, 0, 0]), (0x86, [1, 0, 0])] {
        assert_eq!(found.all(operation), [numbers], "{operation:x}");
    }
    assert_eq!(found.all(0x90), [[0]]);
    assert_eq!(found.all(0x8C), [[1], [2]]);
    assert_eq!(found.0.last().unwrap().operation, 0x95);
    assert!(found.0.windows(2).all(|two| two[0].time <= two[1].time), "one thread");
}

#[test]
fn names_are_left_out_on_request() {
    let Some(run) = Run::new() else { return };
    said(&run.command("basics", &[LAYER]).env("SUBLET_WATCH_NAMES", "0").output().unwrap(), 0);
    assert_eq!(run.recorded("a.trace").names(), [""; 0]);
    let bytes = std::fs::read(run.path("a.trace")).unwrap();
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap().as_bytes();
    assert!(!bytes.windows(program.len()).any(|part| part == program), "the program's name is recorded");
}

/// The validation layer sees no wrong call, and the order of the layers does not matter.
#[test]
fn the_validation_layer_above_and_below_is_silent() {
    for layers in [[LAYER, VALIDATION], [VALIDATION, LAYER]] {
        for name in ["basics", "devices", "threads"] {
            let Some(run) = Run::new() else { return };
            let said = run.run(name, &layers);
            assert!(!said.contains("VUID") && !said.contains("Validation"), "{name}: {said}");
            assert!(run.recorded("a.trace").count(0x88) > 0);
        }
        let Some(run) = Run::new() else { return };
        let said = run.run("wrong", &layers);
        assert!(said.contains("VUID-VkBufferCreateInfo"), "the validation layer is missing: {said}");
    }
}

#[test]
fn every_device_has_a_file() {
    let Some(run) = Run::new() else { return };
    run.run("devices", &[LAYER]);
    assert_eq!(run.files(), ["a-2.trace", "a-3.trace", "a.trace"]);
    for (name, count) in [("a.trace", 1), ("a-2.trace", 2), ("a-3.trace", 3)] {
        assert_eq!(run.recorded(name).count(0x88), count, "{name}");
    }
}

#[test]
fn files_of_other_processes_are_kept() {
    let Some(run) = Run::new() else { return };
    run.run("basics", &[LAYER]);
    let first = std::fs::read(run.path("a.trace")).unwrap();
    run.run("basics", &[LAYER]);
    assert_eq!(std::fs::read(run.path("a.trace")).unwrap(), first);
    assert_eq!(run.files().len(), 2, "{:?}", run.files());
    assert!(run.files()[0].starts_with("a-p"));
}

#[test]
fn instances_one_after_the_other() {
    let Some(run) = Run::new() else { return };
    run.run("again", &[LAYER]);
    for name in ["a.trace", "a-2.trace", "a-3.trace"] {
        assert_eq!(run.recorded(name).count(0x95), 1, "{name}");
    }
}

/// The counter of devices begins again with the layer.
#[test]
fn a_layer_that_is_loaded_again_records_every_device() {
    let Some(run) = Run::new() else { return };
    let said = run.run("loaded again", &[LAYER]);
    assert!(!said.contains("sublet:"), "{said}");
    assert_eq!(run.files().len(), 5, "{:?}", run.files());
    for name in run.files() {
        let found = run.recorded(&name);
        assert_eq!((found.count(0x88), found.count(0x95)), (1, 1), "{name}");
    }
}

#[test]
fn threads_write_into_one_order() {
    let Some(run) = Run::new() else { return };
    run.run("threads", &[LAYER]);
    let found = run.recorded("a.trace");
    for operation in [0x88, 0x8A, 0x8C] {
        assert_eq!(found.count(operation), 20_000);
    }
    let threads: std::collections::HashSet<_> = found.0.iter().map(|record| record.thread).collect();
    assert!(threads.len() >= 2, "{threads:?}");
}

/// A thread that ends leaves its segment to another one.
#[test]
fn short_threads_share_a_segment() {
    let Some(run) = Run::new() else { return };
    run.run("short threads", &[LAYER]);
    assert_eq!(run.recorded("a.trace").count(0x88), 200);
    let bytes = std::fs::metadata(run.path("a.trace")).unwrap().len();
    assert!(bytes <= 8 * 65_536, "{bytes} bytes");
}

#[test]
fn failed_allocations_are_recorded() {
    let Some(run) = Run::new() else { return };
    run.run("refused", &[LAYER]);
    let found = run.recorded("a.trace");
    let failed = found.all(0x81);
    assert_eq!(failed.len(), 1);
    assert!([1, 2].contains(&failed[0][2]), "out of host or device memory: {failed:?}");
}

/// Memory of the driver's own objects, such as command pools, is recorded if the driver reports it.
#[test]
fn the_drivers_own_memory_is_recorded_if_it_reports_that() {
    let Some(run) = Run::new() else { return };
    let reports = program::extensions_of_device().unwrap();
    let reports = reports.iter().any(|name| name == "VK_EXT_device_memory_report");
    println!("the driver reports its memory: {reports}");
    run.run("basics", &[LAYER]);
    assert_eq!(run.recorded("a.trace").count(0x93) > 0, reports);
}

#[test]
fn a_program_that_never_destroys_its_device_is_recorded() {
    let Some(run) = Run::new() else { return };
    said(&run.command("leak", &[LAYER]).output().unwrap(), 7);
    let found = run.recorded("a.trace");
    assert_eq!((found.count(0x88), found.count(0x8C), found.count(0x95)), (10, 10, 0));
}

/// A killed program lacks at most the last call of each thread: no gap in the numbers, except near the end.
#[test]
fn a_killed_program_leaves_a_readable_recording() {
    let Some(run) = Run::new() else { return };
    let mut child = run.command("endless", &[LAYER]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let found = run.recorded("a.trace");
    assert!(found.count(0x88) >= 300, "{}", found.count(0x88));
    let last = found.0.last().unwrap().sequence;
    let missing = last - u64::try_from(found.0.len()).unwrap();
    assert!(missing <= 3, "{missing} records of three threads are missing");
    // The same if it was killed while its file grew.
    let file = std::fs::OpenOptions::new().write(true).open(run.path("a.trace")).unwrap();
    file.set_len(file.metadata().unwrap().len() + 3 * 16_384).unwrap();
    assert_eq!(run.recorded("a.trace").0, found.0);
    let bytes = std::fs::read(run.path("a.trace")).unwrap();
    let mut records = sublet::trace::ForeignRecords::new(&bytes).unwrap();
    assert_eq!((records.by_ref().count(), records.damaged_bytes()), (found.0.len(), 0));
}

/// The newest part begins with the live objects, and parts between it and the first are removed.
#[test]
fn a_full_file_continues_in_another_one() {
    let Some(run) = Run::new() else { return };
    said(&run.command("long", &[LAYER]).env("SUBLET_WATCH_LIMIT", "1048576").output().unwrap(), 0);
    let files = run.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.contains(&"a.trace".to_owned()));
    let newest = files.iter().find(|name| name.contains(".part")).unwrap();
    assert_ne!(newest, "a.part2.trace", "more than two parts were written");
    let found = run.recorded(newest);
    // The 100 buffers that the program keeps have the first numbers, and come before memory.
    let start: Vec<_> = found.0.iter().take_while(|record| record.operation != 0x80).collect();
    let kept = start.iter().filter(|record| record.operation == 0x88 && record.numbers[0] <= 100);
    assert_eq!(kept.count(), 100);
    assert!(start.len() <= 100 + 1 + 4, "{} records, with at most two other buffers", start.len());
    assert_eq!((found.count(0x80), found.count(0x8B), found.names()), (2, 1, vec!["kept"]));
    // 16 was mapped, 32 was flushed, 64 was bound: before this part.
    let mut flags: Vec<_> = found.all(0x80).iter().map(|numbers| (numbers[0], numbers[3])).collect();
    flags.sort_unstable();
    assert_eq!(flags, [(1, 64), (2, 16 | 32 | 64)]);
    let header = |name: &str| {
        let bytes = std::fs::read(run.path(name)).unwrap();
        sublet::trace::ForeignRecords::new(&bytes).unwrap().header().clone()
    };
    let (first, last) = (header("a.trace"), header(newest));
    assert_eq!((first.part, first.opening_records), (0, 0));
    assert_eq!(*newest, format!("a.part{}.trace", last.part));
    // Those before the first thread goes on: it destroys a buffer, or creates one with a new number.
    let opening = usize::try_from(last.opening_records).unwrap();
    let (opening, rest) = found.0.split_at(opening);
    assert!(opening.iter().all(|record| [0x80, 0x88, 0x8A, 0x8B, 0x8D].contains(&record.operation)));
    let created = |record: &&recorded::Record| record.operation == 0x88;
    let most = opening.iter().filter(created).map(|record| record.numbers[0]).max();
    assert!(rest.iter().filter(created).all(|record| Some(record.numbers[0]) > most));
    assert!(opening.iter().any(|record| record.operation == 0x8D) && rest[0].operation != 0x8D);
    assert_eq!(found.0.last().unwrap().operation, 0x95);
}

/// Without a path, the layer forwards everything and writes nothing.
#[test]
fn without_a_path_nothing_is_recorded() {
    let Some(run) = Run::new() else { return };
    said(&run.command("basics", &[LAYER]).env_remove("SUBLET_WATCH").output().unwrap(), 0);
    assert_eq!(run.files(), [""; 0]);
    // A path that cannot be written: the program runs all the same.
    let said = said(
        &run.command("basics", &[LAYER]).env("SUBLET_WATCH", "/nonexistent/a.trace").output().unwrap(),
        0,
    );
    assert!(said.contains("nothing is recorded"), "{said}");
}
