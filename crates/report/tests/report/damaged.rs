//! Damaged files give an error or a snapshot, and never a panic.

use std::sync::OnceLock;

use proptest::prelude::*;
use sublet_report::{Comparison, Group, Snapshot};

use super::kit::Program;

/// A map in each schema.
fn originals() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let program = Program::busy("nvidia-gtx-1060", 40);
        let texts = vec![
            program.snapshot().to_json(),
            sublet_report::stats_string(&program.allocator, true),
            include_str!("vma-3.3.json").to_owned(),
        ];
        program.finish();
        texts
    })
}

#[derive(Clone, Debug)]
enum Damage {
    CutOff(prop::sample::Index),
    Removed(prop::sample::Index, usize),
    Doubled(prop::sample::Index, usize),
    Byte(prop::sample::Index, u8),
    /// Replaces a number.
    Number(prop::sample::Index, &'static str),
    /// Replaces a string.
    Word(prop::sample::Index, &'static str),
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "15",
    "16",
    "31",
    "32",
    "255",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "1e30",
    "0.5",
    "null",
    "\"1\"",
    "[]",
    "{}",
];
const WORDS: &[&str] = &[
    "\"\"",
    "\"FREE\"",
    "\"BUFFER\"",
    "\"Type 0\"",
    "\"Heap 31\"",
    "\"0\"",
    "\"size\"",
    "\"Size\"",
    "\"offset\"",
    "null",
    "7",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"0xffffffffffffffffff\"",
];

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        1 => at().prop_map(Damage::CutOff),
        2 => (at(), 1..40_usize).prop_map(|(at, length)| Damage::Removed(at, length)),
        2 => (at(), 1..200_usize).prop_map(|(at, length)| Damage::Doubled(at, length)),
        2 => (at(), 0..128_u8).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        8 => (at(), prop::sample::select(NUMBERS)).prop_map(|(at, number)| Damage::Number(at, number)),
        4 => (at(), prop::sample::select(WORDS)).prop_map(|(at, word)| Damage::Word(at, word)),
    ]
}

/// Returns the nearest character boundary from `at` on.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 && at > 0 && matches!(bytes[at - 1], b':' | b' ') {
            found.push((at, at + length));
        }
        at += length.max(1);
    }
    found
}

fn apply(text: &str, damage: &Damage) -> String {
    if text.is_empty() {
        return String::new();
    }
    let replaced = |start: usize, end: usize, with: &str| [&text[..start], with, &text[end..]].concat();
    match damage {
        Damage::CutOff(at) => text[..boundary(text, at.index(text.len()))].to_owned(),
        Damage::Removed(at, length) => {
            let start = boundary(text, at.index(text.len()));
            replaced(start, boundary(text, (start + length).min(text.len())), "")
        }
        Damage::Doubled(at, length) => {
            let start = boundary(text, at.index(text.len()));
            let end = boundary(text, (start + length).min(text.len()));
            replaced(end, end, &text[start..end])
        }
        Damage::Byte(at, byte) => {
            let start = boundary(text, at.index(text.len()));
            let end = boundary(text, (start + 1).min(text.len()));
            replaced(start, end, &char::from(*byte).to_string())
        }
        Damage::Number(at, number) => match numbers(text).as_slice() {
            [] => text.to_owned(),
            all => {
                let (start, end) = all[at.index(all.len())];
                replaced(start, end, number)
            }
        },
        Damage::Word(at, word) => {
            let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
            match quotes.len() / 2 {
                0 => text.to_owned(),
                pairs => {
                    let pair = 2 * at.index(pairs);
                    replaced(quotes[pair], quotes[pair + 1] + 1, word)
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// The result is an error, or a snapshot that all functions accept.
    #[test]
    fn nothing_that_is_read_panics(which in 0..3_usize, damages in prop::collection::vec(damage(), 1..4)) {
        let mut text = originals()[which].clone();
        for damage in &damages {
            text = apply(&text, damage);
        }
        if let Ok(snapshot) = Snapshot::from_json(&text) {
            let total = snapshot.statistics().total;
            let figures = snapshot.figures();
            prop_assert_eq!(figures.total.allocations + dedicated(&snapshot), total.statistics.allocation_count);
            prop_assert!((0.0..=1.0).contains(&figures.total.scatter()));
            prop_assert!((0.0..=1.0).contains(&figures.total.free_share()));
            let original = Snapshot::from_json(&originals()[which]).unwrap();
            let comparison = Comparison::new(&original, &snapshot);
            prop_assert_eq!(comparison.new.len() + comparison.kept.len(), snapshot.allocations().count());
            prop_assert_eq!(comparison.gone.len() + comparison.kept.len(), original.allocations().count());
            let _ = Group::by_name(snapshot.largest(10));
            prop_assert_eq!(&Snapshot::from_json(&snapshot.to_json()).unwrap(), &snapshot);
        }
    }

    /// The error has a message, even for text that is not JSON.
    #[test]
    fn any_text_is_answered(text in ".{0,200}") {
        if let Err(error) = Snapshot::from_json(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

fn dedicated(snapshot: &Snapshot) -> u64 {
    snapshot.vectors.iter().map(|vector| vector.dedicated.len() as u64).sum()
}

/// Guards the property above: enough of the damaged files are still readable.
#[test]
fn some_damaged_files_are_read_and_some_are_not() {
    let mut read = 0;
    let texts = originals();
    for number in NUMBERS.iter().take(12) {
        for text in texts {
            for (start, end) in numbers(text) {
                let edited = [&text[..start], number, &text[end..]].concat();
                read += u32::from(Snapshot::from_json(&edited).is_ok());
            }
        }
    }
    let all: usize = texts.iter().map(|text| 12 * numbers(text).len()).sum();
    assert!(read > 100 && (read as usize) < all - 100, "{read} of {all}");
}
