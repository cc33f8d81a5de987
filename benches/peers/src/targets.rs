//! What Sublet is to reach, and whether it does.
#![forbid(unsafe_code)]

use crate::case::Figures;
use crate::peers::PeerKind::{
    self, Driver, GpuAlloc, OffsetAllocator, Sublet, SubletEngine, Vma, VmaVirtual,
};
use crate::results::Results;
use crate::statistics::{bytes, number};
use crate::table::Table;

/// One target: what is to be reached, and what was.
struct Row {
    what: &'static str,
    target: &'static str,
    /// `None` if it was not measured.
    found: Option<Found>,
}

struct Found {
    text: String,
    met: bool,
}

/// How many times `other` takes what Sublet takes, and whether that is enough.
fn faster(results: &Results, id: &str, other: PeerKind, least: f64) -> Option<Found> {
    fastest(results, &[id], (other, Sublet), least)
}

/// The same for the worst of several workloads.
fn fastest(results: &Results, ids: &[&str], pair: (PeerKind, PeerKind), least: f64) -> Option<Found> {
    let (slow, fast) = pair;
    let mut all = Vec::new();
    for id in ids {
        all.push((*id, results.pair(id, slow)? / results.pair(id, fast)?));
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (id, worst) = *all.first()?;
    let place = if ids.len() > 1 { format!(" ({id})") } else { String::new() };
    Some(Found { text: format!("1/{}{place}", number(worst)), met: worst >= least })
}

/// The workload in which Sublet is worst beside another, by a figure of which less is better.
fn worst(results: &Results, other: PeerKind, figure: fn(&Figures) -> Option<f64>) -> Option<Found> {
    let mut all = Vec::new();
    for (id, of, by) in results.shared(Sublet, other) {
        if let (Some(of), Some(by)) = (figure(of), figure(by)) {
            all.push((id, of / by));
        }
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let above = all.iter().filter(|(_, ratio)| *ratio > 1.0).count();
    let (id, ratio) = all.first()?;
    let text = format!("x {} at worst ({id}); above in {above} of {}", number(*ratio), all.len());
    Some(Found { text, met: above == 0 })
}

fn tail(results: &Results) -> Option<Found> {
    let mut all = Vec::new();
    for id in ["churn-10k-usual", "churn-10k-mixed", "churn-100k-usual", "churn-100k-mixed"] {
        if let Some(single) = results.get(id, Sublet).and_then(|figures| figures.allocate) {
            all.push((id, single.p999 / single.p50.max(1.0)));
        }
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (id, ratio) = *all.first()?;
    Some(Found { text: format!("x {} at worst ({id})", number(ratio)), met: ratio <= 3.0 })
}

fn blocks(results: &Results) -> Option<Found> {
    let one = results.pair("blocks-1", Sublet)?;
    let (thousand, four) = (results.pair("blocks-1000", Sublet)?, results.pair("blocks-4000", Sublet)?);
    let (thousand, four) = (thousand / one, four / one);
    let text = format!("x {}, x {}", number(thousand), number(four));
    Some(Found { text, met: thousand.max(four) <= 1.3 })
}

/// Whether there are so many processors.
fn cores(least: usize) -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= least)
}

/// How many times the throughput of one thread, if the machine has as many cores as threads.
fn scaling(results: &Results, threads: usize, remote: bool, least: f64) -> Option<Found> {
    if !cores(threads) || results.busy {
        return None;
    }
    let rate = |threads, remote| results.threads(Sublet, threads, remote).map(|figures| figures.throughput);
    let ratio = rate(threads, remote)? / rate(1, remote)?;
    Some(Found { text: format!("x {}", number(ratio)), met: ratio >= least })
}

fn versus_vma(results: &Results, threads: usize, remote: bool, least: f64) -> Option<Found> {
    if !cores(threads) || results.busy {
        return None;
    }
    let rate = |kind| results.threads(kind, threads, remote).map(|figures| figures.throughput);
    let ratio = rate(Sublet)? / rate(Vma)?;
    Some(Found { text: format!("x {}", number(ratio)), met: ratio >= least })
}

fn thread_memory(results: &Results) -> Option<Found> {
    let of = |kind, remote| results.threads(kind, 16, remote).map(|figures| figures.reserved as f64);
    let local = of(Sublet, false)? / of(Vma, false)?;
    let remote = of(Sublet, true)? / of(Vma, true)?;
    let text = format!("x {}; remote frees x {}", number(local), number(remote));
    Some(Found { text, met: local.max(remote) <= 1.5 })
}

fn growth(results: &Results) -> Option<Found> {
    let found = results.growth(Sublet)?.p999;
    let vma = results.growth(Vma).map_or("-".to_owned(), |found| number(found.p999));
    Some(Found { text: format!("{} ns (VMA: {vma})", number(found)), met: found < 10_000.0 })
}

fn above_the_driver(results: &Results) -> Option<Found> {
    let driver = results.pair("create-vulkan", Driver).or_else(|| results.pair("create", Driver))?;
    let id = if results.pair("create-vulkan", Driver).is_some() { "create-vulkan" } else { "create" };
    let of = |kind| results.pair(id, kind).map(|pair| pair - driver);
    let vma = of(Vma).map_or("-".to_owned(), number);
    let found = of(Sublet)?;
    let text = format!("{} ns above {} (VMA: {vma})", number(found), number(driver));
    Some(Found { text, met: found <= 60.0 })
}

fn own_heap(results: &Results) -> Option<Found> {
    let heap = results.get("churn-10k-usual", Sublet)?.own_heap?;
    Some(Found { text: bytes(heap), met: heap <= 64.0 })
}

fn handle() -> Option<Found> {
    let size = Sublet.handle_bytes();
    Some(Found { text: bytes(size as f64), met: size <= 64 })
}

fn rows(results: &Results) -> Vec<Row> {
    let row = |what, target, found| Row { what, target, found };
    let orders = ["order-lifo", "order-fifo", "order-random"];
    let engines =
        ["engine-10k-usual", "engine-10k-mixed", "engine-100k-usual", "engine-100k-mixed", "engine-frame"];
    let engine = |other, ids: &[&str], least| fastest(results, ids, (other, SubletEngine), least);
    let time = |figures: &Figures| figures.pair;
    let reserved = |figures: &Figures| figures.reserved_peak;
    vec![
        row("churn 10k usual", "at most 1/8 of VMA", faster(results, "churn-10k-usual", Vma, 8.0)),
        row("churn 10k mixed", "at most 1/20 of VMA", faster(results, "churn-10k-mixed", Vma, 20.0)),
        row("churn 100k mixed", "at most 1/50 of VMA", faster(results, "churn-100k-mixed", Vma, 50.0)),
        row(
            "allocate 10k, free in any order",
            "at most 1/20 of VMA",
            fastest(results, &orders, (Vma, Sublet), 20.0),
        ),
        row("frame in a linear pool", "at most 1/8 of VMA's", faster(results, "frame-linear", Vma, 8.0)),
        row("every workload: time", "below gpu-alloc", worst(results, GpuAlloc, time)),
        row("every workload: reserved/live", "below gpu-alloc", worst(results, GpuAlloc, reserved)),
        row("engine alone", "below offset-allocator", engine(OffsetAllocator, &engines, 1.0)),
        row("engine alone", "at most 1/2 of VMA's virtual block", engine(VmaVirtual, &engines, 2.0)),
        row(
            "linear engine alone",
            "below VMA's",
            engine(VmaVirtual, &["engine-linear", "engine-reset"], 1.0),
        ),
        row("p99.9 of an allocate, at 100k too", "at most 3 times its p50", tail(results)),
        row("every workload: reserved/live", "not above VMA's", worst(results, Vma, reserved)),
        row("own heap for each live allocation, 10k", "at most 64 B", own_heap(results)),
        row("handle", "at most 64 B", handle()),
        row("2 threads on 2 cores", "at least 1.7 times one", scaling(results, 2, false, 1.7)),
        row("16 threads on 16 cores", "at least 10 times one", scaling(results, 16, false, 10.0)),
        row("16 threads on 16 cores", "at least 500 times VMA", versus_vma(results, 16, false, 500.0)),
        row(
            "16 threads on 16 cores, remote frees",
            "at least 50 times VMA",
            versus_vma(results, 16, true, 50.0),
        ),
        row("16 threads: memory", "at most 1.5 times VMA's", thread_memory(results)),
        row("1,000 and 4,000 blocks", "at most 1.3 times one block", blocks(results)),
        row("vkAllocateMemory of 20 ms", "others' p99.9 below 10,000 ns", growth(results)),
        row(
            "create and destroy a buffer, lavapipe",
            "at most 60 ns above the driver",
            above_the_driver(results),
        ),
    ]
}

/// All targets.
pub(crate) fn table(results: &Results) -> Table {
    let mut table = Table::new(["", "target", "measured", "verdict"]);
    for Row { what, target, found } in rows(results) {
        let (text, verdict) = match found {
            Some(Found { text, met: true }) => (text, "met"),
            Some(Found { text, met: false }) => (text, "**not met**"),
            None if results.busy && what.contains("cores") => ("-".to_owned(), "others were at work"),
            None => ("-".to_owned(), "not measured here"),
        };
        table.row([what, target, &text, verdict]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Percentiles;

    fn pair(pair: f64) -> Figures {
        Figures { pair: Some(pair), reserved_peak: Some(pair), ..Figures::default() }
    }

    fn verdict(found: Option<Found>) -> (String, bool) {
        found.map(|found| (found.text, found.met)).unwrap()
    }

    #[test]
    fn what_is_not_measured_is_not_judged() {
        let table = table(&Results::default()).to_string();
        assert_eq!(table.matches("not measured here").count(), 21, "all but the handle:\n{table}");
    }

    #[test]
    fn scaling_is_not_judged_on_a_busy_machine() {
        let mut results = Results::default();
        results.busy = true;
        let figures = |throughput| crate::results::ThreadFigures { throughput, reserved: 1, live: 1 };
        results.add_threads(Sublet, 1, false, figures(1.0));
        results.add_threads(Sublet, 2, false, figures(2.0));
        assert!(scaling(&results, 2, false, 1.7).is_none());
        assert_eq!(table(&results).to_string().matches("others were at work").count(), 4);
        results.busy = false;
        if cores(2) {
            assert!(verdict(scaling(&results, 2, false, 2.0)).1);
            assert!(!verdict(scaling(&results, 2, false, 2.1)).1);
        }
    }

    #[test]
    fn times_are_compared_the_right_way_round() {
        let mut results = Results::default();
        results.add("churn-10k-usual", Vma, pair(80.0));
        results.add("churn-10k-usual", Sublet, pair(10.0));
        assert_eq!(verdict(faster(&results, "churn-10k-usual", Vma, 8.0)), ("1/8.00".to_owned(), true));
        assert!(!verdict(faster(&results, "churn-10k-usual", Vma, 8.1)).1);
        results.add("order-fifo", Vma, pair(30.0));
        results.add("order-fifo", Sublet, pair(10.0));
        let both = fastest(&results, &["churn-10k-usual", "order-fifo"], (Vma, Sublet), 5.0);
        assert_eq!(verdict(both), ("1/3.00 (order-fifo)".to_owned(), false));
    }

    #[test]
    fn the_worst_workload_counts() {
        let mut results = Results::default();
        for (id, other) in [("a", 1.0), ("b", 3.0), ("c", 2.0)] {
            results.add(id, Sublet, pair(2.0));
            results.add(id, GpuAlloc, pair(other));
        }
        results.add("d", Sublet, pair(100.0));
        let pair_of = |figures: &Figures| figures.pair;
        let found = worst(&results, GpuAlloc, pair_of);
        assert_eq!(verdict(found), ("x 2.00 at worst (a); above in 1 of 3".to_owned(), false));
        results.add("a", GpuAlloc, pair(2.0));
        assert!(verdict(worst(&results, GpuAlloc, pair_of)).1);
    }

    #[test]
    fn tails_and_growth() {
        let mut results = Results::default();
        let single = |p50, p999| Some(Percentiles { p50, p99: 0.0, p999, max: 0.0 });
        let figures = |p50, p999| Figures { allocate: single(p50, p999), ..Figures::default() };
        results.add("churn-10k-usual", Sublet, figures(30.0, 90.0));
        assert!(verdict(tail(&results)).1);
        results.add("churn-100k-mixed", Sublet, figures(30.0, 91.0));
        assert!(!verdict(tail(&results)).1);
        results.add_growth(Sublet, Percentiles { p999: 9_999.0, ..Percentiles::default() });
        assert!(verdict(growth(&results)).1);
        results.add_growth(Sublet, Percentiles { p999: 10_000.0, ..Percentiles::default() });
        assert!(!verdict(growth(&results)).1);
    }
}
