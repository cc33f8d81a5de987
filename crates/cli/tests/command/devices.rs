//! `sublet devices`.

use sublet::sim::Profile;

use super::files;
use super::{Folder, has_vulkan};

#[test]
fn a_simulated_device_is_shown_with_all_that_matters() {
    let folder = Folder::new();
    let found = folder.run("devices --device sim:nvidia-gtx-1060").expect(0);
    for text in [
        "GeForce GTX 1060",
        "DISCRETE_GPU, Vulkan 1.2.0",
        "6 GiB",
        "246 MiB",
        "DEVICE_LOCAL HOST_VISIBLE HOST_COHERENT",
        "bufferImageGranularity",
        "nonCoherentAtomSize",
        "maxMemoryAllocationCount",
        "VK_EXT_memory_budget",
        "What Sublet would choose",
        "AutoPreferHost",
    ] {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
}

#[test]
fn the_document_says_what_the_device_is_and_what_would_be_chosen() {
    let folder = Folder::new();
    for name in Profile::names() {
        let profile = Profile::by_name(name).unwrap();
        let document = folder.run(&format!("devices --json --device sim:{name}")).expect(0).json();
        assert_eq!((&document["format"], &document["version"]), (&"sublet-devices".into(), &1.into()));
        let device = &document["devices"][0];
        assert_eq!(device["name"], profile.device_name);
        assert_eq!(device["heaps"].as_array().unwrap().len(), profile.heaps.len());
        assert_eq!(device["types"].as_array().unwrap().len(), profile.types.len());
        assert_eq!(device["limits"]["buffer_image_granularity"], profile.limits.buffer_image_granularity);
        assert_eq!(device["heaps"][0]["budget"].is_u64(), profile.features.memory_budget);
        let rows = device["choices"]["rows"].as_array().unwrap();
        assert!(rows.len() > 20);
        for row in rows {
            for types in row["types"].as_array().unwrap() {
                let Some(types) = types.as_array() else { continue };
                let mut types: Vec<u64> = types.iter().map(|kind| kind.as_u64().unwrap()).collect();
                let count = types.len();
                types.sort_unstable();
                types.dedup();
                assert_eq!(types.len(), count, "{name}: a type twice in {row}");
                assert!(types.iter().all(|&kind| usize::try_from(kind).unwrap() < profile.types.len()));
            }
        }
    }
}

/// Staging memory is host memory, and a render target is in device memory.
#[test]
fn choices_are_the_allocators() {
    let document = Folder::new().run("devices --json --device sim:nvidia-h200").expect(0).json();
    let choices = &document["devices"][0]["choices"];
    let column = |name: &str| {
        choices["resources"].as_array().unwrap().iter().position(|resource| resource == name).unwrap()
    };
    let first = |usage: &str, access: &str, resource: &str| {
        let rows = choices["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["usage"] == usage && row["host_access"] == access).unwrap();
        row["types"][column(resource)][0].clone()
    };
    // Types 1 and 4 are device memory, 2 and 3 are host memory, 3 is cached.
    assert_eq!(first("Auto", "none", "color target"), 1);
    assert_eq!(first("Auto", "sequential write", "staging buffer"), 2);
    assert_eq!(first("Auto", "random", "staging buffer"), 3);
    assert_eq!(first("Auto", "sequential write", "other buffer"), 4);
    assert_eq!(first("GpuToCpu", "none", "staging buffer"), 3);
    assert!(first("GpuLazilyAllocated", "none", "transient target").is_null());
}

#[test]
fn a_profile_in_a_file_is_a_device() {
    let folder = files::folder();
    let found = folder.run("devices --device profile.json").expect(0);
    assert!(found.out.contains("Mali-G52 MC2") && found.out.contains("LAZILY_ALLOCATED"), "{}", found.out);
}

/// A profile may have any name, even that of another simulated device.
#[test]
fn a_device_is_called_what_the_option_takes() {
    let folder = files::folder();
    folder.write("mine.json", folder.read("profile.json").replace("arm-mali-g52", "nvidia-h200"));
    for called in ["mine.json", "sim:arm-mali-g52"] {
        let document = folder.run(&format!("devices --json --device {called}")).expect(0).json();
        assert_eq!(document["devices"][0]["device"], called);
        let again = folder
            .run(&format!("devices --json --device {}", document["devices"][0]["device"].as_str().unwrap()));
        assert_eq!(again.expect(0).json(), document);
    }
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let folder = files::folder();
    let found = folder.run("devices --device sim:voodoo-2").expect(4);
    assert!(found.err.contains("voodoo-2") && found.err.contains("nvidia-h200"), "{}", found.err);
    folder.run("devices --device nothing.json").expect(3);
    let found = folder.run("devices --device map.json").expect(3);
    assert!(found.err.contains("map.json is no profile"), "{}", found.err);
    folder.write("bad.json", folder.read("profile.json").replace("\"heap\": 0", "\"heap\": 5"));
    let found = folder.run("devices --device bad.json").expect(3);
    assert!(found.err.contains("memory type 0 is in heap 5"), "{}", found.err);
    if has_vulkan() {
        let found = folder.run("devices --device voodoo").expect(4);
        assert!(found.err.contains("there is no device \"voodoo\"; there is 0: "), "{}", found.err);
        folder.run("devices --device 99").expect(4);
    }
}

#[test]
fn the_devices_of_drivers_are_found_by_number_and_by_name() {
    if !has_vulkan() {
        return;
    }
    let folder = Folder::new();
    let all = folder.run("devices --json").expect(0).json();
    let name = all["devices"][0]["name"].as_str().unwrap().to_owned();
    let one = folder.run("devices --json --device 0").expect(0).json();
    assert_eq!(
        (&one["devices"][0]["name"], one["devices"].as_array().unwrap().len()),
        (&all["devices"][0]["name"], 1)
    );
    let word = name.split_whitespace().next().unwrap().to_uppercase();
    let named = folder.run(&format!("devices --json --device {word}")).expect(0).json();
    assert_eq!(named["devices"][0]["name"], name);
}

#[test]
fn the_simulated_devices_are_listed() {
    let found = Folder::new().run_without_vulkan("devices --sim").expect(0);
    for name in Profile::names() {
        assert!(found.out.contains(&format!("sim:{name} ")), "{name}: {}", found.out);
    }
    assert!(found.err.contains("no Vulkan device"), "{}", found.err);
}
