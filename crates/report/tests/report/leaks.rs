//! Leaks on a page.

use sublet::sim::{Gpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo, ResourceKind};
use sublet_report::{Page, Snapshot};

/// A `Leak` has no public constructor. This one comes from an allocator, and the test then fills in its fields.
#[test]
fn leaks_have_their_user_data_as_text() {
    let gpu = Gpu::new(Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    // SAFETY: the GPU outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let needs = ash::vk::MemoryRequirements { size: 70_000, alignment: 256, memory_type_bits: !0 };
    let _lost = allocator.allocate_memory(&needs, &Default::default()).unwrap();
    let snapshot = Snapshot::of(&allocator);
    let mut leaks = allocator.destroy();
    let leak = &mut leaks[0];
    leak.name = Some("lost".into());
    leak.size = 70_000;
    leak.kind = ResourceKind::ImageOptimal;
    leak.memory_type_index = 2;
    leak.pool = Some("streaming".into());
    leak.pool_number = Some(3);
    leak.user_data = Some(u64::MAX);
    leak.caller = None;
    let html = Page::new(&snapshot).leaks(&leaks).to_html();
    let (_, data) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let expected = serde_json::json!([{
        "name": "lost", "kind": "IMAGE_OPTIMAL", "size": 70_000, "memory_type": 2, "pool": "streaming",
        "user_data": "0xffffffffffffffff", "caller": null,
    }]);
    assert_eq!(data["leaks"], expected);
}
