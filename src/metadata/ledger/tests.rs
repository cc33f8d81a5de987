#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::metadata::{Alignment, asked, check};

/// The lowest free units that will do: slow and obviously right. Or wrong, for a test of who finds that out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstFit {
    Right,
    /// What is taken is taken again.
    Forgetful,
    /// Alignment is not heeded.
    Crooked,
    /// What fails leaves a trace.
    Leaky,
    /// One unit too many.
    Outside,
}

impl Divider for FirstFit {
    type Region = Vec<bool>;

    fn region(&self, capacity: u64) -> Result<Vec<bool>, RegionError> {
        if capacity > 1024 {
            return Err(RegionError::Capacity { capacity, max: 1024 });
        }
        Ok(vec![false; usize::try_from(capacity).unwrap()])
    }

    fn take(&self, taken: &mut Vec<bool>, request: &Request) -> Option<Range<u64>> {
        let size = usize::try_from(request.size).ok()?;
        let step = if *self == Self::Crooked { 1 } else { usize::try_from(request.alignment.get()).ok()? };
        let is_free =
            |&start: &usize| taken.get(start..start + size).is_some_and(|units| !units.contains(&true));
        let Some(start) = (0..taken.len()).step_by(step).find(is_free) else {
            if *self == Self::Leaky {
                taken[0] = true;
            }
            return None;
        };
        if *self != Self::Forgetful {
            taken[start..start + size].fill(true);
        }
        let size = if *self == Self::Outside { taken.len() + 1 } else { size };
        Some(widen(start)..widen(start + size))
    }

    fn give_back(&self, taken: &mut Vec<bool>, units: Range<u64>) {
        let at = |unit: u64| usize::try_from(unit).unwrap();
        let taken = &mut taken[at(units.start)..at(units.end)];
        assert!(*self != Self::Right || !taken.contains(&false), "it was not taken");
        taken.fill(false);
    }
}

#[test]
fn a_divider_that_is_right_makes_an_engine_that_passes() {
    check::ranges(|| Ledger::new(FirstFit::Right), &[1, 7, 64, 100, 1000], 24);
}

#[test]
fn one_that_is_wrong_does_not() {
    for (divider, said) in [
        (FirstFit::Forgetful, "overlaps"),
        (FirstFit::Crooked, "is not aligned"),
        (FirstFit::Leaky, "failure changed something"),
        (FirstFit::Outside, "L1"),
    ] {
        let played = std::panic::catch_unwind(|| check::ranges(|| Ledger::new(divider), &[7, 64], 12));
        let panic = played.expect_err("the divider is wrong");
        let literal = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = panic.downcast_ref::<String>().cloned().or(literal).unwrap_or_default();
        assert!(text.contains(said), "{divider:?}: {text}");
    }
}

#[test]
fn a_sealed_region_grants_nothing_until_it_is_reset() {
    let mut engine = Ledger::new(FirstFit::Right);
    let region = engine.add_region(&8).unwrap();
    let (key, _) = engine.allocate(&asked(1, 1)).unwrap();
    assert!(engine.seal(region));
    assert_eq!((engine.allocate(&asked(1, 1)), engine.largest_free()), (Err(AllocateError::NoSpace), 0));
    engine.free(key).unwrap();
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace), "whatever is freed in it");
    engine.reset(region);
    assert_eq!(engine.largest_free(), 8);
    assert!(engine.allocate(&asked(8, 1)).is_ok());
    engine.validate();
}

#[test]
fn what_is_not_taken_changes_nothing() {
    let mut engine = Ledger::new(FirstFit::Right);
    assert_eq!(engine.add_region(&0), Err(RegionError::Capacity { capacity: 0, max: u64::MAX }));
    assert_eq!(engine.add_region(&2000), Err(RegionError::Capacity { capacity: 2000, max: 1024 }));
    assert_eq!(engine.add_region(&16), Ok(RegionId(0)));
    let upper = Request { upper: true, ..Request::new(1, Alignment::ONE) };
    assert_eq!(engine.allocate(&upper), Err(AllocateError::UpperUnsupported));
    assert_eq!(engine.usage(), Usage { capacity: 16, ..Usage::default() });
}
