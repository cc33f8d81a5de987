//! The client in `tests/c/`, in both languages and with each kind of library.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Language, build, can_compile, client, library, old_library, root, run, workshop};

/// Runs a client on a simulated GPU, which must report no errors.
fn run_simulated(program: &Path, profile: &str, version: &str, way: &str) {
    let output = Command::new(program)
        .args(["sim", way])
        .env("SUBLET_SIM_PROFILE", profile)
        .env("SUBLET_SIM_API_VERSION", version)
        // The debug build logs wrong calls, and the client makes many of them.
        .env("SUBLET_LOG", "off")
        .output()
        .unwrap();
    let (said, reported) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.is_empty() && reported.is_empty(),
        "{} on {profile} with Vulkan {version}, {way}: {}\n{said}{reported}",
        program.display(),
        output.status
    );
}

/// Profiles that differ in heaps, coherence and granularity.
const PROFILES: [&str; 5] =
    ["lavapipe", "nvidia-rtx-5070-ti", "amd-rx-6800-windows", "arm-mali-g52", "broadcom-raspberry-pi-4"];

pub(crate) fn run_everywhere(program: &Path) {
    for profile in PROFILES {
        for (version, way) in [("1.4", "table"), ("1.3", "lookup"), ("1.0", "table"), ("1.1", "lookup")] {
            run_simulated(program, profile, version, way);
        }
    }
}

/// `.ci/c` builds and runs it as the chapter describes.
#[test]
fn the_first_program_of_the_book_compiles_as_c11() {
    let file = root().join("src/guide/buffer.c");
    if can_compile() {
        let mut compiler = Language::C11.compiler();
        compiler.arg("-pedantic").arg("-I").arg(root().join("include")).arg("-fsyntax-only").arg(&file);
        run(&mut compiler);
    }
}

#[test]
fn a_client_in_c11_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-pedantic"];
        run_everywhere(&client("client-c11", Language::C11, &[], &flags, library()));
    }
}

#[test]
fn a_client_in_cpp17_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-pedantic"];
        run_everywhere(&client("client-cpp17", Language::Cpp17, &[], &flags, library()));
    }
}

#[test]
fn a_client_with_the_old_structures_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-DVMA_SUBLET_3_3"];
        run_everywhere(&client("client-old", Language::C11, &[], &flags, old_library()));
    }
}

/// The same client with the shared library.
#[test]
fn a_client_of_the_shared_library_runs() {
    if !can_compile() || !cfg!(target_os = "linux") {
        return;
    }
    let library = build("sim", "0", "cdylib", "libsublet_capi.so");
    let program = client("client-shared", Language::C11, &[], &["-DCLIENT_WITH_SIM"], &library);
    let output = Command::new(&program)
        .args(["sim", "lookup"])
        .env("LD_LIBRARY_PATH", library.file.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{}\n{said}", output.status);
}

#[test]
fn clients_run_on_the_vulkan_of_this_machine() {
    if !can_compile() {
        return;
    }
    let program = client("client-vulkan", Language::C11, &[], &[], library());
    for way in ["table", "lookup", "loaded"] {
        let output = Command::new(&program).args(["vulkan", way]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.code() == Some(3) {
            assert!(env::var_os("SUBLET_REQUIRE_VULKAN").is_none(), "{said}");
            println!("SKIPPED: {said}");
            return;
        }
        assert!(output.status.success() && said.is_empty(), "{way}: {}\n{said}", output.status);
    }
}

/// `SUBLET_TRACE` names a file for each allocator. This works for a client that does not use recordings.
#[test]
fn a_client_is_recorded_where_the_environment_says_so() {
    use sublet::trace::{Event, Trace};

    if !can_compile() {
        return;
    }
    let library = build("sim,trace", "0", "staticlib", "libsublet_capi.a");
    let program = client("client-recorded", Language::C11, &[], &["-DCLIENT_WITH_SIM"], &library);
    let folder = workshop().join("recordings");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let output = Command::new(&program)
        .args(["sim", "table"])
        .env("SUBLET_SIM_PROFILE", "nvidia-rtx-5070-ti")
        .env("SUBLET_TRACE", folder.join("client.trace"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let mut largest: Option<Trace> = None;
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let trace = Trace::read(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        assert_eq!(&*trace.header.program, "client-recorded");
        files += 1;
        if largest.as_ref().is_none_or(|largest| largest.records.len() < trace.records.len()) {
            largest = Some(trace);
        }
    }
    assert!(files > 2, "{files} allocators");
    // The main test allocator: its recording has most operations.
    let trace = largest.unwrap();
    let copied = trace.records.iter().filter(|record| matches!(record.event, Event::Move { .. })).count();
    assert!(trace.unknown_events <= copied.try_into().unwrap(), "what is copied to where moves go");
    let has = |wanted: fn(&Event) -> bool| trace.records.iter().any(|record| wanted(&record.event));
    assert!(has(|event| matches!(event, Event::Allocate(made) if made.wanted.pool.is_some())));
    assert!(has(|event| matches!(event, Event::Allocate(made) if made.granted.dedicated)));
    assert!(has(|event| matches!(event, Event::AllocateFailed(_))));
    assert!(has(|event| matches!(event, Event::Map { .. })));
    assert!(has(|event| matches!(event, Event::Flush { .. })));
    assert!(has(|event| matches!(event, Event::CopyTo { .. })));
    assert!(has(|event| matches!(event, Event::SetName { .. })));
    assert!(has(|event| matches!(event, Event::DestroyPool { .. })));
    assert!(has(|event| matches!(event, Event::Move { .. })));
}
