//! A run of the program: the workloads, their order, and the resulting tables.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{self, CaseEffort, CaseFigures, Workload};
use crate::cli::{Options, PeersCommand};
use crate::clock::TickClock;
use crate::differential;
use crate::gpu::{Driver, TestGpu};
use crate::instructions;
use crate::output::{is_busy, list, processor, say};
use crate::peers::PeerKind;
use crate::peers::replay::WgpuHint;
use crate::replay;
use crate::results::{Results, ThreadFigures};
use crate::set_tables;
use crate::statistics::{bytes, median, number, ratio};
use crate::table::AlignedTable;
use crate::workloads::frames::{self, FramesScale};
use crate::workloads::growth::{self, growth};
use crate::workloads::threads::{FreedBy, ThreadsPlan, threads};
use crate::workloads::{self, MakeWorkloads, Scale};

/// Columns of the tables of allocators.
const WHOLE: [PeerKind; 6] = [
    PeerKind::Sublet,
    PeerKind::Vma,
    PeerKind::GpuAllocator,
    PeerKind::GpuAlloc,
    PeerKind::Driver,
    PeerKind::Nothing,
];
/// Columns of the table of engines.
const ENGINES: [PeerKind; 5] = [
    PeerKind::SubletEngine,
    PeerKind::SubletVirtual,
    PeerKind::VmaVirtual,
    PeerKind::OffsetAllocator,
    PeerKind::Nothing,
];
/// Columns of the tables of threads.
const SHARED: [PeerKind; 5] =
    [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc, PeerKind::Nothing];
/// Tables of instructions, and their columns.
const COUNTED: [(&str, &[PeerKind]); 2] =
    [("Instructions for each pair", &WHOLE), ("Instructions for each pair, engines", &ENGINES)];
/// Divisor of a real heap: no workload may use more than this part.
const HEAP_PART: u64 = 3;
/// Interval between updates of the progress.
const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Session {
    options: Options,
    driver: Driver,
    scale: Scale,
    effort: CaseEffort,
    results: Results,
    progress: ProgressBar,
}

impl Session {
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let quick = options.quick;
        let rounds = options.rounds.unwrap_or(if quick { 3 } else { 15 }).max(1);
        let sample_rounds = if quick { 1 } else { 5 };
        let scale = Scale {
            seed: options.seed,
            pairs: if quick { 2_000 } else { 20_000 },
            smaller: if quick { 10 } else { 1 },
        };
        let progress = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
            progress.set_style(style);
        }
        progress.enable_steady_tick(TICK);
        Ok(Self {
            driver: options.driver()?,
            options: options.clone(),
            scale,
            effort: CaseEffort { rounds, sample_rounds },
            results: Results::default(),
            progress,
        })
    }

    /// Creates a session with workloads small enough for a test.
    #[cfg(test)]
    pub(crate) fn tiny(options: &Options) -> Result<Self, String> {
        let mut session = Self::new(options)?;
        session.scale = Scale { pairs: 60, smaller: 100, ..session.scale };
        session.effort = CaseEffort { rounds: 2, sample_rounds: 1 };
        session.progress = ProgressBar::hidden();
        Ok(session)
    }

    #[cfg(test)]
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// Runs a command, and prints its tables.
    pub(crate) fn run(&mut self, command: &PeersCommand) -> Result<(), String> {
        match command {
            PeersCommand::List => {
                self.progress.finish_and_clear();
                return list(&self.scale);
            }
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
            PeersCommand::Engines => self.engines()?,
            PeersCommand::Descriptors => self.descriptors()?,
            PeersCommand::Threads => self.threads()?,
            PeersCommand::Growth => self.growth()?,
            PeersCommand::Instructions => self.instructions()?,
            PeersCommand::All => {
                self.single(&workloads::WHOLES)?;
                self.engines()?;
                self.descriptors()?;
                self.threads()?;
                self.growth()?;
                self.instructions()?;
            }
            PeersCommand::Frames { device_mib, host_mib, frames, work_ms } => {
                self.frames(*device_mib, *host_mib, *frames, *work_ms)?;
            }
            PeersCommand::Replay { files, wgpu_hint } => self.replay(files, *wgpu_hint)?,
            PeersCommand::List | PeersCommand::Counted { .. } | PeersCommand::Differential { .. } => {}
        }
        self.progress.finish_and_clear();
        Ok(())
    }

    fn print(&self, title: &str, notes: &[&str], table: AlignedTable) -> Result<(), String> {
        let table = table.without_empty_columns();
        if table.is_empty() {
            return Ok(());
        }
        let mut text = format!("## {title}\n\n{table}\n");
        for note in notes {
            text.push_str(note);
            text.push_str("\n\n");
        }
        self.progress.suspend(|| say(&text))
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
             - Clock: a look at it takes {} ns, which is subtracted from single calls; whole rounds on drivers that \
             are not real are in the thread's own time, so that what else runs on the machine is not in them{}\n",
            processor(),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.driver,
            gpu.description(),
            versions.join(", "),
            command.join(" "),
            self.scale.seed,
            self.effort.rounds,
            self.scale.pairs,
            number(TickClock::get().own),
            if cfg!(debug_assertions) {
                "\n- **Built without --release: the figures mean nothing**"
            } else {
                ""
            },
        ))
    }

    /// Measures a workload with the selected peers.
    fn measure(&mut self, mut workload: Workload, driver: &Driver) -> Result<bool, String> {
        workload.peers.retain(|entry| self.options.wants_peer(entry.kind));
        if !self.options.wants(&workload.id) || workload.peers.is_empty() {
            return Ok(false);
        }
        if !matches!(driver, Driver::Null(_)) {
            // A real driver uses real memory.
            let heap = TestGpu::new(driver, None)?.largest_heap();
            if workload.live_bytes() > heap / HEAP_PART {
                let needs = bytes(workload.live_bytes() as f64);
                self.progress.println(format!("{}: skipped, its {needs} are too much here", workload.id));
                return Ok(false);
            }
        }
        let progress = self.progress.clone();
        let measured = case::measure(&workload, driver, self.effort.rounds, |peer| {
            progress.set_message(format!("{}: {peer}", workload.id));
        })?;
        for (kind, figures) in measured {
            self.results.add(&workload.id, kind, figures);
        }
        Ok(true)
    }

    /// Returns ids and titles of the measured workloads.
    fn measure_all(&mut self, maker: MakeWorkloads) -> Result<Vec<(String, String)>, String> {
        let mut measured = Vec::new();
        for workload in maker(&self.scale) {
            let named = (workload.id.clone(), workload.title.clone());
            let driver = self.driver.clone();
            if self.measure(workload, &driver)? {
                measured.push(named);
            }
        }
        Ok(measured)
    }

    fn single(&mut self, makers: &[MakeWorkloads]) -> Result<(), String> {
        let mut rows = Vec::new();
        for maker in makers {
            rows.extend(self.measure_all(*maker)?);
        }
        self.times("Nanoseconds for each pair of allocate and free", &rows)?;
        self.print_details(&rows)?;
        // With a hundredth of the allocations there are only two or three blocks, whose sizes follow other rules.
        let above = if self.scale.smaller < 100 { self.results.above_vma(&rows) } else { Vec::new() };
        if above.is_empty() { Ok(()) } else { Err(above.join("\n")) }
    }

    fn times(&self, title: &str, rows: &[(String, String)]) -> Result<(), String> {
        let heads = WHOLE.iter().map(|kind| kind.title());
        let mut table =
            AlignedTable::new(std::iter::once("").chain(heads).chain(["VMA/Sublet", "gpu-alloc/Sublet"]));
        for (id, title) in rows {
            let pair = |kind| self.results.pair(id, kind);
            let mut cells = vec![title.clone()];
            cells.extend(WHOLE.iter().map(|kind| pair(*kind).map_or("-".to_owned(), number)));
            cells.push(ratio(pair(PeerKind::Vma), pair(PeerKind::Sublet)));
            cells.push(ratio(pair(PeerKind::GpuAlloc), pair(PeerKind::Sublet)));
            table.row(cells);
        }
        self.print(
            title,
            &[
                "Medians of interleaved rounds. `loop` is what the measuring itself costs; it is part of all figures. \
                 gpu-allocator and gpu-alloc are measured without the lock that their users put around them; in the \
                 linear rows gpu-alloc uses its allocator for transient memory.",
            ],
            table,
        )
    }

    /// Prints memory and driver calls.
    fn print_details(&self, rows: &[(String, String)]) -> Result<(), String> {
        let heads = || std::iter::once("").chain(WHOLE.iter().map(|kind| kind.title()));
        let table = |cell: &dyn Fn(&CaseFigures) -> Option<String>| {
            let mut table = AlignedTable::new(heads());
            for (id, title) in rows {
                let figures = |kind: &PeerKind| self.results.get(id, *kind);
                let cells: Vec<_> = WHOLE
                    .iter()
                    .map(|kind| if *kind == PeerKind::Nothing { None } else { figures(kind).and_then(cell) })
                    .collect();
                if cells.iter().any(Option::is_some) {
                    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
                    table.row(std::iter::once(title.clone()).chain(cells));
                }
            }
            table
        };
        let reserved = |figures: &CaseFigures| {
            let text = |share: Option<f64>| share.map_or("-".to_owned(), number);
            figures.reserved_peak.map(|peak| format!("{} / {}", text(Some(peak)), text(figures.reserved_end)))
        };
        self.print(
            "Bytes reserved for each live byte",
            &["The most that was reserved over the most that was live / in the end. Rows are missing if the caller \
               chooses the reserved bytes, or if almost nothing is live."],
            table(&reserved),
        )?;
        let calls = |figures: &CaseFigures| {
            let calls = figures.calls;
            Some(format!("{} / {} / {}", calls.allocations, calls.frees, calls.maps))
        };
        self.print("Calls of vkAllocateMemory / vkFreeMemory / vkMapMemory", &[], table(&calls))?;
        let blocks = |figures: &CaseFigures| Some(figures.blocks.to_string());
        if rows.iter().any(|(id, _)| id.starts_with("blocks")) {
            self.print("Memory objects in the end", &[], table(&blocks))?;
        }
        let heap = |figures: &CaseFigures| figures.own_heap.map(number);
        self.print(
            "Own host memory, bytes for each live allocation",
            &["What the empty allocator takes is in it."],
            table(&heap),
        )?;
        let mut handles = AlignedTable::new(heads());
        let size = |kind: &PeerKind| match kind.handle_bytes() {
            0 => "-".to_owned(),
            size => size.to_string(),
        };
        handles.row(std::iter::once("bytes".to_owned()).chain(WHOLE.iter().map(size)));
        self.print("What the caller holds", &[], handles)
    }

    fn engines(&mut self) -> Result<(), String> {
        let rows = self.measure_all(workloads::engines)?;
        let heads = ENGINES.iter().map(|kind| kind.title());
        let ratios = ["VMA/Sublet", "offset-allocator/Sublet"];
        let mut table = AlignedTable::new(std::iter::once("").chain(heads).chain(ratios));
        for (id, title) in &rows {
            let pair = |kind| self.results.pair(id, kind);
            let mut cells = vec![title.clone()];
            cells.extend(ENGINES.iter().map(|kind| pair(*kind).map_or("-".to_owned(), number)));
            cells.push(ratio(pair(PeerKind::VmaVirtual), pair(PeerKind::SubletEngine)));
            cells.push(ratio(pair(PeerKind::OffsetAllocator), pair(PeerKind::SubletEngine)));
            table.row(cells);
        }
        self.print(
            "Engines alone, nanoseconds for each pair",
            &[
                "The ratios are to Sublet's engine. offset-allocator has no alignment, so its requests are larger by the alignment.",
            ],
            table,
        )?;
        Ok(())
    }

    fn threads(&mut self) -> Result<(), String> {
        let rounds = if self.options.quick { 1 } else { self.effort.rounds.min(5) };
        let milliseconds = if self.options.quick { 20 } else { 100 };
        self.results.busy = is_busy();
        for freed_by in FreedBy::ALL {
            let name = freed_by.name();
            if !self.options.wants(name) {
                continue;
            }
            let heads = SHARED.iter().map(|kind| kind.title());
            let mut table = AlignedTable::new(std::iter::once("threads").chain(heads).chain(["Sublet/VMA"]));
            let mut memory =
                AlignedTable::new(std::iter::once("threads").chain(SHARED.iter().map(|kind| kind.title())));
            for count in self.options.thread_counts() {
                let mut found: Vec<(PeerKind, Vec<ThreadFigures>)> = Vec::new();
                for round in 0..rounds {
                    let plan = ThreadsPlan {
                        threads: count,
                        freed_by,
                        warm_up: Duration::from_millis(milliseconds / 2),
                        duration: Duration::from_millis(milliseconds),
                        scale: self.scale,
                        round,
                    };
                    for kind in SHARED.into_iter().filter(|kind| self.options.wants_peer(*kind)) {
                        self.progress.set_message(format!("{name}, {count}: {}", kind.title()));
                        let Some(figures) = threads(plan, &self.driver, kind)? else { continue };
                        match found.iter_mut().find(|(known, _)| *known == kind) {
                            Some((_, all)) => all.push(figures),
                            None => found.push((kind, vec![figures])),
                        }
                    }
                }
                for (kind, all) in found {
                    let rates: Vec<f64> = all.iter().map(|figures| figures.throughput).collect();
                    let reserved = all.iter().map(|figures| figures.reserved).max().unwrap_or(0);
                    if let (Some(throughput), Some(one)) = (median(&rates), all.first()) {
                        let figures = ThreadFigures { throughput, reserved, live: one.live };
                        self.results.add_threads(kind, count, freed_by, figures);
                    }
                }
                let of = |kind| self.results.threads(kind, count, freed_by);
                let rate = |kind| of(kind).map(|figures| figures.throughput);
                let rates = SHARED.iter().map(|kind| rate(*kind).map_or("-".to_owned(), number));
                let versus = ratio(rate(PeerKind::Sublet), rate(PeerKind::Vma));
                table.row(std::iter::once(count.to_string()).chain(rates).chain([versus]));
                let reserved = SHARED.iter().map(|kind| match of(*kind) {
                    Some(figures) if *kind != PeerKind::Nothing => {
                        let share = figures.reserved as f64 / figures.live.max(1) as f64;
                        format!("{} / {}", bytes(figures.reserved as f64), number(share))
                    }
                    _ => "-".to_owned(),
                });
                memory.row(std::iter::once(count.to_string()).chain(reserved));
            }
            let busy = "**Others were at work on the machine: these figures say little of scaling.**";
            let (place, note) = match freed_by {
                FreedBy::Itself => ("frees on the same thread", ""),
                FreedBy::Neighbour => (
                    "frees mostly on another thread",
                    "15 of 16 allocations are handed to the next thread, which frees them. `loop` is the handing \
                     over without any allocator.",
                ),
                FreedBy::Anyone => (
                    "all allocations change their thread",
                    "All threads pass all their allocations to the next thread every 1,024 pairs.",
                ),
            };
            let notes: Vec<&str> = [note, if self.results.busy { busy } else { "" }]
                .into_iter()
                .filter(|note| !note.is_empty())
                .collect();
            self.print(&format!("Threads, million pairs a second in all, {place}"), &notes, table)?;
            self.print("Reserved at the peak / for each live byte", &[], memory)?;
        }
        Ok(())
    }

    fn growth(&mut self) -> Result<(), String> {
        if !self.options.wants("growth") {
            return Ok(());
        }
        let times = if self.options.quick { 4 } else { 50 };
        let mut table = AlignedTable::new(["", "p50", "p99", "p99.9", "max"]);
        for kind in SHARED {
            if kind == PeerKind::Nothing || !self.options.wants_peer(kind) {
                continue;
            }
            self.progress.set_message(format!("growth: {}", kind.title()));
            let Some(found) = growth(&self.driver, kind, &self.scale, times)? else { continue };
            let cells = [found.p50, found.p99, found.p999, found.max].map(number);
            table.row(std::iter::once(kind.title().to_owned()).chain(cells));
            self.results.add_growth(kind, found);
        }
        let slow = match self.driver {
            Driver::Vulkan(_) => "as long as the driver takes".to_owned(),
            _ => format!("{} ms", growth::DELAY.as_millis()),
        };
        let note = "Nanoseconds of single calls of allocate and free that need no new memory, 100 pairs each \
                    time that the other thread has entered the driver. The system's own breaks are in them.";
        self.print(&format!("While another thread is in vkAllocateMemory ({slow})"), &[note], table)?;
        Ok(())
    }

    fn frames(
        &mut self,
        device_mib: Option<u64>,
        host_mib: Option<u64>,
        frames: u64,
        work_ms: u64,
    ) -> Result<(), String> {
        let most = TestGpu::new(&self.driver, None)?.largest_heap() >> 22;
        let device = device_mib.unwrap_or(if self.options.quick { 256 } else { 6144 }.min(most));
        let host = host_mib.unwrap_or(device / 6);
        let scale = FramesScale {
            peak: [device << 20, host << 20],
            frames: if self.options.quick { frames.min(100) } else { frames }.max(4),
            work: Duration::from_millis(work_ms),
            seed: self.options.seed,
        };
        let mut table = AlignedTable::new([
            "",
            "frame p50",
            "p99.9",
            "worst",
            "create p99.9",
            "worst",
            "destroy p99.9",
            "worst",
            "submit worst",
            "maintain p50",
            "worst",
            "vkAllocateMemory",
            "vkFreeMemory",
            "peak MiB",
            "left MiB",
        ]);
        let columns = [
            (PeerKind::Sublet, true),
            (PeerKind::Sublet, false),
            (PeerKind::Vma, false),
            (PeerKind::GpuAllocator, false),
        ];
        for (kind, maintained) in columns {
            if !self.options.wants_peer(kind) {
                continue;
            }
            let title =
                if maintained { format!("{}, maintained", kind.title()) } else { kind.title().to_owned() };
            self.progress.set_message(format!("frames: {title}"));
            let gpu = TestGpu::new(&self.driver, None)?;
            let said = |error| format!("frames, {title}: {error}");
            let Some(it) = frames::frames(&gpu, kind, maintained, scale).map_err(said)? else { continue };
            gpu.finish().map_err(said)?;
            let times = [
                it.frame.p50,
                it.frame.p999,
                it.frame.max,
                it.create.p999,
                it.create.max,
                it.destroy.p999,
                it.destroy.max,
                it.submit.max,
                it.maintain.p50,
                it.maintain.max,
            ];
            let cells = times.map(|nanoseconds| number(nanoseconds / 1000.0)).into_iter();
            let counts = [it.allocations, it.frees, it.peak >> 20, it.left >> 20];
            let cells = cells.chain(counts.map(|count| count.to_string()));
            table.row(std::iter::once(title.clone()).chain(cells));
        }
        let title = format!(
            "Frames of a program that grows to {device} MiB device-local and {host} MiB host-visible memory, and shrinks"
        );
        let note = format!(
            "Microseconds. The program grows for {} frames, and shrinks for as many. On a real driver, each frame \
             has {work_ms} ms of work for the GPU, and `maintain` follows its submission.",
            scale.frames
        );
        self.print(&title, &[&note], table)?;
        Ok(())
    }

    fn descriptors(&mut self) -> Result<(), String> {
        for driver in set_tables::drivers(&self.driver) {
            let progress = self.progress.clone();
            let (title, note, table) = set_tables::table(
                &driver,
                &self.options,
                &self.scale,
                self.effort.rounds,
                |row, giver, found| {
                    progress.set_message(format!("{row}: {}", giver.title()));
                    self.results.add_sets(row, giver, found);
                },
            )?;
            self.print(&title, &[note], table)?;
        }
        Ok(())
    }

    fn replay(&mut self, files: &[PathBuf], hint: Option<WgpuHint>) -> Result<(), String> {
        let progress = self.progress.clone();
        let tell = |what: &str| progress.set_message(what.to_owned());
        for (title, note, table) in
            replay::tables(files, hint, &self.driver, &self.options, self.effort, tell)?
        {
            self.print(&title, &[&note], table)?;
        }
        Ok(())
    }

    /// Runs one workload and one peer under valgrind: see `instructions`.
    fn counted(&mut self, id: &str) -> Result<(), String> {
        let kind = *self.options.peers.first().ok_or("one peer is counted at a time")?;
        let found = instructions::workloads(&self.scale).into_iter().find(|workload| workload.id == id);
        let workload = found.ok_or_else(|| format!("no workload {id} is counted"))?;
        let pairs = instructions::child(&workload, &self.driver, kind)?;
        say(&format!("{pairs}\n"))
    }

    fn instructions(&mut self) -> Result<(), String> {
        if !instructions::available() {
            self.progress.println("instructions: skipped, there is no valgrind");
            return Ok(());
        }
        let group = |id: &str| usize::from(id.starts_with("engine"));
        for (at, (title, kinds)) in COUNTED.iter().enumerate() {
            let heads = kinds.iter().map(|kind| kind.title());
            let mut table = AlignedTable::new(std::iter::once("").chain(heads).chain(["VMA/Sublet"]));
            for workload in instructions::workloads(&self.scale) {
                let takes_part: Vec<_> = workload.peers.iter().map(|entry| entry.kind).collect();
                let wanted = self.options.wants(&workload.id)
                    && (!self.options.quick || instructions::QUICK.contains(&workload.id.as_str()));
                let skipped = !wanted || group(&workload.id) != at;
                if skipped {
                    continue;
                }
                let mut cells = vec![workload.title.clone()];
                let (mut own, mut vma) = (None, None);
                for kind in *kinds {
                    // Skipped by default: it would take as long as all others together, and is known to be slow.
                    let counted = takes_part.contains(kind)
                        && self.options.wants_peer(*kind)
                        && *kind != PeerKind::GpuAllocator;
                    self.progress.set_message(format!("instructions, {}: {}", workload.id, kind.title()));
                    let found =
                        if counted { instructions::count(&workload.id, *kind, &self.options)? } else { None };
                    cells.push(found.map_or("-".to_owned(), number));
                    match kind {
                        PeerKind::Sublet | PeerKind::SubletEngine => own = found,
                        PeerKind::Vma | PeerKind::VmaVirtual => vma = found,
                        _ => {}
                    }
                }
                cells.push(ratio(vma, own));
                table.row(cells);
            }
            let note = "Counted by valgrind, the same on every run of the same build.";
            self.print(title, &[note], table)?;
        }
        Ok(())
    }
}
