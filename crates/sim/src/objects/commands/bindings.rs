//! The bindings of a command buffer: descriptor sets, push descriptors and push constants.
//!
//! Commands run one after another, and [`Bindings::apply`] follows them. A command that starts a shader asks for what
//! is in force then, as seen from the layout of its pipeline: [`Bindings::descriptor`], [`Bindings::inline`],
//! [`Bindings::push_constants`].

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use super::RecordedCommand;
use crate::facts::arithmetic::{index, narrow};
use crate::objects::descriptors::contents::{Contents, SimulatedDescriptor};
use crate::objects::descriptors::{DescriptorState, PipelineLayoutDescription, SetLayoutDescription};
use crate::objects::heaps::HeapBinding;
use crate::objects::pipelines::PipelineProgram;

/// The bindings of a command buffer at one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bindings {
    points: BTreeMap<vk::PipelineBindPoint, BTreeMap<u32, SetSlot>>,
    constants: Constants,
    /// The addresses of the descriptor buffers.
    descriptor_buffers: Vec<u64>,
    programs: BTreeMap<vk::PipelineBindPoint, Arc<PipelineProgram>>,
    /// The heaps of resources and of samplers.
    pub(crate) heaps: [Option<HeapBinding>; 2],
    /// Push data, which pipelines with heaps have in place of push constants.
    push_data: Pushed,
}

/// The binding at one set number.
#[derive(Debug, Clone)]
struct SetSlot {
    /// The layout of the command that bound it, or disturbed it.
    layout: Arc<PipelineLayoutDescription>,
    bound: Option<SetOrPush>,
}

/// A set, or push descriptors in its place.
#[derive(Debug, Clone)]
pub(crate) enum SetOrPush {
    /// With the dynamic offsets of its dynamic buffers, in the order of bindings and elements.
    Set {
        set: vk::DescriptorSet,
        offsets: Vec<u32>,
    },
    Pushed(Contents),
    /// An address in a descriptor buffer.
    At(u64),
}

/// The bytes of push constants that were pushed.
#[derive(Debug, Clone, Default)]
struct Constants {
    layout: Option<Arc<PipelineLayoutDescription>>,
    pushed: Pushed,
}

/// Bytes, and whether each was pushed.
#[derive(Debug, Clone, Default)]
struct Pushed {
    bytes: Vec<u8>,
    pushed: Vec<bool>,
}

/// One set in a command that binds.
#[derive(Debug, Clone)]
pub(crate) struct BoundSet {
    pub(crate) set: vk::DescriptorSet,
    /// The version of its contents: an update makes another one.
    pub(crate) version: u64,
    pub(crate) offsets: Vec<u32>,
}

impl Bindings {
    /// Applies a command.
    pub(crate) fn apply(&mut self, command: &RecordedCommand) {
        // Heaps undo sets, descriptor buffers and push constants, and the other way round: "Using Heaps".
        match command {
            RecordedCommand::BindHeap(_) | RecordedCommand::PushData { .. } => {
                self.points.clear();
                self.constants = Constants::default();
                self.descriptor_buffers.clear();
            }
            RecordedCommand::BindSets { .. }
            | RecordedCommand::PushDescriptors { .. }
            | RecordedCommand::PushConstants { .. }
            | RecordedCommand::BindDescriptorBuffers { .. }
            | RecordedCommand::SetOffsets { .. } => {
                self.heaps = [None; 2];
                self.push_data = Pushed::default();
            }
            _ => {}
        }
        match command {
            RecordedCommand::BindHeap(heap) => self.heaps[usize::from(heap.sampler)] = Some(*heap),
            RecordedCommand::PushData { offset, bytes } => self.push_data.push(*offset, bytes),
            RecordedCommand::BindSets { point, layout, first, sets } => {
                let bound =
                    |set: &BoundSet| Some(SetOrPush::Set { set: set.set, offsets: set.offsets.clone() });
                self.bind(*point, layout, *first, sets.iter().map(bound).collect());
            }
            RecordedCommand::PushDescriptors { point, layout, set, changes } => {
                let Some(set_layout) = layout.set(*set) else { return };
                let slots = self.disturb(*point, layout, *set, *set);
                // Earlier push descriptors stay, unless the layout differs.
                let before = slots.get(set).filter(|slot| slot.layout.compatible(layout, *set));
                let mut contents = match before.and_then(|slot| slot.bound.as_ref()) {
                    Some(SetOrPush::Pushed(contents)) => contents.clone(),
                    _ => Contents::new(set_layout),
                };
                contents.apply(changes);
                let bound = Some(SetOrPush::Pushed(contents));
                slots.insert(*set, SetSlot { layout: Arc::clone(layout), bound });
            }
            RecordedCommand::PushConstants { layout, offset, bytes } => {
                self.constants.push(layout, *offset, bytes)
            }
            RecordedCommand::BindDescriptorBuffers { buffers } => {
                self.descriptor_buffers = buffers.iter().map(|(_, address)| *address).collect();
                // Offsets into buffers that were bound before are void.
                for slot in self.points.values_mut().flat_map(BTreeMap::values_mut) {
                    if matches!(slot.bound, Some(SetOrPush::At(_))) {
                        slot.bound = None;
                    }
                }
            }
            RecordedCommand::SetOffsets { point, layout, first, sets } => {
                let bound: Vec<_> = sets
                    .iter()
                    .map(|&(buffer, offset)| {
                        let address = self.descriptor_buffers.get(index(buffer))?;
                        Some(SetOrPush::At(address.saturating_add(offset)))
                    })
                    .collect();
                self.bind(*point, layout, *first, bound);
            }
            RecordedCommand::BindPipeline { point, program, .. } => {
                self.programs.insert(*point, Arc::clone(program));
            }
            RecordedCommand::ForgetBindings => *self = Self::default(),
            _ => {}
        }
    }

    fn bind(
        &mut self,
        point: vk::PipelineBindPoint,
        layout: &Arc<PipelineLayoutDescription>,
        first: u32,
        sets: Vec<Option<SetOrPush>>,
    ) {
        let last = first.saturating_add(narrow(sets.len()).saturating_sub(1));
        let slots = self.disturb(point, layout, first, last);
        for (number, bound) in (first..).zip(sets) {
            slots.insert(number, SetSlot { layout: Arc::clone(layout), bound });
        }
    }

    /// Disturbs other sets when those from `first` to `last` are bound: those below stay if they were bound with a
    /// compatible layout, and those above if also the last one was (section "Pipeline Layout Compatibility").
    fn disturb(
        &mut self,
        point: vk::PipelineBindPoint,
        layout: &Arc<PipelineLayoutDescription>,
        first: u32,
        last: u32,
    ) -> &mut BTreeMap<u32, SetSlot> {
        let slots = self.points.entry(point).or_default();
        for number in 0..first {
            if slots.get(&number).is_none_or(|slot| !slot.layout.compatible(layout, number)) {
                slots.insert(number, SetSlot { layout: Arc::clone(layout), bound: None });
            }
        }
        if slots.get(&last).is_none_or(|slot| !slot.layout.compatible(layout, last)) {
            let _disturbed = slots.split_off(&last.saturating_add(1));
        }
        slots
    }

    /// The program of the bound pipeline of this kind.
    pub(crate) fn program(&self, point: vk::PipelineBindPoint) -> Option<&Arc<PipelineProgram>> {
        self.programs.get(&point)
    }

    /// The binding at a set's number, as a pipeline with `layout` sees it: nothing, if it was bound with a layout that
    /// is not compatible.
    pub(crate) fn bound(
        &self,
        point: vk::PipelineBindPoint,
        layout: &PipelineLayoutDescription,
        number: u32,
    ) -> Option<&SetOrPush> {
        let slot = self.points.get(&point)?.get(&number)?;
        if slot.layout.compatible(layout, number) { slot.bound.as_ref() } else { None }
    }

    /// The descriptor that a shader of a pipeline with `layout` finds, and the dynamic offset that is to be added to
    /// its own, in bytes. `None` if nothing is bound or written there.
    pub(crate) fn descriptor(
        &self,
        sets: &DescriptorState,
        point: vk::PipelineBindPoint,
        layout: &PipelineLayoutDescription,
        (set, binding, element): (u32, u32, u32),
    ) -> Option<(SimulatedDescriptor, u64)> {
        let (contents, offsets) = self.contents(sets, point, layout, set)?;
        let descriptor = *contents.descriptor(binding, element)?;
        let offset = layout.set(set).and_then(|set| dynamic_offset(set, offsets, binding, element));
        Some((descriptor, u64::from(offset.unwrap_or(0))))
    }

    /// The bytes of an inline uniform block that a shader finds, up to the last one that was written.
    pub(crate) fn inline<'a>(
        &'a self,
        sets: &'a DescriptorState,
        point: vk::PipelineBindPoint,
        layout: &PipelineLayoutDescription,
        (set, binding): (u32, u32),
    ) -> Option<&'a [u8]> {
        self.contents(sets, point, layout, set)?.0.inline(binding)
    }

    fn contents<'a>(
        &'a self,
        sets: &'a DescriptorState,
        point: vk::PipelineBindPoint,
        layout: &PipelineLayoutDescription,
        set: u32,
    ) -> Option<(&'a Contents, &'a [u32])> {
        match self.bound(point, layout, set)? {
            SetOrPush::Set { set, offsets } => Some((sets.set_contents(*set)?, offsets)),
            SetOrPush::Pushed(contents) => Some((contents, &[])),
            SetOrPush::At(_) => None,
        }
    }

    /// The push constants that a shader of a pipeline with `layout` finds. `None` if not all of them were pushed, or
    /// with a layout that is not compatible. Units: bytes.
    pub(crate) fn push_constants(
        &self,
        layout: &PipelineLayoutDescription,
        offset: u32,
        size: u32,
    ) -> Option<&[u8]> {
        let own = self.constants.layout.as_ref()?;
        if own.same_constants(layout) { self.constants.pushed.get(offset, size) } else { None }
    }

    /// The push data that a shader of a pipeline with heaps finds. `None` if not all of it was pushed. Units: bytes.
    pub(crate) fn push_data(&self, offset: u32, size: u32) -> Option<&[u8]> {
        self.push_data.get(offset, size)
    }
}

/// The dynamic offset of a descriptor, if it is a dynamic buffer.
fn dynamic_offset(layout: &SetLayoutDescription, offsets: &[u32], binding: u32, element: u32) -> Option<u32> {
    let position = layout.dynamic().position(|place| place == (binding, element))?;
    offsets.get(position).copied()
}

impl Constants {
    fn push(&mut self, layout: &Arc<PipelineLayoutDescription>, offset: u32, bytes: &[u8]) {
        if self.layout.as_ref().is_some_and(|own| !own.same_constants(layout)) {
            *self = Self::default();
        }
        self.layout = Some(Arc::clone(layout));
        self.pushed.push(offset, bytes);
    }
}

impl Pushed {
    fn get(&self, offset: u32, size: u32) -> Option<&[u8]> {
        let range = index(offset)..index(offset.checked_add(size)?);
        let all = self.pushed.get(range.clone())?.iter().all(|&pushed| pushed);
        if all { self.bytes.get(range) } else { None }
    }

    fn push(&mut self, offset: u32, bytes: &[u8]) {
        let (from, to) = (index(offset), index(offset) + bytes.len());
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
            self.pushed.resize(to, false);
        }
        self.bytes[from..to].copy_from_slice(bytes);
        self.pushed[from..to].fill(true);
    }
}
