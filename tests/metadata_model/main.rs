//! One property-test suite over all engines: it runs random programs on an engine, and on a shadow model that is slow
//! and obviously right.
//!
//! - `program.rs`: what a program is, and how random programs are made.
//! - `model.rs`: the shadow of an engine: which units are used by whom.
//! - `subjects.rs`: the engines, and for each the rules of where it must, may and must not allocate.
//! - `play.rs`: runs a program on engine, twin and model, and compares after every operation.
//!
//! `SUBLET_CASES` sets the number of programs for each engine (the default is small). Programs come from a fixed seed;
//! `SUBLET_SEED` is another one, or `random`.
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

/// So many programs are sure to reach every situation.
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

/// While a failing program is made shorter it fails hundreds of times: only the last one is worth printing.
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

/// What some program for each engine must have reached, so that the suite tests something.
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

/// Each engine runs the same properties.
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
