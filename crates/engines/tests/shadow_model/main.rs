//! One property-test suite for all engines. It runs random programs on an engine and on a shadow model, which is slow
//! and obviously right.
//!
//! - `program.rs`: programs, and the generation of random ones.
//! - `model.rs`: the shadow of an engine: the used units and their allocations.
//! - `subjects.rs`: the engines, and the placement rules of each.
//! - `play.rs`: runs a program on an engine, its twin and the model, and compares them after every operation.
//!
//! `SUBLET_CASES` sets the number of programs for each engine (the default is small). The seed is fixed; `SUBLET_SEED`
//! sets another one, or `random`.
#![allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "test code on 64-bit hosts")]

mod model;
mod play;
mod program;
mod subjects;

use std::cell::{Cell, RefCell};
use std::sync::Once;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::play::Seen;
use self::program::Program;
use self::subjects::Subject;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Enough programs to reach every situation.
const DEFAULT_CASES: u32 = 256;

fn cases() -> u32 {
    variable("SUBLET_CASES").map_or(DEFAULT_CASES, |cases| cases.parse().expect("SUBLET_CASES is a number"))
}

fn runner(stream: u8) -> TestRunner {
    let cases = cases();
    let seed = match variable("SUBLET_SEED").as_deref() {
        None => 0,
        Some("random") => {
            std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
        }
        Some(seed) => seed.parse().expect("SUBLET_SEED is a number or `random`"),
    };
    println!("{cases} cases, SUBLET_SEED={seed}");
    let mut bytes = [stream; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, max_shrink_iters: 20_000, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Suppresses panic messages. Shrinking a failing program panics hundreds of times, and only the last message matters.
fn quiet(quiet: bool) {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(quiet);
}

fn check<S: Subject>(stream: u8) {
    let strategy = program::programs();
    let seen = RefCell::new(Seen::new());
    let mut runner = runner(stream);
    quiet(true);
    let result = runner.run(&strategy, |program: Program| {
        play::play::<S>(&program, &mut seen.borrow_mut());
        Ok(())
    });
    quiet(false);
    if let Err(error) = result {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    println!("{seen:#?}");
    if cases() < DEFAULT_CASES {
        return;
    }
    for what in ALWAYS_SEEN.iter().chain(S::SEEN) {
        assert!(seen.contains_key(what), "the programs never reached {what:?}, but {seen:#?}");
    }
}

/// The situations and outcomes that the programs of every engine must reach.
const ALWAYS_SEEN: &[(&str, &str)] = &[
    ("add_region", "new slot"),
    ("add_region", "slot used again"),
    ("add_region", "TooMany"),
    ("add_region", "Capacity"),
    ("remove_region", "ok"),
    ("remove_region", "NotEmpty"),
    ("reset", "used"),
    ("reset", "empty"),
    ("bad key", "freed"),
    ("bad key", "of the twin"),
    ("bad key", "bits"),
    ("bad key", "flipped"),
    ("outside", "refused"),
];

/// Runs the same properties for each engine.
macro_rules! suite {
    ($($name:ident: $subject:ident, $stream:literal;)*) => { $(
        #[test]
        fn $name() {
            check::<subjects::$subject>($stream);
        }
    )* };
}

suite! {
    linear_single: LinearSingle, 1;
    linear_many: LinearMany, 2;
    buddy: BuddySubject, 3;
    tlsf: TlsfRounding, 4;
    tlsf_exact: TlsfExact, 5;
    tlsf_slabs: TlsfSlabs, 6;
}
