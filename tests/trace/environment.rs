//! Recordings requested by an environment variable.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use sublet::trace::{self, Event, Trace};

use crate::fixture::*;

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The program that the test below runs.
#[test]
#[ignore = "a program for another test"]
fn a_program_that_asks_for_a_recording() {
    let gpu = gpu();
    for index in 0..2 {
        let allocator = allocator(&gpu);
        let path = trace::start_from_environment(&allocator).unwrap().unwrap();
        println!("path:{}", path.display());
        assert!(trace::start_from_environment(&allocator).is_err(), "it records already");
        allocator.set_current_frame_index(index);
    }
    // A failed recording that was not stopped also prevents another one.
    let allocator = allocator(&gpu);
    allocator.start_recording(Full).unwrap();
    while allocator.is_recording() {
        allocator.trim();
    }
    assert!(trace::start_from_environment(&allocator).is_err());
    allocator.stop_recording().unwrap_err();
}

#[test]
fn a_variable_of_the_environment_starts_a_recording() {
    let folder = std::env::temp_dir().join(format!("sublet-trace-{}", std::process::id()));
    // A killed process with the same number may have left it.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "--exact", "environment::a_program_that_asks_for_a_recording"])
        .env("SUBLET_TRACE", folder.join("of-%p.trace"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once("path:"));
    let paths: Vec<_> = lines.map(|(_, path)| PathBuf::from(path)).collect();
    assert_eq!(paths.len(), 2);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "no file is made for nothing");
    for (index, path) in (0_u32..).zip(&paths) {
        let trace = Trace::read(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(events(&trace), [Event::Frame { index }]);
        let suffix = if index == 0 { "" } else { "-2" };
        assert_eq!(
            path.file_name().unwrap().to_str().unwrap(),
            format!("of-{}{suffix}.trace", trace.header.process)
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
