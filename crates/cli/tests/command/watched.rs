//! Recordings of programs that allocate their memory by themselves.

use ash::vk;
use sublet::private::foreign_recording;
use sublet::trace::{Event, Record, Trace};

use crate::Folder;
use crate::program::Watched;

const MIB: u64 = 1 << 20;

/// A program with one small buffer in each of twelve blocks, which it never frees.
fn scattered() -> Trace {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let kind = game.type_with(vk::MemoryPropertyFlags::DEVICE_LOCAL);
    for number in 0..12 {
        let block = game.allocate(kind, 16 * MIB);
        let buffer = game.buffer(MIB, vk::BufferUsageFlags::VERTEX_BUFFER);
        game.bind(buffer, block, 0);
        game.name(buffer, &format!("mesh {number} <&>\u{1b}[31m"));
        game.event(Event::Presented);
    }
    game.event(Event::DeviceDestroyed);
    game.trace
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("watched.trace", foreign_recording(&scattered()));
    folder
}

#[test]
fn a_foreign_recording_is_shown_at_any_moment() {
    let folder = folder();
    let sums = |at: &str| {
        let json = folder.run(&format!("report --trace watched.trace --at {at} --json")).expect(0).json();
        (json["total"]["block_bytes"].as_u64().unwrap(), json["total"]["allocation_bytes"].as_u64().unwrap())
    };
    assert_eq!(sums("peak"), (192 * MIB, 12 * MIB));
    assert_eq!(sums("end"), (0, 0), "the device is gone");
    assert_eq!(sums("2"), (48 * MIB, 3 * MIB));
    folder.run("report --trace watched.trace --at 12").expect(3);
    folder.run("report --trace watched.trace -o map.html").expect(0);
    assert!(folder.read("map.html").contains("mesh 7"));
}

#[test]
fn its_requests_are_replayed_and_compared() {
    let folder = folder();
    let replayed = folder.run("replay watched.trace --json --no-progress").expect(0).json();
    assert_eq!(replayed["result"]["memory"]["peak_used"], 12 * MIB);
    assert_eq!(replayed["result"]["unknown"], 0);
    let text = folder.run("replay watched.trace --compare").expect(0).out;
    assert!(text.contains("the program itself") && text.contains("one allocation each"), "{text}");
    let json = folder.run("replay watched.trace --compare --json").expect(0).json();
    let outcomes = json["outcomes"].as_array().unwrap();
    assert_eq!(outcomes[0]["peak_reserved_bytes"], 192 * MIB);
    assert!(outcomes[1]["peak_reserved_bytes"].as_u64().unwrap() < 64 * MIB, "{json}");
    folder.run("replay watched.trace --compare --map map.json").expect(2);
}

#[test]
fn findings_are_text_json_and_junit() {
    let folder = folder();
    let text = folder.run("report watched.trace --findings text").expect(0).out;
    for part in ["nearly-empty (saves 180 MiB)", "kept alive by", "leak", "preset", "94 % unused"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "a name controls no terminal");
    let json = folder.run("report watched.trace --findings json").expect(0).json();
    assert_eq!((&json["format"], &json["peak_memory_count"]), (&"sublet-findings".into(), &12.into()));
    assert_eq!(json, folder.run("report --trace watched.trace --findings text --json").expect(0).json());
    let xml = folder.run("report watched.trace --findings junit").expect(0).out;
    assert!(
        xml.starts_with("<?xml") && xml.contains("nearly-empty") && xml.contains("failures=\"0\""),
        "{xml}"
    );
    assert!(xml.contains("&lt;&amp;&gt;") && !xml.contains('\u{1b}'), "{xml}");
    folder.run("report watched.trace --findings junit -o findings.xml").expect(0);
    assert_eq!(folder.read("findings.xml").trim_end(), xml.trim_end());
}

#[test]
fn limits_end_with_exit_code_1() {
    let folder = folder();
    folder.run("report watched.trace --fail-on waste=95% --fail-on allocations=12").expect(0);
    for limit in ["waste=30%", "leak", "allocations=11"] {
        let found = folder.run(&format!("report watched.trace --fail-on {limit}")).expect(1);
        assert!(found.out.contains(&format!("FAILED {limit}")), "{}", found.out);
    }
    let both = "report watched.trace --findings junit -o ci.xml --fail-on waste=30% --fail-on allocations=50";
    let found = folder.run(both).expect(1);
    assert!(found.out.contains("FAILED waste=30%"), "{}", found.out);
    let xml = folder.read("ci.xml");
    assert!(xml.contains("failures=\"1\"") && xml.contains("name=\"allocations=50\""), "{xml}");
    let json = folder.run("report watched.trace --fail-on leak --json").expect(1).json();
    assert_eq!(json["breaches"].as_array().unwrap().len(), 1);
    let wrong = folder.run("report watched.trace --fail-on speed=1").expect(2);
    assert!(wrong.err.contains("allocations=NUMBER"), "{}", wrong.err);
    folder.run("report watched.trace --findings text --at end").expect(2);
}

#[test]
fn a_damaged_recording_is_refused_and_read_in_part() {
    let folder = Folder::new();
    let mut bytes = foreign_recording(&scattered());
    bytes[(1 << 16) + 32 + 100] = 0xFF;
    folder.write("damaged.trace", &bytes);
    for command in
        ["report --trace damaged.trace", "report damaged.trace --findings text", "replay damaged.trace"]
    {
        let refused = folder.run(command).expect(3);
        assert!(refused.err.contains("--partial"), "{}", refused.err);
        folder.run(&format!("{command} --partial")).expect(0);
    }
    // Neither a recording nor a map.
    folder.write("noise.trace", [7; 100]);
    folder.run("report noise.trace --findings text").expect(3);
}

#[test]
fn findings_of_an_allocator_need_no_layer() {
    let folder = Folder::new();
    let path = crate::repository().join("tests/traces/defragment.trace");
    std::fs::copy(path, folder.path("own.trace")).unwrap();
    let json = folder.run("report own.trace --findings json").expect(0).json();
    assert_eq!(json["is_foreign"], false);
    assert!(json["at_peak"]["reserved_bytes"].as_u64().unwrap() > 0);
    folder.run("report own.trace --fail-on waste=0.1%").expect(1);
    let empty = Trace { records: vec![Record::default()], ..Trace::default() };
    folder.write("empty.trace", foreign_recording(&empty));
    let text = folder.run("report empty.trace --findings text").expect(0).out;
    assert!(text.contains("No findings"), "{text}");
}
