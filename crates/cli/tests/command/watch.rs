//! `sublet watch` and `sublet layer`.

use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sublet::private::foreign_recording;
use sublet::trace::Trace;

use super::files;
use super::{Folder, Outcome, has_vulkan, outcome};

/// Returns the layer that cargo built for the tests.
fn library() -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join("libsublet_layer.so");
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// Returns the command with the layer that cargo built, in the folder.
pub(crate) fn command(folder: &Folder, arguments: &str) -> Command {
    let copy = folder.path("libsublet_layer.so");
    if !copy.exists() {
        std::fs::copy(library(), &copy).unwrap();
    }
    let mut command = folder.command(arguments);
    command.env("SUBLET_LAYER_PATH", folder.path(""));
    command
}

fn run(folder: &Folder, arguments: &str) -> Outcome {
    outcome(&mut command(folder, arguments))
}

#[test]
fn the_layer_is_found_and_described() {
    let folder = Folder::new();
    let found = run(&folder, "layer --where").expect(0);
    let place = folder.path("").canonicalize().unwrap();
    assert_eq!(found.out.trim_end(), place.to_str().unwrap());
    let manifest: serde_json::Value = serde_json::from_str(&folder.read("sublet_layer.json")).unwrap();
    assert_eq!(manifest["layer"]["name"], "VK_LAYER_SUBLET_memory");
    assert_eq!(manifest["layer"]["library_path"], place.join("libsublet_layer.so").to_str().unwrap());
    assert_eq!(run(&folder, "layer --json").expect(0).json()["name"], "VK_LAYER_SUBLET_memory");
    assert!(run(&folder, "layer").expect(0).out.contains("VK_INSTANCE_LAYERS=VK_LAYER_SUBLET_memory"));
}

/// `packaging/install` fills in a description, which may be moved with the library.
#[test]
fn an_installed_layer_is_found_by_its_description() {
    let folder = Folder::new();
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/sublet_layer.json.in");
    let manifest = std::fs::read_to_string(template).unwrap().replace("@libdir@", "../../../lib");
    for inside in ["share/vulkan/explicit_layer.d", "lib", "tools", "here/vulkan/explicit_layer.d"] {
        std::fs::create_dir_all(folder.path(inside)).unwrap();
    }
    // Alone: cargo may have put the layer beside the command.
    std::fs::hard_link(env!("CARGO_BIN_EXE_sublet"), folder.path("tools/sublet")).unwrap();
    // One in the working folder is nobody's.
    let library = library();
    let elsewhere = manifest.replace("../../../lib/libsublet_layer.so", library.to_str().unwrap());
    folder.write("here/vulkan/explicit_layer.d/sublet_layer.json", elsewhere);
    folder.write("share/vulkan/explicit_layer.d/sublet_layer.json", manifest);
    let mut command = Command::new(folder.path("tools/sublet"));
    command.args(["layer", "--json"]).env_remove("SUBLET_LAYER_PATH").env("XDG_DATA_HOME", "/nonexistent");
    command.env("XDG_DATA_DIRS", format!("/nonexistent:.:{}", folder.path("share").display()));
    command.current_dir(folder.path("here"));
    let missing = outcome(&mut command);
    std::fs::copy(library, folder.path("lib/libsublet_layer.so")).unwrap();
    let found = outcome(&mut command).expect(0).json();
    let root = folder.path("").canonicalize().unwrap();
    assert_eq!(found["folder"], root.join("share/vulkan/explicit_layer.d").to_str().unwrap());
    assert_eq!(found["library"], root.join("lib/libsublet_layer.so").to_str().unwrap());
    missing.expect(3);
}

#[test]
fn a_missing_layer_is_an_error_that_says_how_to_build_it() {
    let folder = Folder::new();
    for arguments in ["layer", "watch -- true"] {
        let found = outcome(folder.command(arguments).env("SUBLET_LAYER_PATH", "/nonexistent")).expect(3);
        assert!(found.err.contains("cargo build --release -p sublet-layer"), "{}", found.err);
    }
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let folder = Folder::new();
    let found = outcome(command(&folder, "watch -- sh -c").arg("echo said; echo told >&2; exit 7")).expect(7);
    assert_eq!(found.out, "said\n");
    assert!(found.err.starts_with("told\n") && found.err.contains("nothing is recorded"), "{}", found.err);
    outcome(command(&folder, "watch -- sh -c").arg("kill -TERM $$")).expect(128 + 15);
    let found = run(&folder, "watch -- /nonexistent/program").expect(3);
    assert!(found.err.contains("/nonexistent/program cannot be run"), "{}", found.err);
}

#[test]
fn a_signal_reaches_the_program() {
    let folder = Folder::new();
    let script = "trap 'exit 9' TERM; echo ready; while true; do sleep 0.01; done";
    let mut child = command(&folder, "watch -- sh -c").arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success() && line == "ready\n");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let own = command(&folder, "watch -- sh -c");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(own.get_program()).args(own.get_args());
    shell.arg("kill -HUP $$; exit 5").env("SUBLET_LAYER_PATH", folder.path("")).current_dir(folder.path(""));
    outcome(&mut shell).expect(5);
}

#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let folder = Folder::new();
    folder.write("watched.trace", "a diary");
    run(&folder, "watch -- true").expect(3);
    assert_eq!(folder.read("watched.trace"), "a diary");
}

#[test]
fn other_recordings_stay() {
    let folder = Folder::new();
    for name in ["watched.trace", "watched-2.part3.trace", "watched-baseline.trace"] {
        folder.write(name, b"\x89STRACE\x02");
    }
    run(&folder, "watch -- true").expect(0);
    assert!(!folder.path("watched.trace").exists() && !folder.path("watched-2.part3.trace").exists());
    assert!(folder.path("watched-baseline.trace").exists());
    let wrong = run(&folder, "watch -o %p.trace -- true").expect(2);
    assert!(wrong.err.contains("%p"), "{}", wrong.err);
}

/// The layer could only complain while the program runs.
#[test]
fn a_recording_that_cannot_be_created_is_an_error_before_the_program_runs() {
    let folder = Folder::new();
    let found = run(&folder, "watch -o missing/a.trace -- echo ran").expect(3);
    assert!(found.err.contains("a.trace cannot be created") && found.out.is_empty(), "{}", found.err);
}

/// Another instance with the same output. This process is in the place of its program.
#[test]
fn a_recording_that_a_program_still_writes_stays() {
    let folder = Folder::new();
    let mut trace = Trace::default();
    trace.header.process = std::process::id();
    folder.write("watched-p7.trace", foreign_recording(&trace));
    let file = std::fs::File::open(folder.path("watched-p7.trace")).unwrap();
    let (protection, nowhere) = (libc::PROT_READ, std::ptr::null_mut());
    // SAFETY: the mapping is new, and nothing reads it.
    let map = unsafe { libc::mmap(nowhere, 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    assert_ne!(map, libc::MAP_FAILED);
    let found = run(&folder, "watch -- echo ran").expect(3);
    assert!(
        found.err.contains("watched-p7.trace cannot be replaced") && found.out.is_empty(),
        "{}",
        found.err
    );
    assert!(folder.path("watched-p7.trace").exists());
    // SAFETY: the mapping is the one from above.
    unsafe { libc::munmap(map, 4096) };
    run(&folder, "watch -- echo ran").expect(0);
    assert!(!folder.path("watched-p7.trace").exists());
}

#[test]
fn a_temporary_description_is_removed() {
    let folder = Folder::new();
    // A folder in the place of the description, so that it is written elsewhere.
    std::fs::create_dir_all(folder.path("sublet_layer.json")).unwrap();
    std::fs::create_dir(folder.path("temporary")).unwrap();
    let count = || std::fs::read_dir(folder.path("temporary")).unwrap().count();
    let mut layer = command(&folder, "layer");
    outcome(layer.env("TMPDIR", folder.path("temporary"))).expect(0);
    assert_eq!(count(), 1, "the user needs it");
    let mut watch = command(&folder, "watch -- true");
    outcome(watch.env("TMPDIR", folder.path("temporary"))).expect(0);
    assert_eq!(count(), 1);
}

/// Each run replaces the recordings of the previous one. The recorded program is this command.
#[test]
fn a_program_is_recorded() {
    if !has_vulkan() {
        return;
    }
    let folder = files::folder();
    let program = concat!(env!("CARGO_BIN_EXE_sublet"), " replay frames.trace --device 0 --no-progress");
    let alone =
        outcome(folder.command("replay frames.trace --device 0 --no-progress").env_remove("SUBLET_WATCH"));
    for _ in 0..2 {
        let found = run(&folder, &format!("watch -o a.trace -- {program}")).expect(alone.code);
        assert!(
            found.err.contains("a.trace: ") && found.err.contains(" allocations, at most "),
            "{}",
            found.err
        );
        let bytes = std::fs::read(folder.path("a.trace")).unwrap();
        assert!(bytes.starts_with(b"\x89STRACE\x02"));
    }
    let traces = std::fs::read_dir(folder.path(""))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("a"));
    assert_eq!(traces.count(), 1, "the second run replaced the recording of the first");
    let found = run(&folder, &format!("watch -o a.trace --json -- {program} --json")).expect(alone.code);
    // Two documents: the program's, and that of this command.
    let (_, document) = found.out.split_once("\n}\n").unwrap();
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!((&document["format"], &document["exit_code"]), (&"sublet-watch".into(), &alone.code.into()));
    let [recording] = &document["recordings"].as_array().unwrap()[..] else { panic!("{document}") };
    assert!(recording["totals"]["allocations"].as_u64().unwrap() > 0, "{document}");
}
