//! Random programs of resources, lists, queues, subresources and shared memory. They run through the tracker and leave
//! a trace for the judge.

use ash::vk::{self, Handle};
use fastrand::Rng;
use sublet_frame::track::{
    BarrierBatch, BufferId, BufferInfo, Global, ImageId, ImageInfo, MemoryRange, Queue, Recorder, Split,
    Submission, Subresources, Use,
};
use vk::{ImageAspectFlags as Aspects, PipelineStageFlags2 as Stages};

use crate::foreign::Foreign;
use crate::judge::{Access1, Bar, QUEUES, Resource, Step};

#[derive(Clone, Copy)]
enum Name {
    Buffer(BufferId),
    Image(ImageId),
}

struct Kept {
    name: Name,
    mips: u32,
    layers: u32,
    aspects: Aspects,
    place: Option<(usize, usize)>,
}

impl Kept {
    /// Returns the cells by aspect, mip and layer.
    fn cells(&self, range: &vk::ImageSubresourceRange) -> Vec<usize> {
        let mut cells = Vec::new();
        let mut plane = 0;
        for bit in 0..3 {
            let aspect = Aspects::from_raw(1 << bit);
            if !self.aspects.contains(aspect) {
                continue;
            }
            for mip in 0..self.mips {
                for layer in 0..self.layers {
                    let mips = range.base_mip_level..range.base_mip_level + range.level_count;
                    let layers = range.base_array_layer..range.base_array_layer + range.layer_count;
                    if range.aspect_mask.contains(aspect) && mips.contains(&mip) && layers.contains(&layer) {
                        cells.push(usize::try_from((plane * self.mips + mip) * self.layers + layer).unwrap());
                    }
                }
            }
            plane += 1;
        }
        cells
    }
}

#[derive(Clone, Copy)]
pub struct ProgramShape {
    pub queues: usize,
    pub aliasing: bool,
    pub unordered: bool,
    pub splits: bool,
    pub resources: usize,
    pub submissions: usize,
    pub whole: bool,
}

pub const SHAPE: ProgramShape = ProgramShape {
    queues: 1,
    aliasing: false,
    unordered: false,
    splits: false,
    resources: 4,
    submissions: 4,
    whole: false,
};

pub struct Program {
    pub resources: Vec<Resource>,
    pub families: Vec<u32>,
    pub steps: Vec<Step>,
}

/// Returns true if the step joins a split dependency of the resource.
fn joins(step: &Step, at: usize) -> bool {
    matches!(step, Step::Join { resource, .. } if *resource == at)
}

struct World {
    rng: Rng,
    shape: ProgramShape,
    global: Global,
    /// A second `Global`, whose ids are passed everywhere.
    foreign: Foreign,
    queues: Vec<Queue>,
    kept: Vec<Kept>,
    resources: Vec<Resource>,
    lists: Vec<(usize, Recorder, Vec<Step>)>,
    steps: Vec<Step>,
    events: usize,
}

/// Units of shared memory come first.
const SHARED: usize = 12;

pub fn run(seed: u64, shape: ProgramShape) -> Program {
    let mut rng = Rng::with_seed(seed);
    let mut global = Global::new();
    let families: Vec<u32> = (0..QUEUES)
        .map(|queue| if queue == 1 && rng.bool() { 0 } else { u32::try_from(queue).unwrap() })
        .collect();
    let queues = families[..shape.queues].iter().map(|&family| global.add_queue(family)).collect();
    let mut world = World {
        rng,
        shape,
        global,
        foreign: Foreign::new(seed, &families[..shape.queues]),
        queues,
        kept: Vec::new(),
        resources: Vec::new(),
        lists: Vec::new(),
        steps: Vec::new(),
        events: 0,
    };
    let mut unit = SHARED;
    for _ in 0..shape.resources {
        world.add(&mut unit);
    }
    let mut submitted = Submission::new();
    for _ in 0..shape.submissions {
        // Record lists for several submissions before resolving any.
        while world.lists.len() < 4 {
            world.record();
        }
        world.submit(&mut submitted);
    }
    Program { resources: world.resources, families, steps: world.steps }
}

impl World {
    fn add(&mut self, unit: &mut usize) {
        let rng = &mut self.rng;
        let raw = u64::try_from(self.kept.len()).unwrap() + 1;
        let exclusive = rng.bool();
        let image = rng.bool();
        let (mips, layers) = if image { (rng.u32(1..4), rng.u32(1..4)) } else { (1, 1) };
        let both = image && rng.u32(0..4) == 0;
        let aspects = if both { Aspects::DEPTH | Aspects::STENCIL } else { Aspects::COLOR };
        let planes = if both { 2 } else { 1 };
        let cells = if image { usize::try_from(planes * mips * layers).unwrap() } else { 8 };
        let shared = self.shape.aliasing && cells <= SHARED && rng.u32(0..3) > 0;
        let first = if shared { rng.usize(0..=SHARED - cells) } else { *unit };
        if !shared {
            *unit += cells;
        }
        let size = u64::try_from(cells).unwrap();
        let place = shared.then(|| MemoryRange {
            memory: vk::DeviceMemory::from_raw(1),
            offset: u64::try_from(first).unwrap(),
            size,
        });
        // Their first use may be a read.
        let filled = !shared && rng.bool();
        let name = if image {
            let mut info = ImageInfo::new(vk::Image::from_raw(raw));
            if filled {
                info.initial_layout = vk::ImageLayout::PREINITIALIZED;
            }
            (info.mips, info.layers, info.aspects) = (mips, layers, aspects);
            (info.aspects_apart, info.concurrent, info.memory_range) = (rng.bool(), !exclusive, place);
            self.foreign.add_image(&info);
            Name::Image(self.global.add_image(&info))
        } else {
            let mut info = BufferInfo::new(vk::Buffer::from_raw(raw), size);
            (info.concurrent, info.memory_range) = (!exclusive, place);
            self.foreign.add_buffer(&info);
            Name::Buffer(self.global.add_buffer(&info))
        };
        let place = shared.then_some((first, first + cells));
        self.kept.push(Kept { name, mips, layers, aspects, place });
        self.resources.push(Resource { unit: first, cells, image, exclusive, filled });
    }

    fn usage(&mut self, image: bool) -> Use {
        let rng = &mut self.rng;
        let (vertex, fragment, compute) =
            (Stages::VERTEX_SHADER, Stages::FRAGMENT_SHADER, Stages::COMPUTE_SHADER);
        let both = Use::storage_read(compute) | Use::storage_write(compute);
        let usage = if image {
            let resolve = |usage: Use| Use { stages: Stages::RESOLVE, ..usage };
            match rng.u32(0..16) {
                0 => Use::COPY_SOURCE,
                1 => Use::COPY_TARGET,
                2 => Use::sampled(fragment),
                3 => Use::sampled(vertex | fragment),
                4 => Use::sampled(compute),
                5 => Use::COLOR_ATTACHMENT,
                6 => Use::storage_read(compute),
                7 => both,
                8 => Use::storage_read(fragment),
                9 => Use::BLIT_SOURCE,
                10 => Use::BLIT_TARGET,
                11 => resolve(Use::COPY_SOURCE),
                12 => resolve(Use::COPY_TARGET),
                13 => Use::CLEAR,
                14 => Use::DEPTH_ATTACHMENT,
                _ => Use::storage_write(compute),
            }
        } else {
            match rng.u32(0..11) {
                0 => Use::COPY_SOURCE,
                1 => Use::COPY_TARGET,
                2 => Use::VERTICES,
                3 => Use::uniform(vertex),
                4 => Use::uniform(fragment | compute),
                5 => Use::storage_read(compute),
                6 => both,
                7 => Use::INDICES,
                8 => Use::INDIRECT,
                9 => Use::CLEAR,
                _ => Use::storage_write(compute),
            }
        };
        let usage = if rng.u32(0..4) == 0 && usage.writes() { usage.discard() } else { usage };
        if self.shape.unordered && rng.bool() && usage.writes() { usage.unordered() } else { usage }
    }

    /// Records a list of some commands, for a random queue.
    fn record(&mut self) {
        let queue = self.rng.usize(0..self.queues.len());
        let mut list = Recorder::new(self.queues[queue]);
        let mut steps = Vec::new();
        let mut open = Vec::<(Split, Step)>::new();
        for _ in 0..self.rng.usize(1..6) {
            self.foreign.disturb_list(&mut list);
            let mut uses = Vec::<Access1>::new();
            if self.rng.bool() || self.shape.aliasing {
                open.drain(..).for_each(|(mut split, step)| {
                    list.join(&mut split);
                    steps.push(step);
                });
            }
            for _ in 0..self.rng.usize(1..4) {
                let at = self.rng.usize(0..self.kept.len());
                let clash = uses.iter().any(|other| {
                    let shares = |a: &Kept, b: &Kept| match (a.place, b.place) {
                        (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1,
                        _ => false,
                    };
                    other.resource == at || shares(&self.kept[at], &self.kept[other.resource])
                });
                let split = open.iter().any(|(_, step)| joins(step, at));
                if !clash && !split {
                    uses.push(self.use_one(at, &mut list));
                }
            }
            if let Some(batch) = list.flush() {
                steps.push(Step::Barriers { queue, bars: self.bars(batch) });
            }
            let used = uses.first().map(|usage| usage.resource);
            steps.push(Step::Command { queue, uses });
            if let Some(at) = used.filter(|_| self.shape.splits && self.rng.bool()) {
                let mut split = Split::new();
                if self.split_one(at, &mut list, &mut split) {
                    self.events += 1;
                    let (event, bars) = (self.events, self.bars(split.batch()));
                    steps.push(Step::Set { queue, event, bars: bars.clone() });
                    open.push((split, Step::Join { queue, event, bars, resource: at }));
                }
            }
        }
        for (mut split, step) in open {
            list.join(&mut split);
            steps.push(step);
        }
        self.lists.push((queue, list, steps));
    }

    /// Begins a split dependency. Returns true if there is a barrier.
    fn split_one(&mut self, at: usize, list: &mut Recorder, split: &mut Split) -> bool {
        let usage = self.usage(self.resources[at].image);
        match self.kept[at].name {
            Name::Buffer(buffer) => list.split_buffer(buffer, 0..8, usage, split).unwrap(),
            Name::Image(image) => {
                let part = Subresources::ALL.mips(0..self.rng.u32(1..4));
                list.split_image(image, &part, usage, split).unwrap()
            }
        }
    }

    fn use_one(&mut self, at: usize, list: &mut Recorder) -> Access1 {
        let image = self.resources[at].image;
        let usage = self.usage(image);
        let whole = self.shape.whole || self.rng.bool();
        let rng = &mut self.rng;
        let kept = &self.kept[at];
        let cells = match kept.name {
            Name::Buffer(buffer) => {
                let start = if whole { 0 } else { rng.u64(0..8) };
                let end = if whole { 8 } else { rng.u64(start + 1..=8) };
                list.use_buffer(buffer, start..end, usage).unwrap();
                (usize::try_from(start).unwrap()..usize::try_from(end).unwrap()).collect()
            }
            Name::Image(image) => {
                let mip = if whole { 0 } else { rng.u32(0..kept.mips) };
                let layer = if whole { 0 } else { rng.u32(0..kept.layers) };
                let mips = if whole { kept.mips } else { rng.u32(1..=kept.mips - mip) };
                let layers = if whole { kept.layers } else { rng.u32(1..=kept.layers - layer) };
                let part = Subresources::ALL.mips(mip..mip + mips).layers(layer..layer + layers);
                list.use_image(image, &part, usage).unwrap();
                kept.cells(&vk::ImageSubresourceRange {
                    aspect_mask: kept.aspects,
                    base_mip_level: mip,
                    level_count: mips,
                    base_array_layer: layer,
                    layer_count: layers,
                })
            }
        };
        let Use { stages, access, layout, discards, unordered, .. } = usage;
        Access1 { resource: at, cells, stages, access, layout, discards, unordered }
    }

    /// Returns the barriers of a call for the judge, with their cells.
    fn bars(&self, batch: &BarrierBatch) -> Vec<Bar> {
        let none = (vk::ImageLayout::UNDEFINED, vk::ImageLayout::UNDEFINED);
        let at = |raw: u64| usize::try_from(raw - 1).unwrap();
        let mut bars = Vec::new();
        bars.extend(batch.memory().iter().map(|bar| Bar {
            src: (bar.src_stage_mask, bar.src_access_mask),
            dst: (bar.dst_stage_mask, bar.dst_access_mask),
            on: None,
            layouts: none,
            families: (0, 0),
        }));
        bars.extend(batch.buffers().iter().map(|bar| Bar {
            src: (bar.src_stage_mask, bar.src_access_mask),
            dst: (bar.dst_stage_mask, bar.dst_access_mask),
            on: Some((
                at(bar.buffer.as_raw()),
                (bar.offset..bar.offset + bar.size).map(|byte| usize::try_from(byte).unwrap()).collect(),
            )),
            layouts: none,
            families: (bar.src_queue_family_index, bar.dst_queue_family_index),
        }));
        bars.extend(batch.images().iter().map(|bar| Bar {
            src: (bar.src_stage_mask, bar.src_access_mask),
            dst: (bar.dst_stage_mask, bar.dst_access_mask),
            on: Some((
                at(bar.image.as_raw()),
                self.kept[at(bar.image.as_raw())].cells(&bar.subresource_range),
            )),
            layouts: (bar.old_layout, bar.new_layout),
            families: (bar.src_queue_family_index, bar.dst_queue_family_index),
        }));
        bars
    }

    /// Submits some lists of one queue, in random order.
    fn submit(&mut self, submission: &mut Submission) {
        let queue = self.lists[self.rng.usize(0..self.lists.len())].0;
        let count = self.rng.usize(1..4);
        let mut chosen = Vec::new();
        while chosen.len() < count {
            let mine = (0..self.lists.len()).filter(|&list| self.lists[list].0 == queue).collect::<Vec<_>>();
            let Some(&list) = self.rng.choice(&mine) else {
                break;
            };
            chosen.push(self.lists.swap_remove(list));
        }
        let lists: Vec<&Recorder> = chosen.iter().map(|(_, list, _)| list).collect();
        self.foreign.disturb(&mut self.global, self.queues[queue], &lists);
        self.global.resolve(self.queues[queue], &lists, submission).unwrap();
        self.foreign.resolve_and_revoke(&mut self.global);
        let mut steps = Vec::new();
        let wait = |to: usize, wait: &sublet_frame::track::Wait| Step::Wait {
            queue: to,
            on: wait.queue.index(),
            serial: wait.serial,
            stages: wait.stages,
        };
        for release in submission.releases() {
            let from = release.queue().index();
            steps.extend(release.waits().iter().map(|waits| wait(from, waits)));
            steps.push(Step::Barriers { queue: from, bars: self.bars(release.batch()) });
            steps.push(Step::Signal { queue: from, serial: release.serial() });
        }
        steps.extend(submission.waits().iter().map(|waits| wait(queue, waits)));
        for (at, (_, _, list)) in chosen.iter().enumerate() {
            if let Some(batch) = submission.preamble(at) {
                steps.push(Step::Barriers { queue, bars: self.bars(batch) });
            }
            steps.extend(list.iter().cloned());
        }
        steps.push(Step::Signal { queue, serial: submission.serial() });
        self.steps.append(&mut steps);
    }
}
