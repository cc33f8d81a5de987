//! A few programs on every profile. With debug assertions, VMA aborts on invalid requests, which are then skipped.

use super::differences::Difference;
use super::generate;
use super::play::play;
use super::run::{ProgramSelection, run};
use sublet::sim;

fn order(programs: u64, seed: u64) -> ProgramSelection {
    ProgramSelection { programs, seed, profile: None, only: Vec::new(), threads: 1 }
}

#[test]
fn both_do_the_same() {
    let report = run(&order(400, 1), &|| ()).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.starts_with("400 programs"), "{report}");
}

#[test]
fn a_program_is_the_same_every_time() {
    let profile = sim::Profile::by_name("nvidia-h200").unwrap();
    let offered = sim::Gpu::new(profile).extensions();
    let text = |seed| format!("{:?}", generate::program(seed, profile, &offered));
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
    let counts = |seed| {
        let tally = play(&generate::program(seed, profile, &offered)).unwrap();
        (tally.counts, tally.differences, tally.reserved)
    };
    assert_eq!(counts(7), counts(7));
}

#[test]
fn every_difference_has_a_name_and_a_reason() {
    let mut names: Vec<_> = Difference::ALL.iter().map(|difference| difference.id()).collect();
    assert!(Difference::ALL.iter().all(|difference| difference.reason().len() > 30));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Difference::ALL.len());
}

/// The chapter of the guide describes each difference.
#[test]
fn every_difference_is_in_the_guide() {
    let chapter = include_str!("../../../../src/guide/differences.md");
    for difference in Difference::ALL {
        assert!(chapter.contains(&format!("`{}`", difference.id())), "{}", difference.id());
    }
}

#[test]
fn nobody_asks_for_an_unknown_profile() {
    let asked = ProgramSelection { profile: Some("nobody".to_owned()), ..order(1, 1) };
    assert!(run(&asked, &|| ()).is_err());
}
