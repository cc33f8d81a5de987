//! A run of the program: the workloads, their order, and the resulting tables.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{self, CaseFigures, Workload};
use crate::cli::{Options, PeersCommand};
use crate::clock;
use crate::differential;
use crate::gpu::{Driver, TestGpu};
use crate::instructions;
use crate::output::{is_busy, processor, say};
use crate::peers::PeerKind;
use crate::replay;
use crate::statistics::{bytes, median, number, ratio};
use crate::table::AlignedTable;
use crate::workloads::growth::{self, growth};
use crate::workloads::threads::{FreedBy, ThreadFigures, ThreadsPlan, threads};
use crate::workloads::{self, MakeWorkloads, Scale, descriptors, driver, frames};

/// Columns of the tables of allocators.
const WHOLE: [PeerKind; 5] =
    [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc, PeerKind::Driver];
/// Divisor of a real heap: no workload may use more than this part.
const HEAP_PART: u64 = 3;
/// Interval between updates of the progress.
const TICK: Duration = Duration::from_millis(100);

/// The figures of one workload.
pub(crate) struct MeasuredRow {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) figures: BTreeMap<PeerKind, CaseFigures>,
}

impl MeasuredRow {
    /// Returns the nanoseconds for each pair.
    fn pair(&self, kind: PeerKind) -> Option<f64> {
        self.figures.get(&kind)?.pair
    }

    /// Returns an error if Sublet reserved over 1 % more than VMA at the peak. In pools with a fixed number of blocks both
    /// reserve the same, but VMA's rounds are shorter, and so the most bytes in use differ.
    pub(crate) fn check(&self) -> Result<(), String> {
        let peak = |kind| self.figures.get(&kind)?.reserved_peak;
        match (peak(PeerKind::Sublet), peak(PeerKind::Vma)) {
            (Some(own), Some(vma)) if own > 1.01 * vma => {
                Err(format!("{}: {own:.2} bytes are reserved for each live one, VMA: {vma:.2}", self.id))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) struct Session {
    options: Options,
    driver: Driver,
    scale: Scale,
    rounds: u64,
    progress: ProgressBar,
}

impl Session {
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let quick = options.quick;
        let progress = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
            progress.set_style(style);
        }
        progress.enable_steady_tick(TICK);
        Ok(Self {
            driver: options.driver()?,
            options: options.clone(),
            scale: Scale {
                seed: options.seed,
                pairs: if quick { 2_000 } else { 20_000 },
                smaller: if quick { 10 } else { 1 },
            },
            rounds: options.rounds.unwrap_or(if quick { 3 } else { 15 }).max(1),
            progress,
        })
    }

    /// Creates a session with workloads small enough for a test.
    #[cfg(test)]
    pub(crate) fn tiny(options: &Options) -> Result<Self, String> {
        let mut session = Self::new(options)?;
        session.scale = Scale { pairs: 60, smaller: 100, ..session.scale };
        session.rounds = 2;
        session.progress = ProgressBar::hidden();
        Ok(session)
    }

    /// Runs a command, and prints its tables.
    pub(crate) fn run(&self, command: &PeersCommand) -> Result<(), String> {
        match command {
            PeersCommand::Counted { workload } => return self.counted(workload),
            PeersCommand::Differential { programs, profile } => {
                let (programs, profile) = (*programs, profile.clone());
                return differential::command(programs, profile, &self.options, &self.progress);
            }
            _ => say(&format!("{}\n", self.head()?))?,
        }
        match command {
            PeersCommand::Churn => self.single(&[workloads::churn])?,
            PeersCommand::Order => self.single(&[workloads::order])?,
            PeersCommand::Frame => self.single(&[workloads::frame])?,
            PeersCommand::Level => self.single(&[workloads::level])?,
            PeersCommand::Granularity => self.single(&[workloads::granularity])?,
            PeersCommand::Blocks => self.single(&[workloads::blocks])?,
            PeersCommand::Create => self.single(&[workloads::create])?,
            PeersCommand::Descriptors => self.descriptors()?,
            PeersCommand::Threads => self.threads()?,
            PeersCommand::Growth => self.growth()?,
            PeersCommand::Instructions => self.instructions()?,
            PeersCommand::All => {
                self.single(&workloads::ALL)?;
                self.descriptors()?;
                self.threads()?;
                self.growth()?;
                self.instructions()?;
            }
            PeersCommand::Frames => {
                self.print(frames::table(&self.driver, &self.options, &self.scale, self.tell())?)?;
            }
            PeersCommand::Driver => {
                let tables = driver::tables(&self.driver, self.options.quick, self.tell())?;
                tables.into_iter().try_for_each(|table| self.print(table))?;
            }
            PeersCommand::Replay { files } => {
                let tables = replay::tables(files, &self.driver, &self.options, self.rounds, self.tell())?;
                tables.into_iter().try_for_each(|table| self.print(table))?;
            }
            PeersCommand::Counted { .. } | PeersCommand::Differential { .. } => {}
        }
        self.progress.finish_and_clear();
        Ok(())
    }

    /// Returns a function that shows the current step.
    fn tell(&self) -> impl Fn(&str) + use<> {
        let progress = self.progress.clone();
        move |what: &str| progress.set_message(what.to_owned())
    }

    fn print(&self, table: AlignedTable) -> Result<(), String> {
        let table = table.without_empty_columns();
        if table.is_empty() { Ok(()) } else { self.progress.suspend(|| say(&format!("{table}\n"))) }
    }

    /// Returns the information that is needed to interpret the figures.
    fn head(&self) -> Result<String, String> {
        let gpu = TestGpu::new(&self.driver, Some(1))?;
        let command: Vec<String> = std::env::args().skip(1).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let versions: Vec<String> =
            crate::VERSIONS.iter().map(|(name, version)| format!("{name} {version}")).collect();
        Ok(format!(
            "# Sublet and its peers\n\n\
             - Host: {}, {cores} cores, {} {}\n\
             - Driver: {}: {}\n\
             - Versions: {}\n\
             - Command: `sublet-peers {}`; seed {}, {} rounds of {} pairs\n\
             - Clock: reading it takes {} ns, which is subtracted from single calls; without a real driver, rounds \
             are in the thread's own time, so that other processes do not count{}\n",
            processor(),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.driver,
            gpu.description(),
            versions.join(", "),
            command.join(" "),
            self.scale.seed,
            self.rounds,
            self.scale.pairs,
            number(clock::read_cost()),
            if cfg!(debug_assertions) {
                "\n- **Built without --release: the figures mean nothing**"
            } else {
                ""
            },
        ))
    }

    /// Measures a workload with the selected peers. `None` if it is not selected, or too large for the device.
    fn measure(&self, mut workload: Workload) -> Result<Option<MeasuredRow>, String> {
        workload.peers.retain(|entry| self.options.wants_peer(entry.kind));
        if !self.options.wants(&workload.id) || workload.peers.is_empty() {
            return Ok(None);
        }
        if !matches!(self.driver, Driver::Null(_)) {
            // A real driver uses real memory.
            let heap = TestGpu::new(&self.driver, None)?.largest_heap();
            if workload.live_bytes() > heap / HEAP_PART {
                let needs = bytes(workload.live_bytes() as f64);
                self.progress.println(format!("{}: skipped, the device has no {needs} for it", workload.id));
                return Ok(None);
            }
        }
        let tell = self.tell();
        let figures = case::measure(&workload, &self.driver, self.rounds, |peer| {
            tell(&format!("{}: {peer}", workload.id));
        })?;
        Ok(Some(MeasuredRow { id: workload.id, title: workload.title, figures }))
    }

    /// Returns the measured workloads.
    pub(crate) fn measure_all(&self, makers: &[MakeWorkloads]) -> Result<Vec<MeasuredRow>, String> {
        let workloads = makers.iter().flat_map(|maker| maker(&self.scale));
        workloads.filter_map(|workload| self.measure(workload).transpose()).collect()
    }

    fn single(&self, makers: &[MakeWorkloads]) -> Result<(), String> {
        let rows = self.measure_all(makers)?;
        let mut table = AlignedTable::new(
            "Nanoseconds for each pair of allocate and free",
            "Medians of interleaved rounds. gpu-allocator and gpu-alloc are measured without the lock that their users \
             put around them; in the linear rows gpu-alloc uses its allocator for transient memory.",
            std::iter::once("").chain(WHOLE.map(PeerKind::title)).chain(["VMA/Sublet", "gpu-alloc/Sublet"]),
        );
        for row in &rows {
            let pairs = WHOLE.map(|kind| row.pair(kind).map_or("-".to_owned(), number));
            let versus = [PeerKind::Vma, PeerKind::GpuAlloc]
                .map(|kind| ratio(row.pair(kind), row.pair(PeerKind::Sublet)));
            table.row(std::iter::once(row.title.clone()).chain(pairs).chain(versus));
        }
        self.print(table)?;
        self.print_details(&rows)?;
        // With a hundredth of the allocations there are only two or three blocks, whose sizes follow other rules.
        if self.scale.smaller < 100 { rows.iter().try_for_each(MeasuredRow::check) } else { Ok(()) }
    }

    /// Prints memory and driver calls.
    fn print_details(&self, rows: &[MeasuredRow]) -> Result<(), String> {
        let print = |title: &str, note: &str, cell: &dyn Fn(&CaseFigures) -> Option<String>| {
            let mut table =
                AlignedTable::new(title, note, std::iter::once("").chain(WHOLE.map(PeerKind::title)));
            for row in rows {
                let cells = WHOLE.map(|kind| row.figures.get(&kind).and_then(cell));
                if cells.iter().any(Option::is_some) {
                    let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
                    table.row(std::iter::once(row.title.clone()).chain(cells));
                }
            }
            self.print(table)
        };
        print(
            "Bytes reserved for each live byte",
            "At the peak / at the end. Rows are missing if the caller chooses the reserved bytes, or if almost nothing \
             is live.",
            &|figures| {
                let end = figures.reserved_end.map_or("-".to_owned(), number);
                figures.reserved_peak.map(|peak| format!("{} / {end}", number(peak)))
            },
        )?;
        print("Calls of vkAllocateMemory / vkFreeMemory / vkMapMemory", "", &|figures| {
            let calls = figures.calls;
            Some(format!("{} / {} / {}", calls.allocations, calls.frees, calls.maps))
        })?;
        let handles = WHOLE.map(|kind| format!("{} with {}", kind.handle_bytes(), kind.title()));
        print(
            "Host memory, bytes for each live allocation",
            &format!(
                "From the C library, with the empty allocator. Bytes of a handle: {}.",
                handles[..4].join(", ")
            ),
            &|figures| figures.own_heap.map(number),
        )
    }

    fn threads(&self) -> Result<(), String> {
        let busy = "**Other processes used the machine: these figures say little of scaling.**";
        let busy = if is_busy() { busy } else { "" };
        for freed_by in FreedBy::ALL.into_iter().filter(|freed_by| self.options.wants(freed_by.name())) {
            let place = freed_by.title();
            let heads = || std::iter::once("threads").chain(workloads::WHOLE.map(PeerKind::title));
            let mut table = AlignedTable::new(
                &format!("Threads, million pairs a second in all, {place}"),
                busy,
                heads().chain(["Sublet/VMA"]),
            );
            let title = format!("Reserved at the peak / for each live byte, {place}");
            let mut memory = AlignedTable::new(&title, "", heads());
            for count in self.options.thread_counts() {
                let found = self.threads_row(count, freed_by)?;
                let rate = |kind| found.get(&kind).map(|figures: &ThreadFigures| figures.throughput);
                let rates = workloads::WHOLE.map(|kind| rate(kind).map_or("-".to_owned(), number));
                let versus = ratio(rate(PeerKind::Sublet), rate(PeerKind::Vma));
                table.row(std::iter::once(count.to_string()).chain(rates).chain([versus]));
                let reserved = workloads::WHOLE.map(|kind| {
                    found.get(&kind).map_or("-".to_owned(), |figures| {
                        let share = figures.reserved as f64 / figures.live.max(1) as f64;
                        format!("{} / {}", bytes(figures.reserved as f64), number(share))
                    })
                });
                memory.row(std::iter::once(count.to_string()).chain(reserved));
            }
            self.print(table)?;
            self.print(memory)?;
        }
        Ok(())
    }

    /// Returns the figures with this many threads: medians, and the most reserved bytes.
    fn threads_row(
        &self,
        count: usize,
        freed_by: FreedBy,
    ) -> Result<BTreeMap<PeerKind, ThreadFigures>, String> {
        let (rounds, milliseconds) = if self.options.quick { (1, 20) } else { (self.rounds.min(5), 100) };
        let mut found: BTreeMap<PeerKind, Vec<ThreadFigures>> = BTreeMap::new();
        for round in 0..rounds {
            let plan = ThreadsPlan {
                threads: count,
                freed_by,
                warm_up: Duration::from_millis(milliseconds / 2),
                duration: Duration::from_millis(milliseconds),
                scale: self.scale,
                round,
            };
            for kind in workloads::WHOLE.into_iter().filter(|kind| self.options.wants_peer(*kind)) {
                self.tell()(&format!("{}, {count}: {}", freed_by.name(), kind.title()));
                found.entry(kind).or_default().push(threads(plan, &self.driver, kind)?);
            }
        }
        let all = found.into_iter().map(|(kind, all)| {
            let rates: Vec<f64> = all.iter().map(|figures| figures.throughput).collect();
            let reserved = all.iter().map(|figures| figures.reserved).max().unwrap_or(0);
            (kind, ThreadFigures { throughput: median(&rates).unwrap_or(0.0), reserved, ..all[0] })
        });
        Ok(all.collect())
    }

    fn growth(&self) -> Result<(), String> {
        if !self.options.wants("growth") {
            return Ok(());
        }
        let slow = match self.driver {
            Driver::Vulkan(_) => "as long as the driver takes".to_owned(),
            _ => format!("{} ms", growth::DELAY.as_millis()),
        };
        let mut table = AlignedTable::new(
            &format!("While another thread is in vkAllocateMemory ({slow})"),
            "Nanoseconds of single calls of allocate and free that need no new memory, 100 pairs each time that the \
             other thread has entered the driver. Interruptions by the system are included.",
            ["", "p50", "p99", "p99.9", "max"],
        );
        for kind in workloads::WHOLE.into_iter().filter(|kind| self.options.wants_peer(*kind)) {
            self.tell()(&format!("growth: {}", kind.title()));
            let found = growth(&self.driver, kind, &self.scale, if self.options.quick { 4 } else { 50 })?;
            let cells = [found.p50, found.p99, found.p999, found.max].map(number);
            table.row(std::iter::once(kind.title().to_owned()).chain(cells));
        }
        self.print(table)
    }

    /// Measures descriptor sets. Adds the system's driver to the null driver if there is one, because the cost of
    /// driver calls matters here.
    fn descriptors(&self) -> Result<(), String> {
        let real = Driver::Vulkan(0);
        let has_real = matches!(self.driver, Driver::Null(_)) && TestGpu::new(&real, None).is_ok();
        for driver in std::iter::once(&self.driver).chain(has_real.then_some(&real)) {
            self.print(descriptors::table(driver, &self.options, &self.scale, self.rounds, self.tell())?)?;
        }
        Ok(())
    }

    /// Runs one workload and one peer under valgrind: see `instructions`.
    fn counted(&self, id: &str) -> Result<(), String> {
        let kind = *self.options.peers.first().ok_or("one peer is counted at a time")?;
        let found = instructions::workloads(&self.scale).into_iter().find(|workload| workload.id == id);
        let workload = found.ok_or_else(|| format!("no workload {id} is counted"))?;
        let pairs = instructions::child(&workload, &self.driver, kind)?;
        say(&format!("{pairs}\n"))
    }

    fn instructions(&self) -> Result<(), String> {
        if !instructions::available() {
            self.progress.println("instructions: skipped, there is no valgrind");
            return Ok(());
        }
        let mut table = AlignedTable::new(
            "Instructions for each pair",
            "Counted by valgrind, the same on every run of the same build.",
            std::iter::once("").chain(WHOLE.map(PeerKind::title)).chain(["VMA/Sublet"]),
        );
        for workload in instructions::workloads(&self.scale) {
            let is_quick = instructions::QUICK.contains(&workload.id.as_str());
            if !self.options.wants(&workload.id) || self.options.quick && !is_quick {
                continue;
            }
            let mut found = Vec::new();
            for kind in WHOLE {
                // gpu-allocator alone would take as long as all others together.
                let counted = workload.peers.iter().any(|entry| entry.kind == kind)
                    && self.options.wants_peer(kind)
                    && kind != PeerKind::GpuAllocator;
                self.tell()(&format!("instructions, {}: {}", workload.id, kind.title()));
                let count = || instructions::count(&workload.id, kind, &self.options);
                found.push(if counted { count()? } else { None });
            }
            let cells = found.iter().map(|found| found.map_or("-".to_owned(), number));
            let versus = ratio(found[1], found[0]);
            table.row(std::iter::once(workload.title.clone()).chain(cells).chain([versus]));
        }
        self.print(table)
    }
}
