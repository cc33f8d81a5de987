//! Finds the rules of buffers.

use ash::vk::BufferUsageFlags as Usage;

use super::super::{BufferRules, RaisedAlignment};
use super::super::{Rounding, all_types};
use super::facts::MeasuredFacts;
use super::probe::{Probe, ProbedRequirements};
use crate::facts::arithmetic::align_up;

/// The usages of Vulkan 1.0.
const USAGES: [Usage; 9] = [
    Usage::TRANSFER_SRC,
    Usage::TRANSFER_DST,
    Usage::UNIFORM_TEXEL_BUFFER,
    Usage::STORAGE_TEXEL_BUFFER,
    Usage::UNIFORM_BUFFER,
    Usage::STORAGE_BUFFER,
    Usage::INDEX_BUFFER,
    Usage::VERTEX_BUFFER,
    Usage::INDIRECT_BUFFER,
];
/// Sizes that are multiples of no alignment, from small to large.
const SIZES: [u64; 8] = [1, 3, 17, 100, 1000, 4097, 65_537, 1_000_001];
/// The largest size to try: no known driver begins to prefer a dedicated allocation beyond it.
const LARGEST: u64 = 1 << 30;

pub(crate) fn measure(probe: &Probe<'_>, facts: &MeasuredFacts) -> BufferRules {
    let mut usages = USAGES.to_vec();
    if facts.features.buffer_device_address {
        usages.push(Usage::SHADER_DEVICE_ADDRESS);
    }
    let small = |usage: Usage| Some((usage, probe.buffer(SIZES[3], usage)?));
    let plain: Vec<(Usage, ProbedRequirements)> = usages.iter().filter_map(|&usage| small(usage)).collect();
    let descriptors = [Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT, Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT];
    // A descriptor buffer has an address, VUID-VkBufferCreateInfo-None-09499 and its siblings aside.
    let descriptors: Vec<(Usage, ProbedRequirements)> = descriptors
        .iter()
        .filter(|_| facts.features.descriptor_buffer)
        .filter_map(|&usage| small(usage))
        .collect();
    let all_types = all_types(&facts.types);
    let common = |answers: &[(Usage, ProbedRequirements)]| {
        answers.iter().fold(all_types, |types, (_, answer)| types & answer.types)
    };
    let mut types = common(&plain);
    if types == 0 {
        types = plain.first().map_or(all_types, |(_, answer)| answer.types & all_types);
    }
    types |= probe.protected_buffer_types() & all_types;
    let descriptor_types = if descriptors.is_empty() { 0 } else { common(&descriptors) };
    let both: Vec<_> = plain.into_iter().chain(descriptors).collect();
    let alignment = both.iter().map(|(_, answer)| answer.alignment).min().unwrap_or(1);
    BufferRules {
        alignment,
        raised: raised(&both, alignment),
        rounding: rounding(probe, &usages),
        types,
        descriptor_types: if descriptor_types & !types == 0 { 0 } else { descriptor_types },
        prefers_dedicated_from: prefers_dedicated(probe, facts.limits.max_buffer_size),
    }
}

/// The usages of each alignment above the least.
fn raised(answers: &[(Usage, ProbedRequirements)], least: u64) -> Vec<RaisedAlignment> {
    let mut raised: Vec<RaisedAlignment> = Vec::new();
    for &(usage, ProbedRequirements { alignment, .. }) in
        answers.iter().filter(|(_, answer)| answer.alignment > least)
    {
        match raised.iter_mut().find(|known| known.alignment == alignment) {
            Some(known) => known.usage |= usage,
            None => raised.push(RaisedAlignment { usage, alignment }),
        }
    }
    raised.sort_by_key(|raised| raised.alignment);
    raised
}

/// The first kind of rounding that explains the sizes of all buffers, else the usual one.
fn rounding(probe: &Probe<'_>, usages: &[Usage]) -> Rounding {
    let asked = usages.iter().flat_map(|&usage| SIZES.map(|size| (size, usage)));
    let answers: Vec<_> =
        asked.filter_map(|(size, usage)| Some((size, probe.buffer(size, usage)?))).collect();
    let explains = |rounding: &Rounding| {
        answers.iter().all(|&(size, answer)| {
            let multiple = match *rounding {
                Rounding::Exact => 1,
                Rounding::ToAlignment => answer.alignment,
                Rounding::To(multiple) => multiple,
            };
            align_up(size, multiple) == Some(answer.size)
        })
    };
    let multiples = (1..=16).map(|log2| Rounding::To(1 << log2));
    let candidates = [Rounding::Exact, Rounding::ToAlignment].into_iter().chain(multiples);
    candidates.into_iter().find(explains).unwrap_or(Rounding::ToAlignment)
}

/// The size from which on a dedicated allocation is preferred: of the memory, not of the buffer.
fn prefers_dedicated(probe: &Probe<'_>, most: u64) -> Option<u64> {
    let usage = Usage::STORAGE_BUFFER | Usage::TRANSFER_DST;
    let prefers = |size: u64| probe.buffer(size, usage).is_some_and(|answer| answer.prefers_dedicated);
    let least = first(1, LARGEST.min(most), prefers)?;
    probe.buffer(least, usage).map(|answer| answer.size)
}

/// The first number of a range for which something holds, if it holds for all that follow.
pub(crate) fn first(mut from: u64, mut to: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if from > to || !holds(to) {
        return None;
    }
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    Some(to)
}
