//! The exact layout of the JSON.

use super::writer::{JsonWriter, ListLayout};

#[test]
fn one_value_on_a_line_and_small_things_on_one() {
    let text = JsonWriter::document(|json| {
        json.number("A", 1_u32);
        json.object("B", |json| {
            json.list("C", ListLayout::OneLine, |json| {
                json.string_element("x");
                json.number_element(7);
            });
            json.object("empty", |_| {});
        });
        json.list("D", ListLayout::Lines, |json| {
            for at in 0..2_u64 {
                json.object_element(ListLayout::OneLine, |json| json.number("E", u64::MAX - at));
            }
        });
        json.list("none", ListLayout::Lines, |_| {});
    });
    let expected = r#"{
  "A": 1,
  "B": {
    "C": [ "x", 7 ],
    "empty": {}
  },
  "D": [
    { "E": 18446744073709551615 },
    { "E": 18446744073709551614 }
  ],
  "none": []
}"#;
    assert_eq!(text, expected);
}

/// Any name survives a round trip.
#[test]
fn every_character_comes_back() {
    let name: String =
        (0..0x180).filter_map(char::from_u32).chain("\u{2028}\u{fffd}\u{1f600}\\\"".chars()).collect();
    let text = JsonWriter::document(|json| json.string(&name, &name));
    assert!(text.chars().all(|c| c == '\n' || u32::from(c) >= 0x20), "control characters are escaped");
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read[&name], serde_json::Value::String(name));
}
