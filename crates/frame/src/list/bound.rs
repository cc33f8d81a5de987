//! The bindings of a bind point, and the resource uses that they imply.

use std::ops::Range;

use ash::vk;

use super::PipelineLayout;
use crate::track::{BufferId, ImageId, ResourceId, Subresources, Use};

/// Set, binding, element. Vertex buffers use the set `VERTICES`, the index buffer `INDICES`.
pub(super) type BindingSlot = (u32, u32, u32);

pub(super) const VERTICES: u32 = u32::MAX;
pub(super) const INDICES: u32 = u32::MAX - 1;

/// The resource range of a binding.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum BindingTarget {
    Buffer(BufferId, Range<u64>),
    /// The part is clamped to the image, in tracked subresources.
    Image(ImageId, Subresources),
}

impl BindingTarget {
    /// Returns the slot of the resource, which identifies it.
    fn resource(&self) -> u32 {
        match self {
            Self::Buffer(id, _) => ResourceId::from(*id).slot(),
            Self::Image(id, _) => ResourceId::from(*id).slot(),
        }
    }

    fn start(&self) -> u64 {
        match self {
            Self::Buffer(_, range) => range.start,
            Self::Image(..) => 0,
        }
    }
}

/// A bound descriptor, vertex buffer or index buffer.
#[derive(Clone, Debug)]
struct BoundBinding {
    slot: BindingSlot,
    target: BindingTarget,
    usage: Use,
}

#[derive(Default)]
pub(crate) struct BoundPoint {
    pub(super) pipeline: vk::Pipeline,
    pub(super) layout: Option<PipelineLayout>,
    /// Sorted by slot.
    bound: Vec<BoundBinding>,
    /// `bound`, with one use for each range that several bindings share.
    merged: Vec<(BindingTarget, Use)>,
    stale: bool,
    /// Kept to avoid allocations: `bound` by resource, and image parts that are not merged yet.
    order: Vec<usize>,
    left: Vec<(Subresources, Use)>,
}

impl BoundPoint {
    pub(crate) fn forget(&mut self) {
        self.pipeline = vk::Pipeline::null();
        self.layout = None;
        self.bound.clear();
        self.merged.clear();
        self.stale = false;
    }

    /// Replaces the use of a slot; `None` if no shader of this bind point uses it.
    pub(super) fn set(&mut self, slot: BindingSlot, new: Option<(BindingTarget, Use)>) {
        let at = self.bound.binary_search_by_key(&slot, |bound| bound.slot);
        let new = new.map(|(target, usage)| BoundBinding { slot, target, usage });
        match (at, new) {
            (Ok(at), Some(new)) => self.bound[at] = new,
            (Err(at), Some(new)) => self.bound.insert(at, new),
            (Ok(at), None) => drop(self.bound.remove(at)),
            (Err(_), None) => return,
        }
        self.stale = true;
    }

    /// Removes the bindings of a set that the program binds itself.
    pub(super) fn forget_set(&mut self, set: u32) {
        self.bound.retain(|bound| bound.slot.0 != set);
        self.stale = true;
    }

    /// Changes the layout. Keeps the same bindings as the binder.
    pub(super) fn set_layout(&mut self, new: &PipelineLayout) {
        let old = self.layout.replace(new.clone());
        let keeps = |set: u32| {
            let sets = old.as_ref().and_then(|old| old.set(set)).zip(new.set(set));
            set >= INDICES || sets.is_some_and(|(old, new)| old.is_identical(new))
        };
        self.bound.retain(|bound| keeps(bound.slot.0));
        self.stale = true;
    }

    /// Returns the uses of a draw or dispatch, one for each range: a command may use each byte and subresource once.
    ///
    /// # Complexity
    /// O(1) if nothing changed, else O(n log n), plus the square of the number of views of one image.
    pub(super) fn uses(&mut self) -> &[(BindingTarget, Use)] {
        if std::mem::take(&mut self.stale) {
            self.merge();
        }
        &self.merged
    }

    fn merge(&mut self) {
        let Self { bound, merged, order, left, .. } = self;
        merged.clear();
        order.clear();
        order.extend(0..bound.len());
        order.sort_unstable_by_key(|&at| (bound[at].target.resource(), bound[at].target.start(), at));
        // Earlier elements belong to other resources.
        let (mut first, mut resource) = (0, None);
        for &at in order.iter() {
            let BoundBinding { target, usage, .. } = &bound[at];
            if resource.replace(target.resource()) != Some(target.resource()) {
                first = merged.len();
            }
            match target {
                BindingTarget::Buffer(_, range) => match merged[first..].last_mut() {
                    // Buffers ignore the layout.
                    Some((BindingTarget::Buffer(_, known), before)) if range.start < known.end => {
                        known.end = known.end.max(range.end);
                        *before = *before | *usage;
                    }
                    _ => merged.push((target.clone(), *usage)),
                },
                BindingTarget::Image(id, part) => {
                    left.push((part.clone(), *usage));
                    while let Some((part, usage)) = left.pop() {
                        let known = merged[first..].iter().position(|(known, before)| {
                            let BindingTarget::Image(_, known) = known else { return false };
                            before.layout == usage.layout && known.common(&part).is_some()
                        });
                        let Some(known) = known else {
                            merged.push((BindingTarget::Image(*id, part), usage));
                            continue;
                        };
                        let (known, before) = merged.swap_remove(first + known);
                        let BindingTarget::Image(_, known) = known else { continue };
                        let Some(common) = known.common(&part) else { continue };
                        // Known parts do not overlap each other, so their rests need no check.
                        known.without(&common, |rest| merged.push((BindingTarget::Image(*id, rest), before)));
                        part.without(&common, |rest| left.push((rest, usage)));
                        merged.push((BindingTarget::Image(*id, common), before | usage));
                    }
                }
            }
        }
    }
}

impl Subresources {
    fn common(&self, other: &Self) -> Option<Self> {
        let meet = |a: &Range<u32>, b: &Range<u32>| a.start.max(b.start)..a.end.min(b.end);
        let mips = meet(&self.mips, &other.mips);
        let layers = meet(&self.layers, &other.layers);
        let aspects = self.aspects & other.aspects;
        let is_empty = mips.is_empty() || layers.is_empty() || aspects.is_empty();
        (!is_empty).then_some(Self { mips, layers, aspects })
    }

    /// Calls `f` with the parts outside of `inner`, which is contained in it.
    fn without(&self, inner: &Self, mut f: impl FnMut(Self)) {
        let mut f = |part: Self| {
            if !part.mips.is_empty() && !part.layers.is_empty() && !part.aspects.is_empty() {
                f(part);
            }
        };
        let row = self.clone().mips(inner.mips.clone());
        f(self.clone().mips(self.mips.start..inner.mips.start));
        f(self.clone().mips(inner.mips.end..self.mips.end));
        f(row.clone().layers(self.layers.start..inner.layers.start));
        f(row.clone().layers(inner.layers.end..self.layers.end));
        f(row.layers(inner.layers.clone()).aspects(self.aspects & !inner.aspects));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::track::{BufferInfo, Global, ImageInfo};

    /// Compares with the union of all bindings for each byte and subresource.
    #[test]
    fn each_range_is_used_once() {
        let stages = vk::PipelineStageFlags2::COMPUTE_SHADER;
        let mut global = Global::new();
        let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::null(), 64));
        let image = global.add_image(&ImageInfo {
            mips: 4,
            layers: 4,
            aspects: vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL,
            ..ImageInfo::new(vk::Image::null())
        });
        let aspects = [
            vk::ImageAspectFlags::DEPTH,
            vk::ImageAspectFlags::STENCIL,
            vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL,
        ];
        let mut random = fastrand::Rng::with_seed(11);
        let mut point = BoundPoint::default();
        for _ in 0..2_000 {
            let slot = (0, random.u32(0..12), 0);
            let (a, b) = (random.u32(0..4), random.u32(0..4));
            let target = if random.bool() {
                let start = random.u64(0..60);
                BindingTarget::Buffer(buffer, start..random.u64(start + 1..=64))
            } else {
                let part = Subresources::ALL.mips(a..random.u32(a + 1..=4));
                let part = part.layers(b..random.u32(b + 1..=4)).aspects(aspects[random.usize(0..3)]);
                BindingTarget::Image(image, part)
            };
            let uses = [Use::storage_read(stages), Use::storage_write(stages), Use::uniform(stages)];
            let usage =
                uses[random.usize(0..if matches!(target, BindingTarget::Buffer(..)) { 3 } else { 2 })];
            point.set(slot, (random.u32(0..4) > 0).then_some((target, usage)));

            let cells = |target: &BindingTarget| -> Vec<(u32, u64)> {
                let BindingTarget::Image(_, part) = target else {
                    let BindingTarget::Buffer(_, range) = target else { unreachable!() };
                    return range.clone().map(|byte| (0, byte)).collect();
                };
                let planes = aspects[..2].iter().filter(|plane| part.aspects.contains(**plane));
                let mips = |plane| part.mips.clone().map(move |mip| (plane, mip));
                let layers = |(plane, mip): (u32, u32)| {
                    part.layers.clone().map(move |layer| (plane, u64::from(mip * 4 + layer)))
                };
                planes.flat_map(|plane| mips(plane.as_raw())).flat_map(layers).collect()
            };
            let mut expected = HashMap::new();
            for bound in &point.bound {
                for cell in cells(&bound.target) {
                    *expected.entry(cell).or_insert(vk::AccessFlags2::NONE) |= bound.usage.access;
                }
            }
            let mut found = HashMap::new();
            for (target, usage) in point.uses() {
                for cell in cells(target) {
                    assert!(found.insert(cell, usage.access).is_none(), "{cell:?} is used twice");
                }
            }
            assert_eq!(found.len(), expected.len());
            for (cell, access) in expected {
                // Joined ranges have the accesses of all their bindings.
                let known = found[&cell];
                assert!(if cell.0 == 0 { known.contains(access) } else { known == access }, "{cell:?}");
            }
        }
    }
}
