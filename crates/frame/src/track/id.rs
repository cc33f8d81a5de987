//! Ids of resources. An id carries all that a recorder needs, so recording needs no lookup.

use std::fmt;
use std::ops::Range;

use ash::vk;

use super::usage::Subresources;

/// The memory range of a resource that may share memory with others: the memory and offset of `vkBindBufferMemory`, and
/// the size there.
///
/// Resources with overlapping ranges alias each other. A use of one waits for the last use of the other, and finds
/// undefined contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "AliasBarrier")]
#[doc(alias = "AliasingBarrier")]
#[doc(alias = "InsertAliasBarrier")]
pub struct MemoryRange {
    /// The memory.
    pub memory: vk::DeviceMemory,
    /// Offset of the resource, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

impl MemoryRange {
    /// Returns the first byte and the end, or none if the range is empty.
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        let end = self.offset.saturating_add(self.size);
        (self.offset < end).then_some((self.offset, end))
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (Some((start, end)), Some((other_start, other_end))) = (self.bytes(), other.bytes()) else {
            return false;
        };
        self.memory == other.memory && start < other_end && other_start < end
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) aspects: vk::ImageAspectFlags,
    pub(crate) mips: Range<u32>,
    pub(crate) layers: Range<u32>,
}

/// Aspects, mips and layers of an image. Subresources are numbered by plane, then mip, then layer, so that whole mips
/// are contiguous: most uses are whole mips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ImageShape {
    aspects: vk::ImageAspectFlags,
    mips: u32,
    layers: u32,
    /// Aspects have separate states.
    apart: bool,
}

impl ImageShape {
    pub(crate) fn new(aspects: vk::ImageAspectFlags, mips: u32, layers: u32, apart: bool) -> Self {
        Self { aspects, mips, layers, apart: apart && aspects.as_raw().count_ones() > 1 }
    }

    pub(crate) fn has_one_layer(&self) -> bool {
        self.layers == 1
    }

    fn plane_size(&self) -> u64 {
        u64::from(self.mips) * u64::from(self.layers)
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        if !self.apart {
            return self.plane_size();
        }
        self.plane_size() * u64::from(self.aspects.as_raw().count_ones())
    }

    fn plane(&self, plane: u64) -> vk::ImageAspectFlags {
        if !self.apart {
            return self.aspects;
        }
        let mut left = self.aspects.as_raw();
        for _ in 0..plane {
            left &= left - 1;
        }
        vk::ImageAspectFlags::from_raw(left & left.wrapping_neg())
    }

    /// Returns true if `part` contains the whole image.
    #[inline]
    pub(crate) fn is_whole(&self, part: &Subresources) -> bool {
        part.mips.start == 0
            && part.layers.start == 0
            && part.mips.end >= self.mips
            && part.layers.end >= self.layers
            && part.aspects.contains(self.aspects)
    }

    /// Returns true if `part` overlaps the image.
    pub(crate) fn has(&self, part: &Subresources) -> bool {
        let mips = part.mips.start < part.mips.end.min(self.mips);
        mips && part.layers.start < part.layers.end.min(self.layers) && part.aspects.intersects(self.aspects)
    }

    /// Calls `f` with each run of numbers in `part`. Ignores a part outside of the image.
    pub(crate) fn runs(&self, part: &Subresources, mut f: impl FnMut(u64, u64)) {
        if !self.has(part) {
            return;
        }
        let mips = part.mips.start..part.mips.end.min(self.mips);
        let layers = part.layers.start..part.layers.end.min(self.layers);
        let all_aspects = !self.apart || part.aspects.contains(self.aspects);
        if all_aspects && mips == (0..self.mips) && layers == (0..self.layers) {
            return f(0, self.len());
        }
        let width = u64::from(self.layers);
        for plane in 0..self.len() / self.plane_size() {
            if self.apart && !part.aspects.contains(self.plane(plane)) {
                continue;
            }
            let base = plane * self.plane_size();
            if layers == (0..self.layers) {
                f(base + u64::from(mips.start) * width, base + u64::from(mips.end) * width);
                continue;
            }
            for mip in mips.clone() {
                let row = base + u64::from(mip) * width;
                f(row + u64::from(layers.start), row + u64::from(layers.end));
            }
        }
    }

    /// Splits the run `start..end` into rectangles: for each plane, at most a partial first row, whole rows, and a
    /// partial last row.
    #[inline]
    pub(crate) fn rectangles(&self, start: u64, end: u64, mut f: impl FnMut(Rectangle)) {
        if start == 0 && end == self.plane_size() && !self.apart {
            return f(Rectangle { aspects: self.aspects, mips: 0..self.mips, layers: 0..self.layers });
        }
        self.rows(start, end, f);
    }

    fn rows(&self, start: u64, end: u64, mut f: impl FnMut(Rectangle)) {
        let (plane, width) = (self.plane_size(), u64::from(self.layers));
        let mut at = start;
        while at < end {
            let base = at / plane * plane;
            let (mip, layer) = ((at - base) / width, (at - base) % width);
            let stop = end.min(base + plane);
            let aspects = self.plane(at / plane);
            let rows = (stop - at) / width;
            let (mips, layers) = if layer == 0 && rows > 0 {
                (mip..mip + rows, 0..width)
            } else {
                (mip..mip + 1, layer..width.min(layer + stop - at))
            };
            at += (mips.end - mips.start) * (layers.end - layers.start);
            // Both ends are at most the image's.
            let small = |range: Range<u64>| {
                let narrow = |value| u32::try_from(value).unwrap_or(u32::MAX);
                narrow(range.start)..narrow(range.end)
            };
            f(Rectangle { aspects, mips: small(mips), layers: small(layers) });
        }
    }
}

/// Handle and extent of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RawHandle {
    Buffer { handle: vk::Buffer, size: u64 },
    Image { handle: vk::Image, shape: ImageShape },
}

impl RawHandle {
    /// Returns the number of points with a state: bytes or subresources.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Buffer { size, .. } => *size,
            Self::Image { shape, .. } => shape.len(),
        }
    }
}

/// The contents of all ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IdContents {
    /// The number of its [`Global`](super::Global).
    pub(crate) global: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) concurrent: bool,
    pub(crate) raw: RawHandle,
    pub(crate) memory_range: Option<MemoryRange>,
}

impl IdContents {
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        self.memory_range.and_then(|memory_range| memory_range.bytes())
    }
}

impl fmt::Debug for IdContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw {
            RawHandle::Buffer { handle, .. } => write!(f, "{handle:?}")?,
            RawHandle::Image { handle, .. } => write!(f, "{handle:?}")?,
        }
        write!(f, " (slot {}, generation {})", self.slot, self.generation)
    }
}

/// Identifies a buffer of a [`Global`](super::Global) until its removal. Using it afterwards, or with another `Global`,
/// is an error without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) IdContents);

/// Identifies an image of a [`Global`](super::Global) until its removal. Using it afterwards, or with another `Global`,
/// is an error without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageId(pub(crate) IdContents);

/// Identifies a buffer or an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResourceId(pub(crate) IdContents);

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResourceId {
    /// Returns a small number, unique among the live resources of a [`Global`](super::Global). Use it as a table index.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.0.slot
    }
}

impl From<BufferId> for ResourceId {
    fn from(id: BufferId) -> Self {
        Self(id.0)
    }
}

impl From<ImageId> for ResourceId {
    fn from(id: ImageId) -> Self {
        Self(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use vk::ImageAspectFlags as Aspects;

    #[test]
    fn runs_and_rectangles_are_the_part() {
        let both = Aspects::DEPTH | Aspects::STENCIL;
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2_000 {
            let aspects = *random.choice([Aspects::COLOR, both].iter().collect::<Vec<_>>()).unwrap();
            let (mips, layers) = (random.u32(1..5), random.u32(1..5));
            let shape = ImageShape::new(aspects, mips, layers, random.bool());
            let mip = random.u32(0..mips);
            let layer = random.u32(0..layers);
            let wanted =
                *random.choice([both, Aspects::DEPTH, Aspects::COLOR].iter().collect::<Vec<_>>()).unwrap();
            let part = Subresources::ALL
                .mips(mip..random.u32(mip + 1..=mips + 1))
                .layers(layer..random.u32(layer + 1..=layers + 1))
                .aspects(wanted);
            let mut cells = Vec::new();
            shape.runs(&part, |start, end| {
                shape.rectangles(start, end, |rectangle| {
                    for mip in rectangle.mips.clone() {
                        for layer in rectangle.layers.clone() {
                            cells.push((rectangle.aspects.as_raw(), mip, layer));
                        }
                    }
                });
            });
            let mut expected = Vec::new();
            let planes = if shape.apart { vec![Aspects::DEPTH, Aspects::STENCIL] } else { vec![aspects] };
            for plane in planes.into_iter().filter(|plane| plane.intersects(wanted)) {
                for mip in part.mips.start..part.mips.end.min(mips) {
                    for layer in part.layers.start..part.layers.end.min(layers) {
                        expected.push((plane.as_raw(), mip, layer));
                    }
                }
            }
            assert_eq!(cells, expected);
        }
    }
}
