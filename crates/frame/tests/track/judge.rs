//! The judge: feeds the hazard detection of the simulated driver with the queue operations. It finds unordered accesses
//! and uses by families that do not own the resource. It shares no code with the tracker.
//!
//! This file checks layouts and discarded contents, which the driver checks elsewhere.

use ash::vk;
use sublet::sim::feed::{Feed, FeedBarrier, FeedPart, FeedUse, writes};
use vk::{AccessFlags2 as Access, ImageLayout as Layout, PipelineStageFlags2 as Stages};

pub const QUEUES: usize = 3;

/// A buffer or an image, with a cell for each byte or subresource.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The memory unit of the first cell. Each cell has one unit.
    pub unit: usize,
    pub cells: usize,
    pub image: bool,
    pub exclusive: bool,
    /// Written by the host before any queue uses it.
    pub filled: bool,
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
    /// Rules that the simulated driver reports.
    Rules(Vec<&'static str>),
    Layout(usize),
    /// Needed contents were discarded.
    Lost(usize),
    /// Nothing signals the semaphore before.
    Semaphore,
}

#[derive(Clone, Debug)]
struct Cell {
    layout: Layout,
    defined: bool,
    wanted: bool,
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap()
}

pub struct Judge<'a> {
    resources: &'a [Resource],
    families: &'a [u32],
    feed: Feed,
    cells: Vec<Vec<Cell>>,
}

impl<'a> Judge<'a> {
    pub fn new(resources: &'a [Resource], families: &'a [u32]) -> Self {
        let fresh = |resource: &Resource| {
            let layout = if resource.filled { Layout::PREINITIALIZED } else { Layout::UNDEFINED };
            vec![Cell { layout, defined: resource.filled, wanted: resource.filled }; resource.cells]
        };
        let cells = resources.iter().map(fresh).collect();
        Self { resources, families, feed: Feed::new(families), cells }
    }

    /// Returns the first fault of a trace.
    pub fn judge(mut self, steps: &[Step]) -> Result<(), (usize, Fault)> {
        for (at, step) in steps.iter().enumerate() {
            self.step(step).map_err(|fault| (at, fault))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Fault> {
        let rules = match step {
            Step::Command { queue, uses } => self.command(*queue, uses)?,
            Step::Barriers { queue, bars } => self.barriers(*queue, bars, None)?,
            Step::Join { queue, event, bars, .. } => self.barriers(*queue, bars, Some(*event))?,
            Step::Set { queue, event, bars } => {
                let stages = bars.iter().fold(Stages::NONE, |all, bar| all | bar.src.0);
                self.feed.set(*queue, wide(*event), stages);
                Vec::new()
            }
            Step::Signal { queue, serial } => {
                self.feed.signal(*queue, *serial);
                Vec::new()
            }
            Step::Wait { queue, on, serial, stages } => {
                if !self.feed.wait(*queue, *on, *serial, *stages) {
                    return Err(Fault::Semaphore);
                }
                Vec::new()
            }
        };
        if rules.is_empty() { Ok(()) } else { Err(Fault::Rules(rules)) }
    }

    fn part(&self, at: usize, cells: &[usize]) -> FeedPart {
        let resource = &self.resources[at];
        FeedPart {
            resource: wide(at),
            base: wide(resource.unit),
            ranges: cells
                .chunk_by(|a, b| a + 1 == *b)
                .map(|run| wide(run[0])..wide(run[0] + run.len()))
                .collect(),
            exclusive: resource.exclusive,
        }
    }

    fn command(&mut self, queue: usize, uses: &[Access1]) -> Result<Vec<&'static str>, Fault> {
        let mut fed = Vec::new();
        for usage in uses {
            let at = usage.resource;
            // Discarded contents need no owner.
            let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
            for &cell in &usage.cells {
                let state = &mut self.cells[at][cell];
                state.wanted &= !usage.discards;
                if self.resources[at].image && state.layout != usage.layout {
                    return Err(Fault::Layout(at));
                }
                if state.wanted && !state.defined {
                    return Err(Fault::Lost(at));
                }
                if state.wanted { wanted.push(cell) } else { unwanted.push(cell) }
            }
            let Access1 { stages, access, unordered, .. } = *usage;
            for (cells, keeps) in [(wanted, true), (unwanted, false)] {
                fed.push(FeedUse { part: self.part(at, &cells), stages, access, keeps, unordered });
            }
        }
        let rules = self.feed.command(queue, &fed);
        uses.iter().for_each(|usage| self.note(usage));
        Ok(rules)
    }

    fn note(&mut self, usage: &Access1) {
        let at = usage.resource;
        let resource = &self.resources[at];
        let written = writes(usage.access);
        for &cell in usage.cells.iter().filter(|_| written) {
            let state = &mut self.cells[at][cell];
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

    fn barriers(
        &mut self,
        queue: usize,
        bars: &[Bar],
        event: Option<usize>,
    ) -> Result<Vec<&'static str>, Fault> {
        let fed: Vec<_> = bars
            .iter()
            .map(|bar| FeedBarrier {
                src: bar.src,
                dst: bar.dst,
                on: bar.on.as_ref().map(|(resource, cells)| self.part(*resource, cells)),
                layouts: bar.layouts,
                families: bar.families,
            })
            .collect();
        let rules = self.feed.barriers(queue, &fed, event.map(wide));
        for bar in bars.iter().filter(|bar| bar.layouts.0 != bar.layouts.1) {
            let Some((at, cells)) = &bar.on else { continue };
            for &cell in cells {
                let state = &mut self.cells[*at][cell];
                if bar.layouts.0 != Layout::UNDEFINED && bar.layouts.0 != state.layout {
                    return Err(Fault::Layout(*at));
                }
                state.defined &= bar.layouts.0 != Layout::UNDEFINED;
                // A release leaves the layout transition to the acquire.
                if bar.families.0 == bar.families.1 || bar.families.1 == self.families[queue] {
                    state.layout = bar.layouts.1;
                }
            }
        }
        Ok(rules)
    }
}

/// Formats a step for a message.
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
