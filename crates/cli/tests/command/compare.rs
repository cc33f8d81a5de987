//! `sublet compare`.

use super::files;

#[test]
fn two_maps_are_compared_by_sums_and_by_what_is_in_them() {
    let folder = files::folder();
    let found = folder.run("compare before.json map.json").expect(0);
    for text in [
        "before.json -> map.json",
        "303 MiB",
        "305 MiB",
        "+2 MiB",
        "mesh",
        "New: 2 allocations",
        "allocations of 303 MiB are in both",
    ] {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
    let document = folder.run("compare before.json map.json --json").expect(0).json();
    assert_eq!((&document["format"], &document["kind"]), (&"sublet-comparison".into(), &"maps".into()));
    let used =
        document["changes"].as_array().unwrap().iter().find(|change| change["name"] == "used").unwrap();
    assert_eq!((used["before"].as_u64(), used["now"].as_u64()), (Some(303 << 20), Some(305 << 20)));
    assert_eq!(document["comparison"]["gone"].as_array().unwrap().len(), 0);
}

#[test]
fn growth_above_the_limit_ends_with_1_and_is_named() {
    let folder = files::folder();
    let found = folder.run("compare before.json map.json --fail-above 0.5").expect(1);
    assert!(found.out.contains("Grew by more than 0.5 %: used."), "{}", found.out);
    let found = folder.run("compare before.json map.json --fail-above 1").expect(0);
    assert!(found.out.contains("Nothing grew by more than 1 %."), "{}", found.out);
    // Less memory is not a regression.
    folder.run("compare map.json before.json --fail-above 0").expect(0);
    let document = folder.run("compare before.json map.json --fail-above 0.5 --json").expect(1).json();
    assert_eq!(document["above"], serde_json::json!(["used"]));
}

#[test]
fn maps_of_either_schema_are_compared() {
    let folder = files::folder();
    folder.run("compare vma.json map.json").expect(0);
    folder.run("compare vma.json vma.json --fail-above 0").expect(0);
}

#[test]
fn two_replays_are_compared() {
    let folder = files::folder();
    folder.write("other.trace", files::trace(3 << 20));
    let other = folder.run("replay other.trace --json").expect(0);
    folder.write("other.json", other.out);
    let found = folder.run("compare frames.json other.json").expect(0);
    for text in ["peak used", "40 MiB", "120 MiB", "+200.0 %", "allocate, p99"] {
        assert!(found.out.contains(text), "{text}: {}", found.out);
    }
    folder.run("compare frames.json other.json --fail-above 50").expect(1);
    folder.run("compare frames.json frames.json --fail-above 0").expect(0);
    let document = folder.run("compare frames.json other.json --json").expect(0).json();
    assert_eq!(document["kind"], "replays");
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let folder = files::folder();
    let found = folder.run("compare frames.json map.json").expect(3);
    assert!(found.err.contains("not of one kind"), "{}", found.err);
    folder.run("compare map.json nothing.json").expect(3);
    folder.write("bad.json", "{\"format\": \"sublet-replay\", \"version\": 1}");
    let found = folder.run("compare bad.json frames.json").expect(3);
    assert!(found.err.contains("it has no result"), "{}", found.err);
    folder.write("later.json", "{\"format\": \"sublet-replay\", \"version\": 2}");
    folder.run("compare later.json frames.json").expect(3);
}
