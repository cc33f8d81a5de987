//! The capacity of a descriptor pool, and the policies of full pools.

use std::collections::BTreeMap;

use ash::vk;
use ash::vk::DescriptorType as Type;

use super::SetLayoutDescription;
use crate::facts::profiles::pool_policy::DescriptorPoolPolicy;

/// The descriptors of one kind in a pool. Units: descriptors; bytes, for inline uniform blocks.
#[derive(Debug)]
struct KindCapacity {
    kind: Type,
    /// The types that mutable descriptors of this entry may have; `None` for all, and for other types.
    list: Option<Vec<Type>>,
    capacity: u64,
    used: u64,
}

/// The capacity and the use of a pool.
#[derive(Debug)]
pub(crate) struct PoolCapacity {
    max_sets: u64,
    sets: u64,
    kinds: Vec<KindCapacity>,
    inline_bindings: u64,
    inline_bindings_used: u64,
}

/// The part of a pool that one set needs.
#[derive(Debug, Default)]
pub(crate) struct NeededCapacity {
    /// For each type, and for each list of a mutable one.
    kinds: BTreeMap<(Type, Vec<Type>), u64>,
    inline_bindings: u64,
}

/// The part of a pool that one set has taken.
#[derive(Debug, Default)]
pub(crate) struct TakenCapacity {
    /// By the positions of kinds.
    kinds: Vec<(usize, u64)>,
    inline_bindings: u64,
}

impl NeededCapacity {
    /// The need of a set of a layout with `variable` descriptors in its variable binding.
    pub(crate) fn of(layout: &SetLayoutDescription, variable: u32) -> Self {
        let variable_binding = layout.variable().map(|(number, _)| number);
        let mut need = Self::default();
        for (&number, binding) in &layout.bindings {
            let count = if variable_binding == Some(number) { variable } else { binding.count };
            if count == 0 {
                continue;
            }
            *need.kinds.entry((binding.kind, binding.mutable.clone())).or_default() += u64::from(count);
            if binding.kind == Type::INLINE_UNIFORM_BLOCK {
                need.inline_bindings += 1;
            }
        }
        need
    }
}

impl PoolCapacity {
    /// A pool of these sizes; `lists` are the lists of mutable types of the sizes, by position.
    pub(crate) fn new(
        max_sets: u32,
        sizes: &[vk::DescriptorPoolSize],
        lists: &[Vec<Type>],
        inline_bindings: u32,
    ) -> Self {
        let mut kinds: Vec<KindCapacity> = Vec::new();
        for (position, size) in sizes.iter().enumerate() {
            let list = if size.ty == Type::MUTABLE_EXT {
                lists.get(position).filter(|list| !list.is_empty()).cloned()
            } else {
                None
            };
            let count = u64::from(size.descriptor_count);
            match kinds.iter_mut().find(|kind| kind.kind == size.ty && kind.list == list) {
                Some(kind) => kind.capacity += count,
                None => kinds.push(KindCapacity { kind: size.ty, list, capacity: count, used: 0 }),
            }
        }
        Self {
            max_sets: u64::from(max_sets),
            sets: 0,
            kinds,
            inline_bindings: u64::from(inline_bindings),
            inline_bindings_used: 0,
        }
    }

    /// All descriptors that it was made for, of every type. An inline uniform block is one for its binding; its bytes
    /// are memory.
    pub(crate) fn descriptors(&self) -> u64 {
        let kinds = self.kinds.iter().filter(|kind| kind.kind != Type::INLINE_UNIFORM_BLOCK);
        kinds.map(|kind| kind.capacity).sum::<u64>() + self.inline_bindings
    }

    /// Returns whether a set is left of those that the pool was made for.
    pub(crate) fn has_set(&self) -> bool {
        self.sets < self.max_sets
    }

    /// Takes the part for one set, if `policy` allows it. Answers with the count of sets and descriptors past what the
    /// pool was made for. If the driver refuses, it answers `None` and takes nothing.
    pub(crate) fn take(
        &mut self,
        need: &NeededCapacity,
        policy: DescriptorPoolPolicy,
    ) -> Option<(TakenCapacity, u64)> {
        let (taken, past_sets, past_kinds) = self.take_all(need);
        let refused = match policy {
            DescriptorPoolPolicy::Strict => past_sets + past_kinds > 0,
            DescriptorPoolPolicy::CountsSets => past_sets > 0,
            DescriptorPoolPolicy::NeverRefuses => false,
        };
        if refused {
            self.give_back(&taken);
            return None;
        }
        Some((taken, past_sets + past_kinds))
    }

    /// Takes what is there. Answers with what it took, and with the count of sets and descriptors that were missing.
    fn take_all(&mut self, need: &NeededCapacity) -> (TakenCapacity, u64, u64) {
        let mut taken = TakenCapacity::default();
        let past_sets = u64::from(!self.has_set());
        self.sets += 1;
        let mut past = 0;
        for ((kind, list), &count) in &need.kinds {
            let mut left = count;
            for (position, entry) in self.kinds.iter_mut().enumerate() {
                let serves = entry.kind == *kind
                    && entry.list.as_ref().is_none_or(|may| list.iter().all(|kind| may.contains(kind)));
                let count = left.min(entry.capacity - entry.used);
                if serves && count > 0 {
                    entry.used += count;
                    left -= count;
                    taken.kinds.push((position, count));
                }
            }
            past += left;
        }
        let bindings = need.inline_bindings.min(self.inline_bindings - self.inline_bindings_used);
        self.inline_bindings_used += bindings;
        taken.inline_bindings = bindings;
        past += need.inline_bindings - bindings;
        (taken, past_sets, past)
    }

    /// Gives back what a set took.
    pub(crate) fn give_back(&mut self, taken: &TakenCapacity) {
        self.sets = self.sets.saturating_sub(1);
        for &(position, count) in &taken.kinds {
            if let Some(kind) = self.kinds.get_mut(position) {
                kind.used -= count;
            }
        }
        self.inline_bindings_used -= taken.inline_bindings;
    }

    /// Gives everything back; the count of sets only if `sets`.
    pub(crate) fn reset(&mut self, sets: bool) {
        if sets {
            self.sets = 0;
        }
        for kind in &mut self.kinds {
            kind.used = 0;
        }
        self.inline_bindings_used = 0;
    }
}
