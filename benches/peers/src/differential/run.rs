//! Runs many programs on all processors, and summarises the results.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use sublet::sim;

use super::compact::compact;
use super::differences::Difference;
use super::generate;
use super::play::{ComparisonTally, Mismatch, play};
use super::program::RandomProgram;

/// Number of programs per defragmentation.
const PROGRAMS_FOR_A_HEAP: u64 = 5;
/// A number of programs that shows every difference.
const ENOUGH: u64 = 20_000;

/// The programs to run.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSelection {
    pub(crate) programs: u64,
    pub(crate) seed: u64,
    pub(crate) profile: Option<String>,
    /// Runs only steps of these kinds and required ones.
    pub(crate) only: Vec<String>,
    pub(crate) threads: usize,
}

/// A program that shows a difference.
struct FailingProgram {
    program: RandomProgram,
    mismatch: Mismatch,
}

/// Returns the profiles to run on, each with the extensions of its device.
fn profiles(order: &ProgramSelection) -> Result<Vec<(&'static sim::Profile, Vec<String>)>, String> {
    let wanted =
        |profile: &&&'static sim::Profile| order.profile.as_ref().is_none_or(|name| name == profile.name);
    let found: Vec<_> = sim::profiles::ALL
        .iter()
        .filter(wanted)
        .map(|profile| {
            let gpu = sim::Gpu::new(profile);
            (*profile, gpu.extensions())
        })
        .collect();
    if found.is_empty() { Err("no such profile".to_owned()) } else { Ok(found) }
}

/// Removes steps while the difference remains.
fn shrink(found: FailingProgram) -> FailingProgram {
    let mut best = found;
    best.program.steps.truncate(best.mismatch.step + 1);
    let mut size = best.program.steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.program.steps.len() {
            let mut shorter = best.program.clone();
            shorter.steps.drain(at..(at + size).min(shorter.steps.len()));
            match play(&shorter) {
                Err(mismatch) => best = FailingProgram { program: shorter, mismatch },
                Ok(_) => at += size,
            }
        }
        size /= 2;
    }
    best
}

/// Makes the C library map large memory directly, already zeroed. Otherwise it would keep the memory of mapped
/// allocations, and zero it again for each.
fn keep_heap_small() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the C library supports this option.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Runs programs, and returns a summary of the comparison.
///
/// # Errors
/// The shortest form of the first program that shows an unintended difference.
pub(crate) fn run(order: &ProgramSelection, progress: &(dyn Fn() + Sync)) -> Result<String, String> {
    let profiles = profiles(order)?;
    let start = Instant::now();
    keep_heap_small();
    let next = AtomicU64::new(0);
    let total = Mutex::new(ComparisonTally::default());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..order.threads.max(1) {
            scope.spawn(|| {
                let mut tally = ComparisonTally::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let enough = failures
                        .lock()
                        .is_ok_and(|found: std::sync::MutexGuard<'_, Vec<FailingProgram>>| found.len() >= 8);
                    if number >= order.programs || enough {
                        break;
                    }
                    let (profile, offered) = &profiles[(number % profiles.len() as u64) as usize];
                    let mut program = generate::program(order.seed.wrapping_add(number), profile, offered);
                    if !order.only.is_empty() {
                        let keep = ["free", "create-pool", "budget"];
                        program.steps.retain(|step| {
                            keep.contains(&step.kind()) || order.only.iter().any(|only| only == step.kind())
                        });
                    }
                    if number % PROGRAMS_FOR_A_HEAP == 0 && order.only.is_empty() {
                        match compact(program.seed, profile) {
                            Ok(gains) => tally.gains.add(&gains),
                            Err(text) => {
                                let mismatch = Mismatch { step: 0, text: format!("compacting: {text}") };
                                let program = RandomProgram { steps: Vec::new(), ..program.clone() };
                                if let Ok(mut failures) = failures.lock() {
                                    failures.push(FailingProgram { program, mismatch });
                                }
                            }
                        }
                    }
                    match play(&program) {
                        Ok(done) => tally.add(&done),
                        Err(mismatch) => {
                            if let Ok(mut failures) = failures.lock() {
                                failures.push(FailingProgram { program, mismatch });
                            }
                        }
                    }
                    progress();
                }
                if let Ok(mut total) = total.lock() {
                    total.add(&tally);
                }
            });
        }
    });
    let total = total.into_inner().map_err(|_| "a thread panicked")?;
    let mut failures = failures.into_inner().map_err(|_| "a thread panicked")?;
    failures.sort_by_key(|found| found.program.seed);
    let texts: Vec<_> = failures.into_iter().take(3).map(|found| text(&shrink(found))).collect();
    if !texts.is_empty() {
        return Err(texts.join("\n\n"));
    }
    let report = report(&total, start);
    let missed = Difference::ALL.iter().any(|difference| !total.differences.contains_key(difference));
    let whole = order.programs >= ENOUGH && order.profile.is_none() && order.only.is_empty();
    if whole && missed {
        Err(format!("{report}\nno program meets a difference that is said to be"))
    } else {
        Ok(report)
    }
}

fn text(found: &FailingProgram) -> String {
    let RandomProgram { seed, setup, steps } = &found.program;
    let steps: Vec<_> = steps.iter().map(|step| format!("  {step:?}")).collect();
    let name = setup.profile.name;
    format!(
        "sublet-peers differential --programs 1 --profile {name} --seed {seed}: step {}\n{}\n{setup:?}\n{}",
        found.mismatch.step,
        found.mismatch.text,
        steps.join("\n")
    )
}

fn report(total: &ComparisonTally, start: Instant) -> String {
    let mut lines = vec![format!("{} programs in {:.1} s", total.programs, start.elapsed().as_secs_f64())];
    lines.extend(total.steps.iter().map(|(name, count)| format!("| step {name} | {count} |")));
    lines.extend(total.counts.iter().map(|(name, count)| format!("| {name} | {count} |")));
    for difference in Difference::ALL {
        let count = total.differences.get(difference).copied().unwrap_or(0);
        let stale = if count == 0 { " STALE" } else { "" };
        lines.push(format!("| {} | {count}{stale} | {} |", difference.id(), difference.reason()));
    }
    lines.extend(
        total.more.iter().map(|(what, count)| format!("| more reserved after {} | {count} |", what.id())),
    );
    let (vma, sublet) = total.reserved;
    lines.push(format!(
        "reserved, all steps together: VMA {vma}, Sublet {sublet}, {:.3}",
        sublet as f64 / vma as f64
    ));
    let gains = &total.gains;
    lines.push(format!("| heaps compacted | {} | not the same before: {} |", gains.heaps, gains.others));
    lines.push(format!("| Sublet freed more | {:?} | less: {:?} |", gains.more, gains.less));
    for (name, sums) in [("VMA", &gains.vma), ("Sublet", &gains.sublet)] {
        let megabytes = |bytes: u128| bytes >> 20;
        let (freed, moved) = (megabytes(sums.freed), megabytes(sums.moved));
        lines.push(format!("| {name} | freed {freed} MiB | moved {moved} MiB, {} moves |", sums.moves));
    }
    lines.join("\n")
}
