//! A warmed-up binder allocates no host memory. The global allocator of this binary counts calls.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../tests/shared/counting.rs"]
mod counting;
#[path = "binder/quiet.rs"]
mod quiet;

use counting::count;
use quiet::{Quiet, Way, descriptors};
use sublet::retire::Clock;
use sublet_descriptors::BindPoint;

const POINT: BindPoint = BindPoint::Compute;

/// Several draws that each change the set, then a flush and a collection.
fn frame(quiet: &mut Quiet, clock: &Clock, timeline: sublet::retire::TimelineId) {
    let ticket = clock.open(timeline);
    quiet.binder.begin();
    for draw in 0..100 {
        quiet.binder.set_layout(POINT, &quiet.layout).unwrap();
        let (uniforms, storage, textures) = descriptors(1 + draw % 3);
        quiet.binder.stage(POINT, 0, 0, 0, &uniforms).unwrap();
        quiet.binder.stage(POINT, 0, 1, 0, &storage).unwrap();
        quiet.binder.stage(POINT, 0, 2, 0, &textures).unwrap();
        // SAFETY: the functions do nothing.
        unsafe { quiet.binder.commit(quiet.commands, POINT) }.unwrap();
    }
    quiet.binder.flush(ticket).unwrap();
    clock.discard(ticket).unwrap();
    quiet.binder.collect(clock).unwrap();
}

#[test]
fn a_warm_binder_takes_no_memory_from_the_host() {
    for way in [Way::Sets, Way::Push, Way::Buffer] {
        let mut quiet = Quiet::new(way);
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let before = count();
        for _ in 0..20 {
            frame(&mut quiet, &clock, timeline);
        }
        assert!(count() > before, "the count does not count");
        let before = count();
        for _ in 0..20 {
            frame(&mut quiet, &clock, timeline);
        }
        assert_eq!(count() - before, 0, "{way:?}");
        quiet.close();
    }
}
