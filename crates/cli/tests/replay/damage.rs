//! Truncated and modified traces.

use sublet::trace::{Damage, Trace};

use crate::traces;

/// Distance between the places where a trace is cut. All remainders occur.
const STRIDE: usize = 1009;
const FLIPS: usize = 200;

#[test]
fn a_trace_that_was_cut_off_is_refused_with_the_place_and_what_is_whole_can_be_had() {
    for (name, bytes) in traces() {
        let whole = Trace::read(&bytes).unwrap();
        let last = [bytes.len() - 1, bytes.len() - 2];
        for length in (0..bytes.len()).step_by(STRIDE).chain(last) {
            let cut = &bytes[..length];
            let error = Trace::read(cut).expect_err(&name);
            assert!(error.offset <= u64::try_from(length).unwrap(), "{name}, {length}: {error}");
            let text = error.to_string();
            assert!(text.starts_with("byte ") && text.contains("chunk"), "{name}, {length}: {text}");
            let damage = error.damage;
            let fits = matches!(damage, Damage::Truncated { .. } | Damage::NoEnd | Damage::NotATrace);
            assert!(fits, "{name}, {length}: {damage:?}");
            if let Ok(prefix) = Trace::read_prefix(cut) {
                assert_eq!(prefix.end, Some(error), "{name}, {length}");
                assert_eq!(prefix.trace.header, whole.header, "{name}, {length}");
                let records = &prefix.trace.records;
                assert_eq!(records[..], whole.records[..records.len()], "{name}, {length}");
            }
        }
    }
}

#[test]
fn a_trace_of_which_one_bit_is_another_is_refused() {
    let mut random = fastrand::Rng::with_seed(0x7ace);
    for (name, bytes) in traces() {
        let mut changed = bytes.clone();
        for _ in 0..FLIPS {
            let (at, bit) = (random.usize(..bytes.len()), 1 << random.u32(..8));
            changed[at] ^= bit;
            let error = Trace::read(&changed).expect_err(&name);
            assert!(!error.to_string().is_empty());
            changed[at] ^= bit;
        }
        assert!(Trace::read(&changed).is_ok());
        // Appended bytes are an error too.
        changed.push(0);
        assert!(Trace::read(&changed).is_err(), "{name}");
    }
}

#[test]
fn any_bytes_are_refused_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(0x6a5b);
    for (_, bytes) in traces() {
        for _ in 0..50 {
            let mut changed = bytes[..random.usize(..bytes.len().min(20_000))].to_vec();
            for _ in 0..random.usize(1..50) {
                if !changed.is_empty() {
                    let at = random.usize(..changed.len());
                    changed[at] = random.u8(..);
                }
            }
            assert!(Trace::read(&changed).is_err());
        }
    }
}
