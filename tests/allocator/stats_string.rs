//! The statistics string: the members of its schema, its values, and the requirements of readers such as VMA's own
//! tool.

use serde_json::{Map, Value};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateInfo,
    DetailedStatistics, MemoryUsage, PoolCreateInfo, Tracking, VirtualAllocationCreateInfo, VirtualBlock,
    VirtualBlockCreateInfo,
};

use crate::common::*;

/// Checks that the object has all members of `needed` and only further ones of `allowed`, in this order.
fn members<'a>(value: &'a Value, needed: &[&str], allowed: &[&str]) -> &'a Map<String, Value> {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    for name in needed {
        assert!(object.contains_key(*name), "{name} is missing in {value}");
    }
    for name in object.keys() {
        assert!(needed.contains(&name.as_str()) || allowed.contains(&name.as_str()), "{name} in {value}");
    }
    object
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

/// Returns the number in a key such as `Type 3`.
fn numbered(key: &str, kind: &str) -> u32 {
    key.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')).unwrap().parse().unwrap()
}

fn check_statistics(value: &Value, expected: &DetailedStatistics) {
    let needed = ["BlockCount", "BlockBytes", "AllocationCount", "AllocationBytes", "UnusedRangeCount"];
    let mut extremes = Vec::new();
    if expected.statistics.allocation_count > 1 {
        extremes.push(("AllocationSizeMin", expected.allocation_size_min));
        extremes.push(("AllocationSizeMax", expected.allocation_size_max));
    }
    if expected.unused_range_count > 1 {
        extremes.push(("UnusedRangeSizeMin", expected.unused_range_size_min));
        extremes.push(("UnusedRangeSizeMax", expected.unused_range_size_max));
    }
    let names: Vec<_> = needed.into_iter().chain(extremes.iter().map(|(name, _)| *name)).collect();
    let all = members(value, &names, &[]);
    let sums = &expected.statistics;
    let values = [sums.block_count, sums.block_bytes, sums.allocation_count, sums.allocation_bytes];
    for (name, expected) in needed.into_iter().zip(values.into_iter().chain([expected.unused_range_count])) {
        assert_eq!(number(&all[name]), expected, "{name}");
    }
    for (name, expected) in extremes {
        assert_eq!(number(&all[name]), expected, "{name}");
    }
}

fn check_flags(value: &Value, names: &[&str]) {
    let mut numbers = 0;
    for flag in list(value) {
        match flag {
            Value::String(name) => assert!(names.contains(&name.as_str()), "{name}"),
            number => {
                assert!(number.as_u64().is_some_and(|rest| rest != 0), "{number}");
                numbers += 1;
            }
        }
    }
    assert!(numbers <= 1);
}

const KINDS: [&str; 5] = ["UNKNOWN", "BUFFER", "IMAGE_UNKNOWN", "IMAGE_LINEAR", "IMAGE_OPTIMAL"];

/// Checks the members of an allocation besides its offset.
fn check_allocation(object: &Map<String, Value>) {
    assert!(KINDS.contains(&text(&object["Type"])), "{object:?}");
    number(&object["Usage"]);
    if let Some(data) = object.get("CustomData") {
        let data = text(data);
        assert!(!data.is_empty() && data.bytes().all(|b| b.is_ascii_alphanumeric()), "{data}");
    }
    if let Some(name) = object.get("Name") {
        text(name);
    }
}

/// Checks `TotalBytes` and related members, and that the chunks tile the block. The caller checks allocations.
fn check_chunks(block: &Map<String, Value>, allocation: impl Fn(&Value)) {
    let (mut end, mut used, mut free, mut unused_bytes) = (0, 0, 0, 0);
    for chunk in list(&block["Suballocations"]) {
        assert_eq!(number(&chunk["Offset"]), end, "in the order of addresses, without gaps");
        let size = number(&chunk["Size"]);
        end += size;
        if chunk.get("Type").is_some_and(|kind| kind == "FREE") {
            members(chunk, &["Offset", "Type", "Size"], &[]);
            free += 1;
            unused_bytes += size;
        } else {
            used += 1;
            allocation(chunk);
        }
    }
    let shown = ["TotalBytes", "UnusedBytes", "Allocations", "UnusedRanges"].map(|name| number(&block[name]));
    assert_eq!(shown, [end, unused_bytes, used, free]);
}

fn check_vector(value: &Value, names: &[&str]) {
    let needed: Vec<_> =
        names.iter().copied().chain(["PreferredBlockSize", "Blocks", "DedicatedAllocations"]).collect();
    let vector = members(value, &needed, &[]);
    assert!(number(&vector["PreferredBlockSize"]) > 0);
    for (id, block) in vector["Blocks"].as_object().unwrap() {
        id.parse::<u32>().unwrap();
        let needed =
            ["MapRefCount", "TotalBytes", "UnusedBytes", "Allocations", "UnusedRanges", "Suballocations"];
        let block = members(block, &needed, &[]);
        number(&block["MapRefCount"]);
        check_chunks(block, |chunk| {
            check_allocation(members(chunk, &["Offset", "Type", "Size", "Usage"], &["CustomData", "Name"]));
        });
    }
    for dedicated in list(&vector["DedicatedAllocations"]) {
        check_allocation(members(dedicated, &["Type", "Size", "Usage"], &["CustomData", "Name"]));
        assert!(number(&dedicated["Size"]) > 0);
    }
}

/// Checks the whole schema, and compares its figures with the allocator's.
fn check_schema(fixture: &Fixture, json: &str, detailed: bool) -> Value {
    let root: Value = serde_json::from_str(json).unwrap();
    let statistics = fixture.allocator.calculate_statistics();
    let needed: &[&str] = if detailed {
        &["General", "Total", "MemoryInfo", "DefaultPools", "CustomPools"]
    } else {
        &["General", "Total", "MemoryInfo"]
    };
    members(&root, needed, &[]);
    let needed = [
        "API",
        "apiVersion",
        "GPU",
        "deviceType",
        "maxMemoryAllocationCount",
        "bufferImageGranularity",
        "nonCoherentAtomSize",
        "memoryHeapCount",
        "memoryTypeCount",
    ];
    let general = members(&root["General"], &needed, &[]);
    let profile = fixture.profile();
    assert_eq!(general["API"], "Vulkan");
    let properties = fixture.allocator.physical_device_properties();
    assert_eq!(text(&general["GPU"]), properties.device_name_as_c_str().unwrap().to_str().unwrap());
    assert_eq!(text(&general["apiVersion"]).split('.').count(), 3);
    assert_eq!(number(&general["deviceType"]), properties.device_type.as_raw() as u64);
    assert_eq!(number(&general["bufferImageGranularity"]), profile.limits.buffer_image_granularity);
    assert_eq!(number(&general["memoryHeapCount"]), profile.heaps.len() as u64);
    assert_eq!(number(&general["memoryTypeCount"]), profile.types.len() as u64);
    check_statistics(&root["Total"], &statistics.total);
    let budgets = fixture.allocator.heap_budgets();
    let heaps = root["MemoryInfo"].as_object().unwrap();
    assert_eq!(heaps.len(), profile.heaps.len());
    let mut types = 0;
    for (key, heap) in heaps {
        let at = numbered(key, "Heap");
        let heap = members(heap, &["Flags", "Size", "Budget", "Stats", "MemoryPools"], &[]);
        check_flags(&heap["Flags"], &["DEVICE_LOCAL", "MULTI_INSTANCE"]);
        assert_eq!(number(&heap["Size"]), profile.heaps[at as usize].size);
        let budget = members(&heap["Budget"], &["BudgetBytes", "UsageBytes"], &[]);
        let expected = budgets[at as usize];
        assert_eq!(number(&budget["BudgetBytes"]), expected.budget);
        assert_eq!(number(&budget["UsageBytes"]), expected.usage);
        check_statistics(&heap["Stats"], &statistics.memory_heaps[at as usize]);
        for (key, kind) in heap["MemoryPools"].as_object().unwrap() {
            let number = numbered(key, "Type");
            assert_eq!(fixture.heap_of(number), at);
            let names = [
                "DEVICE_LOCAL",
                "HOST_VISIBLE",
                "HOST_COHERENT",
                "HOST_CACHED",
                "LAZILY_ALLOCATED",
                "PROTECTED",
                "DEVICE_COHERENT_AMD",
                "DEVICE_UNCACHED_AMD",
            ];
            let kind = members(kind, &["Flags", "Stats"], &[]);
            check_flags(&kind["Flags"], &names);
            let named = list(&kind["Flags"]).iter().filter(|flag| flag.is_string()).count();
            assert_eq!(named as u32, fixture.properties(number).as_raw().count_ones());
            let has_number = list(&kind["Flags"]).iter().any(Value::is_number);
            assert_eq!(has_number, fixture.properties(number).contains(PROTECTED), "as VMA shows it");
            check_statistics(&kind["Stats"], &statistics.memory_types[number as usize]);
            types += 1;
        }
    }
    assert_eq!(types, profile.types.len());
    if detailed {
        let shown: Vec<u32> =
            root["DefaultPools"].as_object().unwrap().keys().map(|key| numbered(key, "Type")).collect();
        let mut expected = fixture.types();
        // `serde_json` sorts keys as text.
        expected.sort_by_key(|number| format!("Type {number}"));
        assert_eq!(shown, expected, "types that are never used have no entry");
        root["DefaultPools"].as_object().unwrap().values().for_each(|vector| check_vector(vector, &[]));
        for pools in root["CustomPools"].as_object().unwrap().values() {
            for (at, pool) in list(pools).iter().enumerate() {
                check_vector(pool, &["Name"]);
                let name = text(&pool["Name"]);
                assert!(name == at.to_string() || name.starts_with(&format!("{at} - ")), "{name}");
            }
        }
    }
    root
}

/// Adds up the chunks of each bar as GpuMemDumpVis does.
fn bars(root: &Value) -> Vec<(String, u64, u64)> {
    let mut bars = Vec::new();
    let mut add = |vector: &Value, name: &str| {
        for block in vector["Blocks"].as_object().unwrap().values() {
            let chunks = list(&block["Suballocations"]);
            let used = chunks.iter().filter(|chunk| text(&chunk["Type"]) != "FREE");
            let used = used.map(|chunk| {
                // The tool reads `Usage` of some types only, and treats a missing one as unknown.
                let _ = chunk.get("Usage").map_or(0, number);
                number(&chunk["Size"])
            });
            bars.push((name.to_owned(), number(&block["TotalBytes"]), used.sum()));
        }
        for dedicated in list(&vector["DedicatedAllocations"]) {
            text(&dedicated["Type"]);
            number(&dedicated["Usage"]);
            bars.push((name.to_owned(), number(&dedicated["Size"]), number(&dedicated["Size"])));
        }
    };
    assert_eq!(text(&root["General"]["API"]), "Vulkan");
    for vector in root["DefaultPools"].as_object().unwrap().values() {
        add(vector, "");
    }
    for pools in root["CustomPools"].as_object().unwrap().values() {
        list(pools).iter().for_each(|pool| add(pool, text(&pool["Name"])));
    }
    bars
}

fn tracked(profile: &'static sublet::sim::profiles::Profile) -> Held<Fixture> {
    let gpu = sublet::sim::Gpu::new(profile);
    let info =
        AllocatorCreateInfo { flags: enabled(&gpu), tracking: Tracking::USER_DATA, ..create_info(&gpu) };
    // SAFETY: a fixture keeps its GPU alive until its allocator is dropped.
    let allocator = unsafe { sublet::Allocator::new(&info) }.unwrap();
    hold(Fixture { allocator, gpu })
}

#[test]
fn the_schema_holds_whatever_is_allocated() {
    on_every_profile(|profile| {
        let fixture = tracked(profile);
        check_schema(&fixture, &sublet_report::stats_string(&fixture.allocator, false), false);
        check_schema(&fixture, &sublet_report::stats_string(&fixture.allocator, true), true);
        let types = fixture.types();
        let of_type =
            |memory_type| PoolCreateInfo { block_size: 128 * KIB, ..PoolCreateInfo::new(memory_type) };
        let pools = [
            fixture.pool(&PoolCreateInfo { name: Some("first \"pool\""), ..of_type(types[0]) }).unwrap(),
            fixture.pool(&of_type(types[0])).unwrap(),
            fixture
                .pool(&PoolCreateInfo { algorithm: Algorithm::Linear, ..of_type(types[types.len() - 1]) })
                .unwrap(),
        ];
        let mut random = Random::new(20);
        let mut held: Vec<Allocation> = Vec::new();
        for round in 0..from_environment("SUBLET_CASES", 64) {
            if held.len() > 8 && random.below(3) == 0 {
                fixture.free(held.swap_remove(random.below(held.len() as u64) as usize));
            } else {
                let dedicated = random.below(4) == 0;
                let flags = if dedicated { Flags::DEDICATED_MEMORY } else { Flags::empty() };
                let pool = &pools[random.below(3) as usize];
                let info = if !dedicated && random.below(2) == 0 {
                    AllocationCreateInfo::in_pool(pool)
                } else {
                    in_type_with(random.pick(&types), flags)
                };
                let name = (random.below(3) == 0).then_some("a\tname \\ with \"quotes\" and \u{1}");
                let info = AllocationCreateInfo { name, user_data: random.below(4), ..info };
                held.push(fixture.memory(random.size(14), 1, &info).unwrap());
            }
            if round % 16 == 0 {
                check_schema(&fixture, &sublet_report::stats_string(&fixture.allocator, true), true);
            }
        }
        check_schema(&fixture, &sublet_report::stats_string(&fixture.allocator, false), false);
        let root = check_schema(&fixture, &sublet_report::stats_string(&fixture.allocator, true), true);
        let all = fixture.allocator.statistics();
        let bars = bars(&root);
        assert_eq!(bars.len() as u64, all.block_count);
        assert_eq!(bars.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), all.block_bytes);
        assert_eq!(bars.iter().map(|(_, _, used)| used).sum::<u64>(), all.allocation_bytes);
        let named = bars.iter().any(|(name, ..)| name == "0 - first \"pool\"");
        assert_eq!(named, fixture.allocator.pool_statistics(&pools[0]).unwrap().block_count > 0);
        fixture.free_all(held);
        pools.into_iter().for_each(|pool| fixture.destroy_pool(pool));
    });
}

/// Compares the exact text, which tools search and people read.
#[test]
fn the_layout_is_vma_s() {
    let fixture = tracked(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = PoolCreateInfo { block_size: 1024, name: Some("ring"), ..PoolCreateInfo::new(0) };
    let pool = fixture.pool(&info).unwrap();
    let unnamed = fixture.pool(&PoolCreateInfo { block_size: 1024, ..PoolCreateInfo::new(0) }).unwrap();
    let info =
        AllocationCreateInfo { user_data: 0x2a, name: Some("x"), ..AllocationCreateInfo::in_pool(&pool) };
    let shared = fixture.memory(256, 1, &info).unwrap();
    let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..AllocationCreateInfo::default() };
    let own = fixture.memory(64, 1, &own).unwrap();
    let json = sublet_report::stats_string(&fixture.allocator, true);
    let details = &json[json.find("  \"DefaultPools\"").unwrap()..];
    let preferred = fixture.block_size(0);
    let expected = format!(
        r#"  "DefaultPools": {{
    "Type 0": {{
      "PreferredBlockSize": {preferred},
      "Blocks": {{}},
      "DedicatedAllocations": [
        {{ "Type": "UNKNOWN", "Size": 64, "Usage": 0 }}
      ]
    }}
  }},
  "CustomPools": {{
    "Type 0": [
      {{
        "Name": "0 - ring",
        "PreferredBlockSize": 1024,
        "Blocks": {{
          "0": {{
            "MapRefCount": 0,
            "TotalBytes": 1024,
            "UnusedBytes": 768,
            "Allocations": 1,
            "UnusedRanges": 1,
            "Suballocations": [
              {{ "Offset": 0, "Type": "UNKNOWN", "Size": 256, "Usage": 0, "CustomData": "0x2a", "Name": "x" }},
              {{ "Offset": 256, "Type": "FREE", "Size": 768 }}
            ]
          }}
        }},
        "DedicatedAllocations": []
      }},
      {{
        "Name": "1",
        "PreferredBlockSize": 1024,
        "Blocks": {{}},
        "DedicatedAllocations": []
      }}
    ]
  }}
}}"#
    );
    assert_eq!(details, expected);
    assert!(
        json.starts_with("{\n  \"General\": {\n    \"API\": \"Vulkan\",\n    \"apiVersion\": \"1."),
        "{json}"
    );
    fixture.free_all([shared, own]);
    fixture.destroy_pool(unnamed);
    fixture.destroy_pool(pool);
}

#[test]
fn kinds_and_usages_are_named() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let usage = ash::vk::BufferUsageFlags::UNIFORM_BUFFER;
    let buffer = fixture.buffer(100, usage, &auto).unwrap();
    let image = fixture.image(&square(16, ash::vk::ImageUsageFlags::SAMPLED), &auto).unwrap();
    let linear = square(16, ash::vk::ImageUsageFlags::SAMPLED).tiling(ash::vk::ImageTiling::LINEAR);
    let linear = fixture.image(&linear, &auto).unwrap();
    let json = sublet_report::stats_string(&fixture.allocator, true);
    for (kind, usage) in [("BUFFER", 16), ("IMAGE_OPTIMAL", 4), ("IMAGE_LINEAR", 4)] {
        let found = json.lines().filter(|line| {
            line.contains(&format!("\"Type\": \"{kind}\"")) && line.contains(&format!("\"Usage\": {usage}"))
        });
        assert_eq!(found.count(), 1, "{kind}: {json}");
    }
    fixture.destroy_buffer(buffer);
    fixture.destroy_image(image);
    fixture.destroy_image(linear);
}

#[test]
fn virtual_blocks_have_a_string_too() {
    for algorithm in [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy] {
        let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 4096, algorithm }).unwrap();
        let mut random = Random::new(17);
        let mut held = Vec::new();
        for _ in 0..20 {
            let user_data = random.below(3);
            let info = VirtualAllocationCreateInfo { size: random.size(8), user_data, ..Default::default() };
            held.extend(block.allocate(&info));
            if random.below(3) == 0 {
                block.free(held.remove(0)).unwrap();
            }
            for detailed in [false, true] {
                let root: Value =
                    serde_json::from_str(&sublet_report::virtual_block_stats_string(&block, detailed))
                        .unwrap();
                let needed: &[&str] = if detailed { &["Stats", "Details"] } else { &["Stats"] };
                members(&root, needed, &[]);
                check_statistics(&root["Stats"], &block.detailed_statistics());
                if detailed {
                    let needed =
                        ["TotalBytes", "UnusedBytes", "Allocations", "UnusedRanges", "Suballocations"];
                    let details = members(&root["Details"], &needed, &[]);
                    assert_eq!(number(&details["TotalBytes"]), 4096);
                    check_chunks(details, |chunk| {
                        members(chunk, &["Offset", "Size"], &["CustomData"]);
                    });
                }
            }
        }
        held.into_iter().for_each(|it| block.free(it).unwrap());
    }
}
