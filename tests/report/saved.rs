//! Snapshots that are saved and read again.

use ash::vk;
use sublet::report::{ReadSnapshotError, Snapshot, SnapshotFault};
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, PoolCreateInfo, Tracking,
    sim,
};

#[test]
fn what_is_saved_is_read_again() {
    for name in ["lavapipe", "nvidia-rtx-3080"] {
        let Some(profile) = sim::Profile::by_name(name) else { continue };
        let gpu = sim::Gpu::new(profile);
        let info = AllocatorCreateInfo {
            tracking: Tracking::USER_DATA | Tracking::CALLER,
            ..AllocatorCreateInfo::for_gpu(&gpu)
        };
        // SAFETY: the GPU outlives the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        let pool =
            allocator.create_pool(&PoolCreateInfo { name: Some("a \"pool\""), ..PoolCreateInfo::new(0) });
        let pool = pool.unwrap();
        let requirements = vk::MemoryRequirements { size: 5000, alignment: 256, memory_type_bits: !0 };
        let own = AllocationCreateInfo {
            flags: AllocationCreateFlags::DEDICATED_MEMORY,
            user_data: u64::MAX,
            ..AllocationCreateInfo::default()
        };
        let named =
            AllocationCreateInfo { name: Some("</script>\n\u{1}"), ..AllocationCreateInfo::in_pool(&pool) };
        let held = [&own, &named, &AllocationCreateInfo::default()]
            .map(|info| allocator.allocate_memory(&requirements, info).unwrap());
        let snapshot = Snapshot::of(&allocator);
        let read = Snapshot::from_json(&snapshot.to_json()).unwrap();
        assert_eq!(read, snapshot);
        assert_eq!(read.statistics(), allocator.calculate_statistics());
        let ids: Vec<_> = read.allocations().map(|found| found.entry.id.clone().unwrap()).collect();
        for allocation in &held {
            assert!(ids.contains(&allocation.id().to_string().into()));
        }
        assert!(read.allocations().any(|found| found.entry.user_data == Some(u64::MAX)));
        for allocation in held {
            // SAFETY: nothing was bound to it.
            unsafe { allocator.free_memory(allocation) }.unwrap();
        }
        // SAFETY: nothing is in it.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
        drop(allocator);
        gpu.assert_silent();
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let text = r#"{"format":"sublet-memory-map","version":1,"title":null,"device":{},
"heaps":[{"size":100,"flags":[],"budget":80,"usage":0}],"types":[{"heap":0,"flags":[]}],
"vectors":[{"memory_type":0,"heap":0,"pool":null,"name":null,"algorithm":"Tlsf","block_size":64,
"blocks":[{"id":3,"size":64,"map_count":0,"chunks":[{"offset":0,"size":16,"allocation":null},{"offset":16,"size":48,"allocation":null}]}],
"dedicated":[]}]}"#;
    Snapshot::from_json(text).unwrap();
    let fault = |from: &str, to: &str| match Snapshot::from_json(&text.replacen(from, to, 1)).unwrap_err() {
        ReadSnapshotError::Contradiction { fault, .. } => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        fault(r#""types":[{"heap":0"#, r#""types":[{"heap":1"#),
        SnapshotFault::NoSuchHeap { heap: 1, heaps: 1 }
    );
    assert_eq!(fault(r#""offset":16"#, r#""offset":15"#), SnapshotFault::Overlap { end_of_previous: 16 });
    assert_eq!(
        fault(r#""size":48"#, r#""size":49"#),
        SnapshotFault::BeyondBlock { size: 49, block_size: 64 }
    );
}
