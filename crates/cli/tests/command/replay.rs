//! `sublet replay`.

use serde_json::Value;
use sublet::trace::Trace;

use super::files;
use super::has_vulkan;

#[test]
fn a_replay_says_how_long_calls_take_and_how_much_memory_there_was() {
    let folder = files::folder();
    let found = folder.run("replay frames.trace").expect(0);
    for text in
        ["on NVIDIA H200, simulated", "allocate", "p99.9", "peak reserved", "40 MiB", "Placements: 0x"]
    {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
    // Without a terminal there is no bar.
    assert!(found.err.is_empty(), "{}", found.err);
    let document = folder.run("replay frames.trace --json --no-progress").expect(0).json();
    assert_eq!((&document["format"], &document["version"]), (&"sublet-replay".into(), &1.into()));
    assert_eq!(document["result"]["calls"]["allocate"]["made"], 40);
    assert_eq!(document["result"]["memory"]["peak_used"], 40 << 20);
    assert!(document["times"]["calls"]["allocate"]["p99"].as_u64().unwrap() > 0);
    assert!(document["differences"].is_null());
}

/// The trace has 40 allocations of 1 MiB, and the default growth.
#[test]
fn a_replay_takes_other_block_sizes() {
    let folder = files::folder();
    let peak = |arguments: &str| {
        let found = folder.run(&format!("replay frames.trace --json {arguments}")).expect(0).json();
        found["result"]["memory"]["peak_reserved"].as_u64().unwrap() >> 20
    };
    let (recorded, vma) = (peak(""), peak("--growth vma"));
    let (balanced, least) = (peak("--growth balanced"), peak("--growth memory-first"));
    assert_eq!((recorded, vma, peak("--block-size 16")), (balanced, 96, 48));
    // The sizes of the first are multiples of 1 MiB, those of the second of 4 MiB.
    assert_eq!((least, balanced), (41, 40));
    let found = folder.run("replay frames.trace --growth memory-first").expect(0);
    assert!(found.out.contains(", with growth memory-first"), "{}", found.out);
    let found = folder.run("replay frames.trace --growth doubling").expect(2);
    assert!(found.err.contains("the presets are balanced, memory-first, vma"), "{}", found.err);
    folder.run("replay frames.trace --growth vma --block-size 4").expect(2);
}

#[test]
fn the_same_trace_comes_to_the_same_and_another_does_not() {
    let folder = files::folder();
    let found = folder.run("replay frames.trace --expect frames.json").expect(0);
    assert!(found.out.contains("As expected."), "{}", found.out);
    folder.write("other.trace", files::trace(3 << 20));
    let found = folder.run("replay other.trace --expect frames.json").expect(1);
    assert!(found.out.contains("Not as expected") && found.out.contains("/peak_used"), "{}", found.out);
    let document = folder.run("replay other.trace --expect frames.json --json").expect(1).json();
    let differences = document["differences"].as_array().unwrap();
    assert!(differences.iter().any(|difference| difference["where"] == "/placements"));
}

/// The results beside committed traces are listed by device.
#[test]
fn an_expected_result_may_be_one_of_several_devices() {
    let folder = files::folder();
    let replayed: Value = serde_json::from_str(&folder.read("frames.json")).unwrap();
    let all = serde_json::json!({ "recorded device": replayed["result"], "lavapipe": {} });
    folder.write("all.json", all.to_string());
    folder.run("replay frames.trace --expect all.json").expect(0);
    folder.run("replay frames.trace --expect all.json --device sim:lavapipe").expect(1);
    let found = folder.run("replay frames.trace --expect all.json --device sim:nvidia-gtx-1060").expect(3);
    assert!(found.err.contains("nvidia-gtx-1060"), "{}", found.err);
    folder.run("replay frames.trace --expect map.json").expect(3);
    folder.run("replay frames.trace --expect nothing.json").expect(3);
}

#[test]
fn a_trace_is_replayed_on_other_devices() {
    let folder = files::folder();
    for device in ["sim:lavapipe", "sim:amd-rx-6800-windows", "profile.json"] {
        let document = folder.run(&format!("replay frames.trace --json --device {device}")).expect(0).json();
        assert_eq!(document["result"]["memory"]["peak_used"], 40 << 20, "{device}");
    }
    if has_vulkan() {
        folder.run("replay frames.trace --device 0").expect(0);
    }
}

/// A short trace that claims a device with 70 TiB and maps much of it.
#[test]
fn a_trace_takes_no_more_of_the_machine_than_it_may() {
    let folder = files::folder();
    let trace = files::greedy_trace();
    assert!(trace.len() < 1000, "{}", trace.len());
    folder.write("greedy.trace", trace);
    let found = folder.run("replay greedy.trace --memory-limit 16 --json").expect(0);
    assert!(
        found.err.contains("SUBLET-memory-limit") && found.err.contains("16777216 bytes"),
        "{}",
        found.err
    );
    let result = &found.json()["result"];
    assert_eq!(result["calls"]["map"]["failed"], 4, "{result}");
    assert_eq!(result["calls"]["map"]["made"], 5, "{result}");
    // Without a limit, half of the machine's memory applies, which may be enough.
    folder.run("replay greedy.trace").expect(0);
    folder.run("report --trace greedy.trace --memory-limit 16").expect(0);
    folder.run("report map.json --memory-limit 16").expect(2);
    folder.run("replay greedy.trace --memory-limit much").expect(2);
}

#[test]
fn the_map_at_the_end_is_a_map() {
    let folder = files::folder();
    folder.run("replay frames.trace --map left.json").expect(0);
    let found = folder.run("report left.json").expect(0);
    assert!(found.out.contains("30 MiB used (allocations: 30)"), "{}", found.out);
    folder.run("replay frames.trace --map nowhere/left.json").expect(3);
}

/// The page has the blocks of the replay, whose sizes follow `--growth`.
#[test]
fn the_plot_shows_the_replayed_growth() {
    let folder = files::folder();
    let reserved = |arguments: &str| {
        folder.run(&format!("replay frames.trace --plot memory.html {arguments}")).expect(0);
        let page = folder.read("memory.html");
        let (_, after) = page.split_once(r#""memories":"#).unwrap();
        let memories =
            serde_json::Deserializer::from_str(after).into_iter::<Value>().next().unwrap().unwrap();
        let sizes = memories["size"].as_array().unwrap();
        (page, sizes.iter().map(|size| size.as_u64().unwrap()).sum::<u64>() >> 20)
    };
    let (page, bytes) = reserved("--growth vma");
    assert!(page.contains("NVIDIA H200, simulated, with growth vma"));
    assert_eq!(bytes, 96);
    let (_, bytes) = reserved("--growth memory-first --device sim:lavapipe");
    assert!(bytes < 64, "{bytes}");
    folder.run("replay frames.trace --plot nowhere/memory.html").expect(3);
    folder.run("replay frames.trace --plot memory.html --compare").expect(2);
}

#[test]
fn damaged_traces_are_refused_with_the_place() {
    let folder = files::folder();
    let whole = files::trace(1 << 20);
    folder.write("half.trace", &whole[..whole.len() / 2]);
    let found = folder.run("replay half.trace").expect(3);
    assert!(found.err.contains("half.trace cannot be read as a trace: byte "), "{}", found.err);
    // A killed program leaves a trace without an end.
    folder.write("killed.trace", &whole[..whole.len() - 4]);
    let found = folder.run("replay killed.trace").expect(3);
    assert!(found.err.contains("--partial takes the 60 events"), "{}", found.err);
    let partial = folder.run("replay killed.trace --partial").expect(0);
    assert!(partial.err.contains("killed.trace is not whole, 60 events are"), "{}", partial.err);
    folder.run("report --trace killed.trace --partial").expect(0);
    // A trace that was cut before the first event has only a header.
    let header = files::empty_trace();
    let cut = (16..whole.len()).find(|&at| Trace::read_prefix(&whole[..at]).is_ok()).unwrap();
    for bytes in [&whole[..cut], &whole[..cut + 100], &header[..header.len() - 1]] {
        folder.write("early.trace", bytes);
        for call in
            ["replay early.trace", "replay early.trace --partial", "report --trace early.trace --partial"]
        {
            let found = folder.run(call).expect(3);
            assert!(found.err.contains("early.trace"), "{}", found.err);
        }
        let found = folder.run("replay early.trace --partial").expect(3);
        assert!(found.err.contains("no event of early.trace is whole: byte "), "{}", found.err);
    }
    // A recording is not a map. The error names what it is.
    let found = folder.run("compare frames.trace frames.trace").expect(3);
    assert!(found.err.contains("it is a recording"), "{}", found.err);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    folder.write("flipped.trace", &flipped);
    folder.run("replay flipped.trace").expect(3);
    for bytes in [&b""[..], b"hello", &whole[..7]] {
        folder.write("short.trace", bytes);
        folder.run("replay short.trace").expect(3);
        folder.run("report --trace short.trace").expect(3);
    }
    folder.run("replay nothing.trace").expect(3);
}
