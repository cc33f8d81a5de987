//! The time that the layer adds to a call, above a driver whose calls do nothing.
//!
//! Each row is one pair of calls, with the layer and without it: half of the difference is the overhead of a call.
#![allow(clippy::unwrap_used, reason = "a bench")]

#[path = "../tests/driver/fake.rs"]
mod fake;

use std::sync::Barrier;
use std::time::Instant;

use fake::Below;

/// Runs `pair` so often, on so many threads at once, and returns the nanoseconds of a pair.
fn measure(threads: u32, pair: &(dyn Fn() + Sync)) -> f64 {
    let rounds =
        if cfg!(debug_assertions) || std::env::args().any(|word| word == "--test") { 100 } else { 5_000 };
    let barrier = Barrier::new(usize::try_from(threads).unwrap());
    let times = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let start = Instant::now();
                    for _ in 0..rounds {
                        pair();
                    }
                    start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    });
    times.iter().sum::<f64>() / f64::from(threads)
}

fn row(name: &str, threads: u32, layer: &(dyn Fn() + Sync), driver: &(dyn Fn() + Sync)) {
    // Medians of short runs in turn. The best run would be one in which the threads did not run at the same time.
    let runs: Vec<_> = (0..200).map(|_| (measure(threads, layer), measure(threads, driver))).collect();
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let with = median(runs.iter().map(|run| run.0).collect());
    let without = median(runs.iter().map(|run| run.1).collect());
    let overhead = (with - without) / 2.0;
    println!(
        "{name:<24} {threads} threads: {with:6.1} ns with the layer, {without:5.1} without: {overhead:5.1} ns a call"
    );
}

fn main() {
    let path = std::env::temp_dir().join(format!("overhead-{}.trace", std::process::id()));
    fake::watch(&path);
    let (layer, driver) = (Below::layer(&[]), Below::driver());
    let submit = |below: &Below| {
        below.submit();
        below.submit();
    };
    for threads in [1, 2] {
        row("allocate, free", threads, &|| layer.allocate_and_free(), &|| driver.allocate_and_free());
        row("create, destroy a buffer", threads, &|| layer.create_and_destroy(), &|| {
            driver.create_and_destroy()
        });
        row("submit, submit", threads, &|| submit(&layer), &|| submit(&driver));
    }
    layer.destroy();
    std::fs::remove_file(path).unwrap();
}
