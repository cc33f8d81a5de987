//! A virtual block, compared with a model.

use sublet::metadata::Strategy;
use sublet::{
    Algorithm, VirtualAllocation, VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateInfo,
};
use sublet_fuzz::Places;

use crate::call::{Input, VirtualCall};

const STRATEGIES: [Strategy; 4] =
    [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];

/// A virtual block, with its ranges and their user data.
pub(crate) struct VirtualRanges {
    block: VirtualBlock,
    ranges: Vec<(VirtualAllocation, u64)>,
    places: Places,
}

impl VirtualRanges {
    /// Returns `None` if there can be no block of that size.
    pub(crate) fn new(input: &Input) -> Option<Self> {
        let algorithm = input.virtual_algorithm.one(&Algorithm::ALL);
        let block =
            VirtualBlock::new(&VirtualBlockCreateInfo { size: input.virtual_size.0, algorithm }).ok()?;
        Some(Self { block, ranges: Vec::new(), places: Places::default() })
    }

    pub(crate) fn call(&mut self, call: VirtualCall) {
        match call {
            VirtualCall::Allocate { size, alignment, strategy, upper, user_data } => {
                let info = VirtualAllocationCreateInfo {
                    size: size.0,
                    alignment: 1 << (alignment % 64),
                    strategy: strategy.one(&STRATEGIES),
                    upper_address: upper,
                    user_data: user_data.0,
                };
                let Ok(range) = self.block.allocate(&info) else { return };
                assert!(range.size() >= size.0);
                self.places.add(0, range.offset(), range.size(), self.block.size(), info.alignment);
                self.ranges.push((range, user_data.0));
            }
            VirtualCall::Free { which } => {
                let Some(at) = which.at(self.ranges.len()) else { return };
                let (range, _) = self.ranges.swap_remove(at);
                self.places.remove(0, range.offset(), range.size());
                self.block.free(range).expect("the range is live");
            }
            VirtualCall::UserData { which, user_data } => {
                let Some(at) = which.at(self.ranges.len()) else { return };
                let (range, known) = &mut self.ranges[at];
                self.block.set_user_data(range, user_data.0).expect("the range is live");
                *known = user_data.0;
            }
            VirtualCall::Clear => {
                self.block.clear();
                self.places.clear();
                self.ranges.clear();
            }
        }
    }

    pub(crate) fn check(&self) {
        let statistics = self.block.statistics();
        let expected = (self.places.len(), self.places.bytes());
        let allocated = usize::try_from(statistics.allocation_count).expect("it is small");
        assert_eq!((allocated, statistics.allocation_bytes), expected);
        assert_eq!(self.block.detailed_statistics().statistics, statistics);
        let mut end = 0;
        self.block.walk(|range| {
            assert_eq!(range.offset, end, "the ranges cover the block");
            end += range.size;
        });
        assert_eq!(end, self.block.size());
        for (range, user_data) in &self.ranges {
            assert_eq!(self.block.user_data(range).expect("the range is live"), *user_data);
        }
    }

    /// Frees what is left.
    pub(crate) fn finish(mut self) {
        for (range, _) in self.ranges.drain(..) {
            self.block.free(range).expect("the range is live");
        }
        assert!(self.block.is_empty());
    }
}
