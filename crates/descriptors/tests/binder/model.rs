//! Random layouts, stages, layout changes, command buffers and commits, compared with a model of the descriptors that a
//! shader must find.

use std::collections::BTreeMap;

use ash::vk;
use fastrand::Rng;
use sublet::retire::{Clock, Ticket};
use sublet_descriptors::{
    BindPoint, BinderCreateInfo, BindingModel, DescriptorKind as K, PipelineLayoutInfo, SetLayout,
};

use super::fixture::{BUFFER_SIZE, Fixture, Shape, TestBinder, commit, dynamic, sets, without_templates};
use super::held::Held;

const POINTS: [BindPoint; 2] = [BindPoint::Graphics, BindPoint::Compute];
const OFFSET: u64 = 256;
const _: () = assert!(8 * OFFSET <= BUFFER_SIZE);
/// Index of the set layout of push descriptors.
const PUSHED: usize = 0;

/// The buffer and offset that a shader finds at a set number, a binding and an element.
type Content = BTreeMap<(u32, u32, u32), (vk::Buffer, u64)>;

/// A set layout with its shape.
#[derive(Clone)]
struct Set {
    id: usize,
    layout: SetLayout,
    shapes: Vec<Shape>,
}

struct Pipeline {
    info: PipelineLayoutInfo,
    sets: Vec<Set>,
}

/// The model's state of one bind point.
#[derive(Default)]
struct Point {
    pipeline: Option<usize>,
    staged: Content,
    /// Dynamic offsets by array element.
    dynamic: BTreeMap<(u32, u32, u32), u64>,
}

struct World {
    binder: Held<TestBinder>,
    rng: Rng,
    pipelines: Vec<Pipeline>,
    buffers: Vec<vk::Buffer>,
    points: [Point; 2],
    commands: vk::CommandBuffer,
    // The last field, so that it is dropped last.
    fixture: Held<Fixture>,
}

fn make_sets(fixture: &Fixture, rng: &mut Rng) -> Vec<Set> {
    let mut sets = Vec::new();
    for id in 0..6 {
        let mut shapes = Vec::new();
        let mut number = 0;
        for at in 0..rng.u32(1..4) {
            // Few bindings are dynamic, because a pipeline layout allows only eight.
            let kind = [K::StorageBuffer, K::UniformBuffer, K::UniformBufferDynamic][rng.usize(..3)];
            let may_be_dynamic = id != PUSHED && at == 0 && fixture.device.model() == BindingModel::Sets;
            let kind =
                if kind == K::UniformBufferDynamic && !may_be_dynamic { K::UniformBuffer } else { kind };
            shapes.push((number, kind, rng.u32(1..if may_be_dynamic { 3 } else { 5 })));
            number += rng.u32(1..4);
        }
        let layout = if id == PUSHED { fixture.push_layout(&shapes) } else { fixture.set_layout(&shapes) };
        sets.push(Set { id, layout, shapes });
    }
    sets
}

fn make_pipelines(fixture: &Fixture, rng: &mut Rng, sets: &[Set]) -> Vec<Pipeline> {
    (0..6)
        .map(|_| {
            let mut chosen: Vec<Set> =
                (0..rng.usize(1..5)).map(|_| sets[rng.usize(1..sets.len())].clone()).collect();
            if rng.bool() {
                let at = rng.usize(..chosen.len());
                chosen[at] = sets[0].clone();
            }
            let layouts: Vec<_> = chosen.iter().map(|set| set.layout.clone()).collect();
            let range =
                vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 16 };
            let ranges = if rng.u32(..4) == 0 { vec![range] } else { vec![] };
            Pipeline { info: fixture.pipeline_with(&layouts, &ranges), sets: chosen }
        })
        .collect()
}

impl World {
    fn new(fixture: Held<Fixture>, info: &BinderCreateInfo<'_>, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let sets = make_sets(&fixture, &mut rng);
        let pipelines = make_pipelines(&fixture, &mut rng, &sets);
        let buffers = fixture.buffers::<4>().to_vec();
        let (binder, commands) = (fixture.binder_with(info), fixture.commands());
        Self { fixture, binder, rng, pipelines, buffers, points: Default::default(), commands }
    }

    fn set_layout(&mut self, at: usize) {
        let new = self.rng.usize(..self.pipelines.len());
        self.binder.set_layout(POINTS[at], &self.pipelines[new].info).unwrap();
        let point = &mut self.points[at];
        let old = point.pipeline.replace(new);
        let id = |pipeline: usize, set: u32| {
            self.pipelines[pipeline].sets.get(usize::try_from(set).unwrap()).map(|set| set.id)
        };
        // Sets with the same layout keep everything that was staged. Other sets lose it.
        let kept = |set: u32| old.is_some_and(|old| id(old, set).is_some() && id(old, set) == id(new, set));
        point.staged.retain(|&(set, ..), _| kept(set));
        point.dynamic.retain(|&(set, ..), _| kept(set));
    }

    fn stage(&mut self, at: usize) {
        let Some(pipeline) = self.points[at].pipeline else { return };
        let sets = &self.pipelines[pipeline].sets;
        let set = self.rng.usize(..sets.len());
        let (binding, kind, count) = sets[set].shapes[self.rng.usize(..sets[set].shapes.len())];
        let set = u32::try_from(set).unwrap();
        let first = self.rng.u32(..count);
        let many = self.rng.u32(1..=count - first);
        let mut descriptors = Vec::new();
        for element in first..first + many {
            let buffer = self.buffers[self.rng.usize(..self.buffers.len())];
            let offset = self.rng.u64(..4) * OFFSET;
            descriptors.push(match kind {
                K::StorageBuffer => self.fixture.storage(buffer, offset),
                K::UniformBuffer => self.fixture.uniform(buffer, offset),
                _ => dynamic(buffer, offset),
            });
            self.points[at].staged.insert((set, binding, element), (buffer, offset));
        }
        self.binder.stage(POINTS[at], set, binding, first, &descriptors).unwrap();
        if kind == K::UniformBufferDynamic && self.rng.bool() {
            let offset = self.rng.u64(..4) * OFFSET;
            let small = u32::try_from(offset).unwrap();
            self.binder.stage_dynamic_offset(POINTS[at], set, binding, first, small).unwrap();
            self.points[at].dynamic.insert((set, binding, first), offset);
        }
    }

    /// A shader finds exactly the staged descriptors. Dispatches check this when they run.
    fn check(&self, at: usize) {
        let Some(pipeline) = self.points[at].pipeline else { return };
        let Pipeline { info, sets } = &self.pipelines[pipeline];
        if POINTS[at] == BindPoint::Compute {
            let point = &self.points[at];
            let content = point.staged.iter().map(|(place, &(buffer, offset))| {
                let (set, binding, _) = *place;
                let shapes = &sets[usize::try_from(set).unwrap()].shapes;
                let is_dynamic = shapes.contains(&(binding, K::UniformBufferDynamic, 1))
                    || shapes.contains(&(binding, K::UniformBufferDynamic, 2));
                let dynamic = point.dynamic.get(place).filter(|_| is_dynamic).copied().unwrap_or(0);
                (*place, self.fixture.content(buffer, offset + dynamic))
            });
            self.fixture.dispatch(self.commands, info, content);
        }
        if self.fixture.device.model() == BindingModel::Buffer {
            return;
        }
        for (set, Set { id, shapes, .. }) in (0..).zip(sets) {
            // Sets without staged descriptors are not checked, because a set of an earlier layout may still be bound.
            if !self.points[at].staged.keys().any(|&(staged, ..)| staged == set) {
                continue;
            }
            for &(binding, kind, count) in shapes {
                for element in 0..count {
                    let place = (set, binding, element);
                    let dynamic = match kind {
                        K::UniformBufferDynamic => self.points[at].dynamic.get(&place).copied().unwrap_or(0),
                        _ => 0,
                    };
                    let expected = self.points[at]
                        .staged
                        .get(&place)
                        .map(|&(buffer, offset)| (buffer, offset + dynamic));
                    if *id == PUSHED && expected.is_none() {
                        continue;
                    }
                    let seen = self.fixture.seen(self.commands, POINTS[at], info, place);
                    assert_eq!(seen, expected, "{:?} {place:?} {kind:?}", POINTS[at]);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.binder.forget();
        self.points = Default::default();
    }
}

fn play(fixture: Held<Fixture>, seed: u64, steps: u32) {
    play_with(fixture, &BinderCreateInfo::default(), seed, steps);
}

fn play_with(fixture: Held<Fixture>, info: &BinderCreateInfo<'_>, seed: u64, steps: u32) {
    let mut world = World::new(fixture, info, seed);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut value = 0;
    for _ in 0..steps {
        let at = world.rng.usize(..2);
        match world.rng.u32(..40) {
            0..=4 => world.set_layout(at),
            5..=24 => world.stage(at),
            25 => {
                // The same recording continues in another command buffer.
                world.fixture.run(world.commands);
                world.commands = world.fixture.commands();
                world.binder.begin();
            }
            26 => {
                let ticket: Ticket = clock.open(timeline);
                world.binder.flush(ticket).unwrap();
                world.fixture.run(world.commands);
                value += 1;
                clock.submit(ticket, value).unwrap();
                clock.completed(timeline, value);
                world.binder.collect(&clock).unwrap();
                world.commands = world.fixture.commands();
            }
            27 if world.rng.u32(..4) == 0 => world.forget(),
            _ => {
                commit(&world.fixture, &mut world.binder, world.commands, POINTS[at]);
                world.check(at);
            }
        }
        world.binder.validate();
    }
    world.fixture.run(world.commands);
}

#[test]
fn at_each_draw_and_dispatch_the_device_sees_what_is_staged() {
    for seed in 0..12 {
        play(Fixture::with_sets(), seed, 400);
    }
}

#[test]
fn without_templates_it_sees_the_same() {
    for seed in 100..106 {
        play(Fixture::new(without_templates().build(), BindingModel::Sets), seed, 300);
    }
}

#[test]
fn in_descriptor_buffers_it_sees_the_same() {
    for (seed, name) in (200..).zip(["nvidia-h200", "amd-rx-6700-xt", "amd-rx-6800-windows"]) {
        for (seed, page_size) in [(seed, 256 << 10), (seed + 100, 16 << 10)] {
            let info = BinderCreateInfo { page_size, ..Default::default() };
            play_with(Fixture::with_buffers(name), &info, seed, 400);
        }
    }
}

#[test]
fn the_same_program_makes_the_same_calls() {
    let calls = |seed| {
        let fixture = Fixture::new(sets().build(), BindingModel::Sets);
        let mut world = World::new(fixture, &BinderCreateInfo::default(), seed);
        for _ in 0..200 {
            let at = world.rng.usize(..2);
            match world.rng.u32(..8) {
                0 => world.set_layout(at),
                1..=5 => world.stage(at),
                _ => commit(&world.fixture, &mut world.binder, world.commands, POINTS[at]),
            }
        }
        world.fixture.gpu.call_counts()
    };
    assert_eq!(calls(7), calls(7));
}
