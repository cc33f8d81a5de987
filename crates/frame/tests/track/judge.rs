//! The judge: replays commands, barriers and semaphores as the specification describes them, and finds accesses that
//! nothing orders. It knows nothing of the tracker.
//!
//! Each access of one stage to one unit of memory is an `Event`. An event knows the stages of each queue that come
//! after it (its chain), whether what it wrote is available, and to whom that is visible. Stages count as what they
//! name: the order among stages of one pipeline is not used.

use ash::vk;
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

pub const QUEUES: usize = 3;

/// A buffer or an image, with a cell for each byte or subresource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The unit of memory that the first cell is in; each has one.
    pub unit: usize,
    pub cells: usize,
    pub image: bool,
    pub exclusive: bool,
}

#[derive(Clone, Debug)]
pub struct Access1 {
    pub resource: usize,
    pub cells: Vec<usize>,
    pub stages: Stages,
    pub access: Access,
    pub layout: Layout,
    pub discards: bool,
    pub unordered: bool,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub src: (Stages, Access),
    pub dst: (Stages, Access),
    /// Global if `None`.
    pub on: Option<(usize, Vec<usize>)>,
    pub layouts: (Layout, Layout),
    pub families: (u32, u32),
}

impl Bar {
    /// Whether it changes a layout or an owner.
    fn transforms(&self) -> bool {
        self.layouts.0 != self.layouts.1 || self.families.0 != self.families.1
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    Command {
        queue: usize,
        uses: Vec<Access1>,
    },
    Barriers {
        queue: usize,
        bars: Vec<Bar>,
    },
    /// `vkCmdSetEvent2`, `vkCmdWaitEvents2`.
    Set {
        queue: usize,
        event: usize,
        bars: Vec<Bar>,
    },
    Join {
        queue: usize,
        event: usize,
        bars: Vec<Bar>,
        resource: usize,
    },
    Signal {
        queue: usize,
        serial: u64,
    },
    Wait {
        queue: usize,
        on: usize,
        serial: u64,
        stages: Stages,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    ReadAfterWrite(usize),
    WriteAfterRead(usize),
    WriteAfterWrite(usize),
    /// A change of layout or owner races.
    Transition(usize),
    Layout(usize),
    Owner(usize),
    /// Contents were discarded that somebody wants.
    Lost(usize),
    /// Nobody signals it before.
    Semaphore,
}

/// The first half of a dependency, as an event sees it.
#[derive(Clone, Debug)]
struct Mark {
    event: usize,
    /// The barriers that wait for it.
    waiting: Vec<bool>,
    chain: u64,
    available: bool,
    visible: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Event {
    queue: usize,
    /// None for a barrier.
    stage: u64,
    access: u64,
    resource: usize,
    cell: usize,
    chain: [u64; QUEUES],
    available: bool,
    visible: Vec<(usize, u64, u64)>,
    signalled: [Option<u64>; QUEUES],
    /// What dependencies do to it whose first half has passed.
    marks: Vec<Mark>,
    /// All of the use, if its writes need no order.
    unordered: Option<(Stages, Access, Layout)>,
}

impl Event {
    fn in_source(&self, queue: usize, src: u64) -> bool {
        (self.queue == queue && self.stage & src != 0) || self.chain[queue] & src != 0
    }

    fn is_visible(&self, queue: usize, stage: u64, access: u64) -> bool {
        self.visible.iter().any(|&(to, stages, all)| to == queue && stages & stage != 0 && all & access != 0)
    }
}

#[derive(Clone, Debug, Default)]
struct Unit {
    writes: Vec<Event>,
    reads: Vec<Event>,
}

#[derive(Clone, Debug)]
struct Cell {
    layout: Layout,
    owner: Option<u32>,
    given: Option<(u32, u32, Layout, Layout)>,
    defined: bool,
    wanted: bool,
}

/// Stages with groups taken apart.
fn expand(stages: Stages) -> u64 {
    if stages.contains(Stages::ALL_COMMANDS) {
        return u64::MAX;
    }
    let mut bits = stages;
    if stages.contains(Stages::ALL_TRANSFER) {
        bits |= Stages::COPY | Stages::BLIT | Stages::RESOLVE | Stages::CLEAR;
    }
    bits.as_raw()
}

fn writes() -> u64 {
    (Access::SHADER_STORAGE_WRITE
        | Access::SHADER_WRITE
        | Access::TRANSFER_WRITE
        | Access::COLOR_ATTACHMENT_WRITE
        | Access::DEPTH_STENCIL_ATTACHMENT_WRITE
        | Access::HOST_WRITE)
        .as_raw()
}

fn bits(mut mask: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = mask & mask.wrapping_neg();
        mask &= !bit;
        (bit != 0).then_some(bit)
    })
}

pub struct Judge<'a> {
    resources: &'a [Resource],
    families: &'a [u32],
    units: Vec<Unit>,
    cells: Vec<Vec<Cell>>,
    signals: [u64; QUEUES],
}

impl<'a> Judge<'a> {
    pub fn new(resources: &'a [Resource], families: &'a [u32]) -> Self {
        let units = resources.iter().map(|resource| resource.unit + resource.cells).max().unwrap_or(0);
        let cell =
            Cell { layout: Layout::UNDEFINED, owner: None, given: None, defined: false, wanted: false };
        let cells = resources.iter().map(|resource| vec![cell.clone(); resource.cells]).collect();
        Self { resources, families, units: vec![Unit::default(); units], cells, signals: [0; QUEUES] }
    }

    /// The first fault of a trace.
    pub fn judge(mut self, steps: &[Step]) -> Result<(), (usize, Fault)> {
        for (at, step) in steps.iter().enumerate() {
            self.step(step).map_err(|fault| (at, fault))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Fault> {
        match step {
            Step::Command { queue, uses } => self.command(*queue, uses)?,
            Step::Barriers { queue, bars } => {
                self.set(*queue, usize::MAX, bars);
                self.join(*queue, usize::MAX, bars)?;
            }
            Step::Set { queue, event, bars } => self.set(*queue, *event, bars),
            Step::Join { queue, event, bars, .. } => self.join(*queue, *event, bars)?,
            Step::Signal { queue, serial } => {
                self.signals[*queue] = *serial;
                self.events(|event| {
                    if event.queue == *queue || event.chain[*queue] != 0 {
                        event.signalled[*queue].get_or_insert(*serial);
                    }
                });
            }
            Step::Wait { queue, on, serial, stages } => {
                if self.signals[*on] < *serial {
                    return Err(Fault::Semaphore);
                }
                let stages = expand(*stages);
                self.events(|event| {
                    if event.signalled[*on].is_some_and(|at| at <= *serial) {
                        event.chain[*queue] |= stages;
                        event.available = true;
                        event.visible.push((*queue, stages, u64::MAX));
                    }
                });
            }
        }
        Ok(())
    }

    fn events(&mut self, mut f: impl FnMut(&mut Event)) {
        for unit in &mut self.units {
            unit.writes.iter_mut().chain(&mut unit.reads).for_each(&mut f);
        }
    }

    fn command(&mut self, queue: usize, uses: &[Access1]) -> Result<(), Fault> {
        for usage in uses {
            for &cell in &usage.cells {
                self.check(queue, usage, cell)?;
            }
        }
        for usage in uses {
            for &cell in &usage.cells {
                self.note(queue, usage, cell);
            }
        }
        Ok(())
    }

    fn check(&mut self, queue: usize, usage: &Access1, cell: usize) -> Result<(), Fault> {
        let at = usage.resource;
        let resource = &self.resources[at];
        let state = &mut self.cells[at][cell];
        if usage.discards {
            state.wanted = false;
        }
        if resource.image && state.layout != usage.layout {
            return Err(Fault::Layout(at));
        }
        let family = self.families[queue];
        if resource.exclusive && state.wanted && state.owner.is_some_and(|owner| owner != family) {
            return Err(Fault::Owner(at));
        }
        if state.wanted && !state.defined {
            return Err(Fault::Lost(at));
        }
        let unit = &self.units[resource.unit + cell];
        let unordered = usage.unordered.then_some((usage.stages, usage.access, usage.layout));
        let apart = |event: &Event| {
            unordered.is_some()
                && event.unordered == unordered
                && event.resource == at
                && event.queue == queue
        };
        for stage in bits(usage.stages.as_raw()) {
            for access in bits(usage.access.as_raw()) {
                let mut before = unit.writes.iter().filter(|event| !apart(event));
                if access & writes() == 0 {
                    if before.any(|event| !event.is_visible(queue, stage, access)) {
                        return Err(Fault::ReadAfterWrite(at));
                    }
                } else if unit.reads.is_empty() {
                    if before.any(|event| !event.is_visible(queue, stage, access)) {
                        return Err(Fault::WriteAfterWrite(at));
                    }
                } else {
                    if unit.reads.iter().any(|event| event.chain[queue] & stage == 0) {
                        return Err(Fault::WriteAfterRead(at));
                    }
                    if before.any(|event| !event.available || event.chain[queue] & stage == 0) {
                        return Err(Fault::WriteAfterWrite(at));
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, queue: usize, usage: &Access1, cell: usize) {
        let at = usage.resource;
        let resource = &self.resources[at];
        let written = usage.access.as_raw() & writes();
        let unit = &mut self.units[resource.unit + cell];
        let unordered = usage.unordered.then_some((usage.stages, usage.access, usage.layout));
        let continues = unordered.is_some()
            && unit.reads.is_empty()
            && unit.writes.iter().all(|event| event.unordered == unordered);
        if written != 0 {
            unit.reads.clear();
            if !continues {
                unit.writes.clear();
            }
        }
        for stage in bits(usage.stages.as_raw()) {
            for access in bits(usage.access.as_raw()) {
                let event = Event {
                    queue,
                    stage,
                    access,
                    resource: at,
                    cell,
                    chain: [0; QUEUES],
                    available: false,
                    visible: Vec::new(),
                    signalled: [None; QUEUES],
                    marks: Vec::new(),
                    unordered,
                };
                if access & written != 0 {
                    unit.writes.push(event);
                } else if written == 0 {
                    unit.reads.push(event);
                }
            }
        }
        let state = &mut self.cells[at][cell];
        state.owner = Some(self.families[queue]);
        state.given = None;
        if written != 0 {
            (state.defined, state.wanted) = (true, true);
        }
        for (other, shares) in self.resources.iter().enumerate() {
            let common =
                shares.unit < resource.unit + resource.cells && resource.unit < shares.unit + shares.cells;
            if other != at && common {
                self.cells[other].iter_mut().for_each(|cell| (cell.defined, cell.wanted) = (false, false));
            }
        }
    }

    /// All barriers of a call start from what was before it.
    fn set(&mut self, queue: usize, event: usize, bars: &[Bar]) {
        self.events(|before| {
            let about = |bar: &Bar| match &bar.on {
                None => true,
                Some((resource, cells)) => before.resource == *resource && cells.contains(&before.cell),
            };
            let available = before.available
                || bars.iter().any(|bar| {
                    let own = before.queue == queue && before.stage & expand(bar.src.0) != 0;
                    own && about(bar) && before.access & bar.src.1.as_raw() != 0
                });
            let waiting: Vec<bool> =
                bars.iter().map(|bar| before.in_source(queue, expand(bar.src.0))).collect();
            let mut mark = Mark { event, waiting, chain: 0, available, visible: Vec::new() };
            for (bar, _) in bars.iter().zip(&mark.waiting).filter(|(_, waiting)| **waiting) {
                mark.chain |= expand(bar.dst.0);
                if available && about(bar) {
                    mark.visible.push((expand(bar.dst.0), bar.dst.1.as_raw()));
                }
            }
            before.marks.push(mark);
        });
    }

    fn join(&mut self, queue: usize, event: usize, bars: &[Bar]) -> Result<(), Fault> {
        for (at, bar) in bars.iter().enumerate() {
            let Some((resource, cells)) = &bar.on else {
                continue;
            };
            for &cell in cells.iter().filter(|_| bar.transforms()) {
                let unit = &self.units[self.resources[*resource].unit + cell];
                let mut events = unit.reads.iter().chain(&unit.writes);
                let waits =
                    |before: &Event| before.marks.iter().any(|mark| mark.event == event && mark.waiting[at]);
                if !events.all(waits) {
                    return Err(Fault::Transition(*resource));
                }
            }
        }
        self.events(|before| {
            if let Some(at) = before.marks.iter().position(|mark| mark.event == event) {
                let mark = before.marks.swap_remove(at);
                before.chain[queue] |= mark.chain;
                before.available |= mark.available;
                before.visible.extend(mark.visible.iter().map(|&(stages, access)| (queue, stages, access)));
            }
        });
        for bar in bars.iter().filter(|bar| bar.transforms()) {
            if let Some((resource, cells)) = &bar.on {
                cells.iter().try_for_each(|&cell| self.transition(queue, bar, *resource, cell))?;
            }
        }
        Ok(())
    }

    fn transition(&mut self, queue: usize, bar: &Bar, at: usize, cell: usize) -> Result<(), Fault> {
        let index = self.resources[at].unit + cell;
        if self.units[index].writes.iter().any(|event| !event.available) {
            return Err(Fault::Transition(at));
        }
        let state = &mut self.cells[at][cell];
        let family = self.families[queue];
        let (from, to) = bar.families;
        let moves = from != to;
        if moves && to == family {
            if state.given != Some((from, to, bar.layouts.0, bar.layouts.1)) {
                return Err(Fault::Owner(at));
            }
            state.given = None;
            state.owner = Some(to);
            state.layout = bar.layouts.1;
        } else {
            if bar.layouts.0 != Layout::UNDEFINED && bar.layouts.0 != state.layout {
                return Err(Fault::Layout(at));
            }
            if bar.layouts.0 == Layout::UNDEFINED && bar.layouts.1 != Layout::UNDEFINED {
                state.defined = false;
                state.owner = None;
            }
            if moves {
                if from != family || state.owner.is_some_and(|owner| owner != family) {
                    return Err(Fault::Owner(at));
                }
                state.given = Some((from, to, bar.layouts.0, bar.layouts.1));
            } else {
                state.layout = bar.layouts.1;
            }
        }
        let mut chain = [0; QUEUES];
        chain[queue] = expand(bar.dst.0);
        let event = Event {
            queue,
            stage: 0,
            access: 0,
            resource: at,
            cell,
            chain,
            available: true,
            visible: vec![(queue, expand(bar.dst.0), bar.dst.1.as_raw())],
            signalled: [None; QUEUES],
            marks: Vec::new(),
            unordered: None,
        };
        self.units[index] = Unit { writes: vec![event], reads: Vec::new() };
        Ok(())
    }
}

/// A step for a message, on few lines.
pub fn show(step: &Step) -> String {
    match step {
        Step::Command { queue, uses } => uses.iter().fold(format!("q{queue} command"), |text, usage| {
            let Access1 { resource, cells, stages, access, layout, discards, unordered } = usage;
            text + &format!(
                "\n    {resource} {cells:?}: {stages:?} {access:?} {layout:?} {discards} {unordered}"
            )
        }),
        Step::Barriers { queue, bars } => bars.iter().fold(format!("q{queue} barriers"), |text, bar| {
            text + &format!(
                "\n    {:?} {:?} -> {:?} {:?} {:?}",
                bar.on, bar.src, bar.dst, bar.layouts, bar.families
            )
        }),
        step => format!("{step:?}"),
    }
}
