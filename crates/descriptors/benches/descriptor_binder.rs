//! Measures the cost of binding descriptors, without the driver.
//!
//! `cargo bench --bench descriptor_binder`. The driver's descriptor functions do nothing. A set has 9 descriptors:
//! three uniform buffers, two storage buffers, four textures. One item is one draw, which stages its changes and
//! commits them. Each run checks its end state by closing the device, which reports leaks.
#![allow(clippy::unwrap_used, reason = "a bench that fails is to stop")]

#[path = "../tests/binder/quiet.rs"]
mod quiet;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use quiet::{Quiet, Way, descriptors};
use sublet::retire::Clock;
use sublet_descriptors::BindPoint;

const POINT: BindPoint = BindPoint::Compute;
/// Draws per recording.
const DRAWS: u64 = 256;

fn main() {
    divan::main();
}

fn record(bencher: Bencher<'_, '_>, way: Way, mut draw: impl FnMut(&mut Quiet, u64)) {
    let mut quiet = Quiet::new(way);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    quiet.binder.set_layout(POINT, &quiet.layout).unwrap();
    stage_all(&mut quiet, 1);
    bencher.counter(ItemsCount::new(DRAWS)).bench_local(|| {
        let ticket = clock.open(timeline);
        quiet.binder.begin();
        for number in 0..DRAWS {
            draw(&mut quiet, number);
            // SAFETY: the functions do nothing.
            unsafe { quiet.binder.commit(black_box(quiet.commands), POINT) }.unwrap();
        }
        quiet.binder.flush(ticket).unwrap();
        clock.discard(ticket).unwrap();
        quiet.binder.collect(&clock).unwrap();
    });
    quiet.close();
}

fn stage_all(quiet: &mut Quiet, which: u64) {
    let (uniforms, storage, textures) = descriptors(which);
    quiet.binder.stage(POINT, 0, 0, 0, &uniforms).unwrap();
    quiet.binder.stage(POINT, 0, 1, 0, &storage).unwrap();
    quiet.binder.stage(POINT, 0, 2, 0, &textures).unwrap();
}

/// All nine descriptors of the set change.
#[divan::bench(args = [Way::Sets, Way::Push, Way::Buffer])]
fn nine_changed(bencher: Bencher<'_, '_>, way: Way) {
    record(bencher, way, |quiet, number| stage_all(quiet, black_box(1 + number % 2)));
}

/// One of nine descriptors changes.
#[divan::bench(args = [Way::Sets, Way::Push, Way::Buffer])]
fn one_of_nine_changed(bencher: Bencher<'_, '_>, way: Way) {
    let others = [1, 2].map(|which| descriptors(which).0);
    record(bencher, way, |quiet, number| {
        let one = &others[usize::from(number % 2 != 0)][..1];
        quiet.binder.stage(POINT, 0, 0, 0, black_box(one)).unwrap();
    });
}

/// All nine descriptors are staged without a change.
#[divan::bench(args = [Way::Sets, Way::Push, Way::Buffer])]
fn nine_staged_as_they_were(bencher: Bencher<'_, '_>, way: Way) {
    record(bencher, way, |quiet, _| stage_all(quiet, black_box(1)));
}

/// Nothing is staged.
#[divan::bench(args = [Way::Sets, Way::Push, Way::Buffer])]
fn nothing_stale(bencher: Bencher<'_, '_>, way: Way) {
    record(bencher, way, |_, number| _ = black_box(number));
}
