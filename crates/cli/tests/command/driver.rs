//! A driver that rejects requests.

use std::process::Command;

use super::{Folder, files, outcome};

/// Returns a folder with the driver of `refusing.c` and a trace. `None` without a C compiler.
fn folder() -> Option<Folder> {
    let folder = Folder::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/refusing.c");
    let library = folder.path("libvulkan.so.1");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(library).arg(source).output();
    let Ok(compiled) = compiled else {
        println!("SKIPPED: there is no C compiler");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    folder.write("frames.trace", files::trace(1 << 20));
    Some(folder)
}

#[test]
fn what_a_driver_refuses_ends_with_5_and_both_the_call_and_the_reason() {
    let Some(folder) = folder() else { return };
    let run = |arguments: &str, refused: &str| {
        let mut command = folder.command(arguments);
        outcome(command.env("LD_LIBRARY_PATH", folder.path("")).env("REFUSED", refused)).expect(5)
    };
    for (arguments, refused, says) in [
        ("devices", "vkEnumerateDeviceExtensionProperties", "the device's extensions cannot be read"),
        ("devices --device refusing", "vkCreateDevice", "the device cannot be opened"),
        ("replay frames.trace --device 0", "vkCreateDevice", "the device cannot be opened"),
        (
            "profile",
            "vkEnumerateDeviceExtensionProperties",
            "the device cannot be measured: vkEnumerateDeviceExtensionProperties failed with ERROR_INITIALIZATION_FAILED",
        ),
        // More heaps than Vulkan allows must not cause a panic.
        ("devices", "vkGetPhysicalDeviceMemoryProperties, vkCreateDevice", "the device cannot be opened"),
    ] {
        let found = run(arguments, refused);
        assert!(found.out.is_empty(), "{arguments}: {}", found.out);
        let (said, why) = found.err.trim_end().rsplit_once(": ").unwrap();
        assert_eq!(said, format!("sublet: {says}"), "{arguments}");
        assert!(why.contains("Initialization"), "{arguments}: {why}");
        let error = run(&format!("{arguments} --json"), refused).json()["error"].clone();
        let reason = error["why"].as_array().and_then(|why| why.last());
        assert_eq!((&error["exit_code"], reason), (&5.into(), Some(&why.into())), "{arguments}: {error}");
    }
}
