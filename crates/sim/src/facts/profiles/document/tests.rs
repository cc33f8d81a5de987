//! Profiles are the same after writing and reading, and the error for a wrong document says what is wrong.

use super::*;
use crate::facts::profiles::ALL;

fn text() -> String {
    Profile::by_name("nvidia-gtx-1060").unwrap().to_json()
}

/// The profile with one piece of its text exchanged.
fn with(from: &str, to: &str) -> Result<&'static Profile, ReadProfileError> {
    let text = text();
    assert!(text.contains(from), "{from} is not in {text}");
    Profile::from_json(&text.replacen(from, to, 1))
}

fn why(from: &str, to: &str) -> InvalidProfile {
    match with(from, to) {
        Err(ReadProfileError::Invalid(why)) => why,
        other => panic!("{from} -> {to}: {other:?}"),
    }
}

#[test]
fn every_profile_is_the_same_after_it_was_written_and_read() {
    for profile in ALL {
        let text = profile.to_json();
        let read = Profile::from_json(&text).unwrap();
        assert_eq!(read.to_json(), text);
        assert_eq!((read.name, read.source), (profile.name, profile.source));
        assert_eq!((read.limits, read.features), (profile.limits, profile.features));
        assert!(read.heaps == profile.heaps && read.types == profile.types);
        assert_eq!(read.buffers.raised, profile.buffers.raised);
        assert_eq!(read.images.format_types, profile.images.format_types);
        assert_eq!(read.images.tiles, profile.images.tiles);
        assert_eq!((read.device_type, read.driver_id), (profile.device_type, profile.driver_id));
        assert_eq!(read.api_version, profile.api_version);
    }
}

#[test]
fn the_same_text_is_kept_once() {
    let text = text();
    let (one, other) = (Profile::from_json(&text).unwrap(), Profile::from_json(&text).unwrap());
    assert!(std::ptr::eq(one, other));
    assert!(!std::ptr::eq(one, Profile::by_name("nvidia-gtx-1060").unwrap()));
}

#[test]
fn what_is_no_profile_is_told_apart() {
    let error = |text: &str| Profile::from_json(text).unwrap_err();
    assert!(matches!(error(""), ReadProfileError::Json { .. }));
    assert!(matches!(error("{\"format\": "), ReadProfileError::Json { line: 1, .. }));
    assert!(matches!(
        error("{\"format\": \"sublet-memory-map\", \"version\": 1}"),
        ReadProfileError::OtherFormat
    ));
    let head = "{\"format\": \"sublet-device-profile\"";
    assert!(matches!(error(&format!("{head}}}")), ReadProfileError::Version { version: None }));
    assert!(matches!(
        error(&format!("{head}, \"version\": 2}}")),
        ReadProfileError::Version { version: Some(2) }
    ));
    let missing = error(&format!("{head}, \"version\": 1}}"));
    assert!(chain(&missing).contains("missing field `name`"), "{missing:?}");
    // However deep: an error, not the end of the stack.
    assert!(matches!(error(&"[".repeat(100_000)), ReadProfileError::Json { .. }));
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[test]
fn a_member_that_is_unknown_or_of_another_type_is_named_with_its_line() {
    for (from, to, says) in [
        ("\"heaps\"", "\"haeps\"", "unknown field `haeps`"),
        ("\"size\": 6442450944", "\"size\": -1", "u64"),
        ("\"DEVICE_LOCAL\"", "\"DEVICE_LOCALE\"", "Vulkan has no \"DEVICE_LOCALE\""),
        ("\"D16_UNORM\"", "\"D17_UNORM\"", "Vulkan has no \"D17_UNORM\""),
        ("\"1.2.155\"", "\"one\"", "no version such as"),
        ("\"1.2.155\"", "\"1.5000.1\"", "no version such as"),
        ("\"DISCRETE_GPU\"", "\"GPU\"", "Vulkan has no \"GPU\""),
    ] {
        let error = with(from, to).unwrap_err();
        let ReadProfileError::Json { line, .. } = error else { panic!("{error:?}") };
        let text = chain(&error);
        assert!(line > 1 && text.contains(says) && text.contains("line"), "{text}");
    }
}

#[test]
fn values_that_describe_no_device_are_refused() {
    assert_eq!(why("\"nvidia-gtx-1060\"", "\"GTX 1060\""), InvalidProfile::Name);
    assert_eq!(why("\"GeForce GTX 1060\"", "\"\""), InvalidProfile::DeviceName);
    assert_eq!(why("\"GeForce GTX 1060\"", &format!("\"{}\"", "x".repeat(256))), InvalidProfile::DeviceName);
    assert!(matches!(why("\"1.2.155\"", "\"1.5.0\""), InvalidProfile::ApiVersion { .. }));
    assert!(matches!(why("\"1.2.155\"", "\"0.2.0\""), InvalidProfile::ApiVersion { .. }));
    assert_eq!(why("\"size\": 6442450944", "\"size\": 0"), InvalidProfile::EmptyHeap { heap: 0 });
    assert_eq!(
        why("\"heap\": 1", "\"heap\": 3"),
        InvalidProfile::HeapOutOfRange { memory_type: 0, heap: 3, heaps: 3 }
    );
    let text = why("\"heap\": 1", "\"heap\": 7").to_string();
    assert_eq!(text, "memory type 0 is in heap 7, and there are 3 heaps");
    assert_eq!(why("\"heap\": 1", "\"heap\": 0"), InvalidProfile::DeviceLocal { memory_type: 0, heap: 0 });
    let granularity = "\"buffer_image_granularity\": 1024";
    assert_eq!(
        why(granularity, "\"buffer_image_granularity\": 1000"),
        InvalidProfile::NotPowerOfTwo { what: "limits.buffer_image_granularity", value: 1000 }
    );
    assert_eq!(
        why(granularity, "\"buffer_image_granularity\": 0"),
        InvalidProfile::NotPowerOfTwo { what: "limits.buffer_image_granularity", value: 0 }
    );
    assert_eq!(
        why("\"min_memory_map_alignment\": 64", "\"min_memory_map_alignment\": 8192"),
        InvalidProfile::OutOfRange {
            what: "limits.min_memory_map_alignment",
            value: 8192,
            least: 1,
            most: 4096
        }
    );
    assert!(matches!(
        why("\"max_memory_allocation_count\": 4294967295", "\"max_memory_allocation_count\": 0"),
        InvalidProfile::OutOfRange { what: "limits.max_memory_allocation_count", value: 0, .. }
    ));
    assert_eq!(
        why("\"descriptor_buffer\": false", "\"descriptor_buffer\": true"),
        InvalidProfile::DescriptorBuffer
    );
    assert!(matches!(
        why("\"types\": 1921", "\"types\": 4000"),
        InvalidProfile::UnknownTypes { bits: 4000, .. }
    ));
    let heaps = |from: &str, to: &str| {
        let text = Profile::by_name("nvidia-rtx-5070-ti").unwrap().to_json();
        assert!(text.contains(from));
        match Profile::from_json(&text.replacen(from, to, 1)) {
            Err(ReadProfileError::Invalid(why)) => why,
            other => panic!("{from} -> {to}: {other:?}"),
        }
    };
    let wrong = heaps("\"resource_heap_alignment\": 32", "\"resource_heap_alignment\": 131072");
    assert!(matches!(wrong, InvalidProfile::OutOfRange { value: 131_072, most: 65_536, .. }));
    let wrong = heaps("\"buffer_alignment\": 16", "\"buffer_alignment\": 24");
    assert!(matches!(wrong, InvalidProfile::NotPowerOfTwo { value: 24, .. }));
    let wrong = heaps("\"sampler_reserved\": 512", "\"sampler_reserved\": 131073");
    assert!(matches!(wrong, InvalidProfile::OutOfRange { value: 131_073, most: 131_072, .. }));
    assert_eq!(why("\"types\": 1921", "\"types\": 0"), InvalidProfile::NoTypes { what: "buffers.types" });
    assert_eq!(why("\"from\": 0", "\"from\": 16"), InvalidProfile::TileOrder);
    assert_eq!(why("\"max_rows\": 128", "\"max_rows\": 4"), InvalidProfile::TileHeight);
    assert!(matches!(
        why("\"row_bytes\": 64", "\"row_bytes\": 0"),
        InvalidProfile::NotPowerOfTwo { value: 0, .. }
    ));
}

#[test]
fn lists_that_are_empty_or_too_long_are_refused() {
    let mut value: serde_json::Value = serde_json::from_str(&text()).unwrap();
    let mut refused = |member: &str, list: serde_json::Value| {
        let old = std::mem::replace(&mut value[member], list);
        let error = Profile::from_json(&value.to_string()).unwrap_err();
        value[member] = old;
        match error {
            ReadProfileError::Invalid(why) => why,
            other => panic!("{other:?}"),
        }
    };
    let heap = serde_json::json!({"size": 1024, "flags": []});
    let kind = serde_json::json!({"flags": [], "heap": 1});
    assert_eq!(refused("heaps", serde_json::json!([])), InvalidProfile::HeapCount { count: 0 });
    assert_eq!(refused("heaps", vec![heap; 17].into()), InvalidProfile::HeapCount { count: 17 });
    assert_eq!(refused("types", serde_json::json!([])), InvalidProfile::TypeCount { count: 0 });
    assert_eq!(refused("types", vec![kind; 33].into()), InvalidProfile::TypeCount { count: 33 });
}

/// Any exchange of one byte gives an error or a profile, and the profile makes a GPU.
#[test]
fn damaged_text_never_panics() {
    let text = text();
    let mut random = fastrand::Rng::with_seed(7);
    let mut taken = 0;
    for _ in 0..2000 {
        let mut bytes = text.clone().into_bytes();
        let at = random.usize(..bytes.len());
        bytes[at] = random.u8(b' '..b'~');
        let Ok(damaged) = String::from_utf8(bytes) else { continue };
        if let Ok(profile) = Profile::from_json(&damaged) {
            taken += 1;
            crate::Gpu::new(profile).assert_silent();
        }
    }
    assert!(taken > 100, "{taken}");
}
