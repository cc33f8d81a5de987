//! Statistics strings of VMA and of this library.

use ash::vk;
use serde_json::{Value, json};
use sublet::{ResourceKind, sim};
use sublet_report::{ReadSnapshotError, Snapshot, SnapshotFault};

use super::kit::{PROFILES, Program};

/// Output of `vmaBuildStatsString` in VMA 3.3.0 on lavapipe: `FIXTURE` with all details, `SHORT` without.
const FIXTURE: &str = include_str!("vma-3.3.json");
const SHORT: &str = include_str!("vma-3.3-short.json");

#[test]
fn what_vma_wrote_is_read() {
    let snapshot = Snapshot::from_json(FIXTURE).unwrap();
    let file: Value = serde_json::from_str(FIXTURE).unwrap();
    assert_eq!(snapshot.device.name.as_deref(), Some("llvmpipe (LLVM 15.0.6, 256 bits)"));
    assert_eq!(snapshot.device.kind.as_deref(), Some("CPU"));
    assert_eq!(snapshot.device.buffer_image_granularity, Some(64));
    assert_eq!((snapshot.heaps.len(), snapshot.types.len()), (1, 1));
    assert_eq!(snapshot.heaps[0].budget, 1_717_986_918);
    let flags: Vec<&str> = snapshot.types[0].flags.iter().map(|flag| &**flag).collect();
    assert_eq!(flags, ["DEVICE_LOCAL", "HOST_VISIBLE", "HOST_COHERENT", "HOST_CACHED"]);
    // The file's sums equal those computed here.
    let total = snapshot.statistics().total;
    let sum = |name: &str| file["Total"][name].as_u64().unwrap();
    assert_eq!(total.statistics.block_count, sum("BlockCount"));
    assert_eq!(total.statistics.block_bytes, sum("BlockBytes"));
    assert_eq!(total.statistics.allocation_count, sum("AllocationCount"));
    assert_eq!(total.statistics.allocation_bytes, sum("AllocationBytes"));
    assert_eq!(total.unused_range_count, sum("UnusedRangeCount"));
    assert_eq!(total.allocation_size_max, sum("AllocationSizeMax"));
    assert_eq!(total.unused_range_size_min, sum("UnusedRangeSizeMin"));
    let pools: Vec<_> = snapshot.vectors.iter().map(|vector| (vector.pool, vector.name.as_deref())).collect();
    let expected =
        [(None, None), (Some(0), Some("meshes")), (Some(1), Some("ring - of frames")), (Some(2), None)];
    assert_eq!(pools, expected);
    let mesh = snapshot.allocations().find(|found| found.offset == 1024).unwrap();
    assert_eq!((mesh.size, mesh.entry.kind, mesh.entry.usage), (2000, ResourceKind::Buffer, 128));
    assert_eq!(mesh.entry.name.as_deref(), Some("mesh \"A\" \\ x\ty"));
    assert_eq!(mesh.entry.user_data, Some(0x1000));
    assert!(snapshot.allocations().any(|found| found.entry.user_data == Some(0xdead_beef_cafe_1234)));
    assert!(snapshot.allocations().any(|found| found.entry.kind == ResourceKind::ImageLinear));
    let staging = snapshot.allocations().find(|found| found.block.is_none()).unwrap();
    assert_eq!((staging.size, staging.entry.name.as_deref()), (3_145_728, Some("staging")));
}

#[test]
fn what_vma_does_not_say_is_none() {
    let snapshot = Snapshot::from_json(FIXTURE).unwrap();
    assert_eq!((snapshot.run.as_deref(), snapshot.device.vendor_id), (None, None));
    assert!(snapshot.vectors.iter().all(|vector| vector.algorithm.is_none()));
    assert!(snapshot.allocations().all(|found| found.entry.id.is_none() && found.entry.caller.is_none()));
    assert_eq!(snapshot.vectors[0].dedicated[0].map_count, None);
}

#[test]
fn what_was_read_of_vma_is_saved_and_read_again() {
    let snapshot = Snapshot::from_json(FIXTURE).unwrap();
    assert_eq!(Snapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
}

#[test]
fn our_strings_in_that_schema_are_read_too() {
    for profile in PROFILES {
        let program = Program::busy(profile, 200);
        let direct = program.snapshot();
        let read = Snapshot::from_json(&sublet_report::stats_string(&program.allocator, true)).unwrap();
        assert_eq!(read.statistics(), direct.statistics(), "{profile}");
        assert_eq!((&read.heaps, &read.types), (&direct.heaps, &direct.types));
        assert_eq!(read.allocations().count(), direct.allocations().count());
        for name in ["mesh", "staging"] {
            let named = |snapshot: &Snapshot| {
                snapshot.allocations().filter(|found| found.entry.name.as_deref() == Some(name)).count()
            };
            assert_eq!(named(&read), named(&direct));
        }
        program.finish();
    }
}

#[test]
fn a_device_is_of_the_kind_that_vulkan_says() {
    let kinds = ["OTHER", "INTEGRATED_GPU", "DISCRETE_GPU", "VIRTUAL_GPU", "CPU"];
    for (number, kind) in (0..).zip(kinds) {
        assert_eq!(format!("{:?}", vk::PhysicalDeviceType::from_raw(number)), kind);
        let snapshot = edited(|file| file["General"]["deviceType"] = json!(number)).unwrap();
        assert_eq!(snapshot.device.kind.as_deref(), Some(kind));
    }
    assert_eq!(edited(|file| file["General"]["deviceType"] = json!(5)).unwrap().device.kind, None);
    for profile in sim::profiles::ALL {
        let program = Program::on(profile.name);
        let kind = format!("{:?}", profile.device_type);
        assert_eq!(program.snapshot().device.kind.as_deref(), Some(&*kind), "{}", profile.name);
        program.finish();
    }
}

#[test]
fn a_string_without_details_says_so() {
    let found = Snapshot::from_json(SHORT);
    assert!(matches!(found, Err(ReadSnapshotError::WithoutDetails)), "{found:?}");
}

#[test]
fn older_strings_and_those_of_others_are_told_apart() {
    let old = r#"{ "Total": { "Blocks": 1 }, "Heap 0": { "Size": 1 }, "DefaultPools": {} }"#;
    assert!(matches!(Snapshot::from_json(old), Err(ReadSnapshotError::OldVma)));
    let other = FIXTURE.replace("\"API\": \"Vulkan\"", "\"API\": \"Direct3D 12\"");
    assert!(matches!(Snapshot::from_json(&other), Err(ReadSnapshotError::NotVulkan)));
}

fn edited(edit: impl FnOnce(&mut Value)) -> Result<Snapshot, ReadSnapshotError> {
    let mut file: Value = serde_json::from_str(FIXTURE).unwrap();
    edit(&mut file);
    Snapshot::from_json(&file.to_string())
}

#[test]
fn flags_are_words_and_the_rest_a_number() {
    let of = |flags: Value| {
        let snapshot =
            edited(|file| file["MemoryInfo"]["Heap 0"]["MemoryPools"]["Type 0"]["Flags"] = flags).unwrap();
        snapshot.types[0].flags.clone()
    };
    // VMA writes this flag as a word and as a number.
    assert_eq!(of(json!(["DEVICE_LOCAL", "PROTECTED", 32])), ["DEVICE_LOCAL".into(), "PROTECTED".into()]);
    assert_eq!(of(json!(["PROTECTED", 0x1020])), ["PROTECTED".into(), "0x1000".into()]);
    assert_eq!(of(json!([0x1020])), ["0x1020".into()]);
}

#[test]
fn faults_in_that_schema_are_found() {
    let fault = |edit: fn(&mut Value)| match edited(edit) {
        Err(ReadSnapshotError::Contradiction { fault, .. }) => fault,
        other => panic!("{other:?}"),
    };
    let found = fault(|file| file["MemoryInfo"]["Heap 7"] = file["MemoryInfo"]["Heap 0"].clone());
    assert_eq!(found, SnapshotFault::HeapMissing { heap: 1 });
    let found = fault(|file| {
        let types = &mut file["MemoryInfo"]["Heap 0"]["MemoryPools"];
        types["Type 2"] = types["Type 0"].clone();
    });
    assert_eq!(found, SnapshotFault::TypeMissing { memory_type: 1 });
    let found = fault(|file| file["CustomPools"]["Type 4"] = file["CustomPools"]["Type 0"].clone());
    assert_eq!(found, SnapshotFault::NoSuchType { memory_type: 4, types: 1 });
    let found = fault(|file| {
        file["DefaultPools"]["Type 0"]["Blocks"]["0"]["Suballocations"][2]["Size"] = json!(3000);
    });
    assert_eq!(found, SnapshotFault::Overlap { end_of_previous: 4024 });
    // Invalid and repeated keys are errors.
    for (from, to) in
        [("\"Type 0\"", "\"Type x\""), ("\"Heap 0\"", "\"Heap 99999999999\""), ("\"1\": {", "\"0\": {")]
    {
        let found = Snapshot::from_json(&FIXTURE.replace(from, to));
        assert!(matches!(found, Err(ReadSnapshotError::Json { line: 1.., .. })), "{found:?}");
    }
}

/// C's `%p` writes `0x2a` or `000000000000002A`.
#[test]
fn user_data_is_read_however_the_platform_wrote_it() {
    for (text, value) in
        [("0x2a", Some(0x2a)), ("000000000000002A", Some(0x2a)), ("0X2a", Some(0x2a)), ("+2a", None)]
    {
        let read = Snapshot::from_json(&FIXTURE.replace("0xdeadbeefcafe1234", text));
        let found = read.ok().map(|it| it.allocations().last().unwrap().entry.user_data.unwrap());
        assert_eq!(found, value, "{text}");
    }
}
