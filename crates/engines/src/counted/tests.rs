#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use super::*;

type Kinds = [u32; 3];

fn capacity(grants: u32, counts: Kinds) -> CountedCapacity<Kinds> {
    CountedCapacity { grants, counts }
}

#[test]
fn grants_and_kinds_end_each_for_itself() {
    let mut engine = Counted::new();
    let region = engine.add_region(&capacity(2, [9, 3, 0])).unwrap();
    assert!(!engine.allocate_in(region, &[0, 0, 1]), "none of that kind");
    assert!(engine.allocate_in(region, &[1, 3, 0]));
    assert!(!engine.allocate_in(region, &[1, 1, 0]), "the second kind has ended");
    assert!(engine.allocate_in(region, &[0, 0, 0]), "an empty grant is one, too");
    assert!(!engine.allocate_in(region, &[0, 0, 0]), "grants have ended");
    engine.validate();
}

#[test]
fn what_was_not_granted_is_not_taken_back() {
    let mut engine = Counted::new();
    let region = engine.add_region(&capacity(4, [4, 4, 4])).unwrap();
    assert_eq!(engine.free_in(region, &[0, 0, 0]), Err(BadGrant));
    assert!(engine.allocate_in(region, &[1, 0, 0]));
    assert!(engine.allocate_in(region, &[2, 2, 0]));
    assert_eq!(engine.free_in(region, &[0, 3, 0]), Err(BadGrant), "more than was granted of a kind");
    assert_eq!(engine.free_in(region, &[1, 0, 0]), Ok(false));
    assert_eq!(
        engine.free_in(region, &[1, 0, 0]),
        Err(BadGrant),
        "the last grant cannot leave anything granted"
    );
    engine.validate();
    assert_eq!(engine.free_in(region, &[2, 2, 0]), Ok(true));
    engine.validate();
}

#[test]
fn a_sealed_region_grants_nothing_until_it_is_reset() {
    let mut engine = Counted::new();
    let region = engine.add_region(&capacity(4, [4, 4, 4])).unwrap();
    assert!(engine.allocate_in(region, &[1, 0, 0]));
    engine.seal(region);
    assert!(!engine.allocate_in(region, &[1, 0, 0]));
    assert_eq!(engine.free_in(region, &[1, 0, 0]), Ok(true));
    assert!(!engine.allocate_in(region, &[1, 0, 0]), "freeing does not take the seal off");
    engine.reset(region);
    assert!(engine.allocate_in(region, &[1, 0, 0]));
    engine.validate();
}

#[test]
#[should_panic(expected = "there is no region 0")]
fn a_removed_region_is_gone() {
    let mut engine = Counted::new();
    let region = engine.add_region(&capacity(4, [4, 4, 4])).unwrap();
    engine.remove_region(region).unwrap();
    assert!(!engine.fits(region, &[0, 0, 0]));
    engine.validate();
    engine.reset(region);
}

/// The shadow of a region: a list of its grants.
struct Shadow {
    capacity: CountedCapacity<Kinds>,
    sealed: bool,
    /// The grants, with their keys if they have one.
    grants: Vec<(Option<Key>, Kinds)>,
}

impl Shadow {
    fn fits(&self, need: &Kinds) -> bool {
        let used = |kind: usize| self.grants.iter().map(|(_, grant)| u64::from(grant[kind])).sum::<u64>();
        let fits = |kind: usize| used(kind) + u64::from(need[kind]) <= u64::from(self.capacity.counts[kind]);
        !self.sealed && self.grants.len() < index(self.capacity.grants) && (0..3).all(fits)
    }
}

#[test]
fn the_engine_does_as_a_list_of_grants_does() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut engine = Counted::new();
        let mut shadow: Vec<Option<Shadow>> = Vec::new();
        let mut gone: Vec<Key> = Vec::new();
        let mut other = Counted::new();
        other.add_region(&capacity(1, [1, 1, 1])).unwrap();
        let (foreign, _) = other.allocate(&CountedRequest::new([1, 1, 1])).unwrap();
        for _ in 0..300 {
            let live: Vec<usize> = (0..shadow.len()).filter(|&at| shadow[at].is_some()).collect();
            if live.is_empty() || random.u32(..20) == 0 {
                let most = if random.u32(..10) == 0 { u32::MAX } else { 40 };
                let of = capacity(random.u32(1..12), [(); 3].map(|()| random.u32(..most)));
                let id = engine.add_region(&of).unwrap();
                let at = index(id.0);
                if at == shadow.len() {
                    shadow.push(None);
                }
                assert!(shadow[at].is_none(), "the slot was free");
                shadow[at] = Some(Shadow { capacity: of, sealed: false, grants: Vec::new() });
                continue;
            }
            let at = live[random.usize(..live.len())];
            let id = RegionId(narrow(at));
            let region = shadow[at].as_mut().unwrap();
            match random.u32(..16) {
                0 => {
                    engine.reset(id);
                    gone.extend(region.grants.drain(..).filter_map(|(key, _)| key));
                    region.sealed = false;
                }
                1 => {
                    engine.seal(id);
                    region.sealed = true;
                }
                2 => {
                    let removed = engine.remove_region(id);
                    assert_eq!(removed.is_ok(), region.grants.is_empty());
                    if removed.is_ok() {
                        shadow[at] = None;
                    }
                }
                3..=6 if !region.grants.is_empty() => {
                    let (key, counts) = region.grants.swap_remove(random.usize(..region.grants.len()));
                    let region_empty = region.grants.is_empty();
                    if let Some(key) = key {
                        let span = CountedSpan { region: id, counts };
                        assert_eq!(engine.span(key), Ok(span));
                        assert_eq!(engine.free(key), Ok(Freed { span, region_empty }));
                        gone.push(key);
                    } else {
                        assert_eq!(engine.free_in(id, &counts), Ok(region_empty));
                    }
                }
                7..=9 => {
                    let need = [(); 3].map(|()| random.u32(..20));
                    let expected = shadow.iter().position(|it| it.as_ref().is_some_and(|it| it.fits(&need)));
                    let tag = Tag(random.u32(..));
                    let before = format!("{engine:?}");
                    let got = engine.allocate(&CountedRequest { counts: need, tag });
                    assert!(got.is_ok() || before == format!("{engine:?}"), "failure changed something");
                    let region = expected.map(|at| RegionId(narrow(at)));
                    assert_eq!(got.map(|(_, span)| span.region).ok(), region, "the lowest that it fits");
                    if let (Some(at), Ok((key, _))) = (expected, got) {
                        assert_eq!(engine.tag(key), Ok(Tag(tag.0 & Tag::MASK)));
                        shadow[at].as_mut().unwrap().grants.push((Some(key), need));
                    }
                }
                _ => {
                    let need = [(); 3].map(|()| random.u32(..12));
                    let fits = region.fits(&need);
                    assert_eq!(engine.fits(id, &need), fits);
                    assert_eq!(engine.allocate_in(id, &need), fits);
                    if fits {
                        region.grants.push((None, need));
                    }
                }
            }
            engine.validate();
            for key in gone.get(random.usize(..gone.len().max(1))).copied().into_iter().chain([foreign]) {
                let before = format!("{engine:?}");
                assert_eq!((engine.free(key), engine.span(key)), (Err(BadKey), Err(BadKey)));
                assert_eq!(engine.tag(key), Err(BadKey));
                assert_eq!(before, format!("{engine:?}"), "failure changed something");
            }
            let mut sum = Usage::default();
            for (at, region) in shadow.iter().enumerate() {
                let Some(region) = region else { continue };
                let of_region = engine.region_usage(RegionId(narrow(at)));
                assert_eq!(of_region.used_chunks, widen(region.grants.len()));
                sum = [sum, of_region].into_iter().sum();
                let usage = engine.region_counts(RegionId(narrow(at)));
                assert_eq!(index(usage.grants), region.grants.len());
                assert_eq!(usage.sealed, region.sealed);
                let mut room = region.capacity.counts;
                region.grants.iter().for_each(|(_, grant)| room.take(grant));
                assert_eq!(usage.room.counts, room);
                let mut keys = BTreeMap::new();
                engine.walk(RegionId(narrow(at)), &mut |chunk| {
                    keys.insert(chunk.key.0, chunk.counts);
                });
                let keyed = region.grants.iter().filter_map(|&(key, counts)| Some((key?.0, counts)));
                assert_eq!(keys, keyed.collect());
            }
            assert_eq!(engine.usage(), sum);
        }
    }
}
