//! `sublet profile`.

use sublet::sim::{Gpu, Profile};

use super::{Folder, has_vulkan};

#[test]
fn a_simulated_device_becomes_a_profile_that_is_that_device() {
    let folder = Folder::new();
    for name in ["nvidia-h200", "nvidia-gtx-1060", "amd-rx-6700-xt", "apple-m1"] {
        let said = folder.run(&format!("profile --device sim:{name} -o {name}.json")).expect(0);
        assert!(said.out.contains("Measured by Sublet"), "{}", said.out);
        let (found, real) = (
            Profile::from_json(&folder.read(&format!("{name}.json"))).unwrap(),
            Profile::by_name(name).unwrap(),
        );
        let mut limits = found.limits;
        // Vulkan does not report these limits.
        limits.descriptors.per_set.resources = real.limits.descriptors.per_set.resources;
        limits.descriptors.per_set_update_after_bind.resources =
            real.limits.descriptors.per_set_update_after_bind.resources;
        assert_eq!((limits, found.features), (real.limits, real.features), "{name}");
        assert!(found.heaps == real.heaps && found.types == real.types);
        Gpu::new(found).assert_silent();
        // The written profile is accepted by `--device`.
        let described = folder.run(&format!("devices --json --device {name}.json")).expect(0).json();
        assert_eq!(described["devices"][0]["name"], real.device_name);
        let original = folder.run(&format!("devices --json --device sim:{name}")).expect(0).json();
        assert_eq!(described["devices"][0]["choices"], original["devices"][0]["choices"], "{name}");
    }
}

#[test]
fn without_a_file_the_profile_is_printed_in_either_case() {
    let folder = Folder::new();
    let plain = folder.run("profile --device sim:arm-mali-g52").expect(0);
    let json = folder.run("profile --device sim:arm-mali-g52 --json").expect(0);
    assert_eq!(plain.json(), json.json());
    assert_eq!(json.json()["format"], "sublet-device-profile");
    assert!(Profile::from_json(&plain.out).is_ok());
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    let found = folder.run("profile --device sim:lavapipe -o nowhere/profile.json").expect(3);
    assert!(found.err.contains("nowhere/profile.json cannot be written: "), "{}", found.err);
    let document = folder.run("profile --device sim:lavapipe -o profile.json --json").expect(0).json();
    assert_eq!(
        (&document["format"], &document["written"]),
        (&"sublet-profile-written".into(), &"profile.json".into())
    );
}

/// The profile of a real device gives the same output as the device.
#[test]
fn the_device_at_hand_becomes_a_profile() {
    if !has_vulkan() {
        return;
    }
    let folder = Folder::new();
    folder.run("profile -o here.json").expect(0);
    let (real, simulated) = (
        folder.run("devices --json --device 0").expect(0).json(),
        folder.run("devices --json --device here.json").expect(0).json(),
    );
    let (real, simulated) = (&real["devices"][0], &simulated["devices"][0]);
    for member in ["name", "type", "vendor_id", "device_id", "types", "limits", "choices"] {
        assert_eq!(real[member], simulated[member], "{member}");
    }
    assert_eq!(real["heaps"][0]["size"], simulated["heaps"][0]["size"]);
}
