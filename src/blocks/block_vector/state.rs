//! What the lock of a vector guards: the engine and the blocks that it divides. Nothing here calls the driver.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use ash::vk;

use super::super::device_block::{DeviceBlock, DeviceContext};
use super::super::growth::{Growth, VectorConfig};
use super::super::mapping::MappedPointer;
use super::{FOREIGN, Grant, VectorRequest};
use crate::base::align::align_up;
use crate::base::cast::{index, narrow};
use crate::error::{AllocationError, ForeignHandle, MemoryError};
use crate::metadata::{AllocateError, Engine, Key, Metadata, RegionId, Request};

#[derive(Debug)]
pub(super) struct Block {
    pub(super) memory: DeviceBlock,
    /// Users of the mapping: guards, and persistently mapped allocations. 64 bits cannot run over, however many guards
    /// are forgotten; at zero `trim` would unmap under those that live.
    pub(super) map_count: u64,
    pub(super) empty: bool,
}

#[derive(Debug)]
pub(super) struct Active {
    pub(super) config: VectorConfig,
    pub(super) engine: Engine,
    /// By region.
    pub(super) blocks: Vec<Option<Block>>,
    pub(super) block_count: u32,
    pub(super) block_bytes: u64,
    pub(super) empty_blocks: u32,
    pub(super) names: HashMap<Key, Box<str>>,
    /// The pool's own name.
    pub(super) name: Option<Box<str>>,
}

#[derive(Debug, Default)]
pub(super) struct Core {
    /// Tells one use of this vector from the next.
    pub(super) generation: u32,
    pub(super) active: Option<Active>,
}

impl Core {
    pub(super) fn use_of(&mut self, generation: u32) -> Result<&mut Active, ForeignHandle> {
        if self.generation != generation {
            return Err(FOREIGN);
        }
        self.active.as_mut().ok_or(FOREIGN)
    }

    /// `Ok(None)`: no block has room.
    #[inline]
    pub(super) fn try_allocate(&mut self, request: &VectorRequest) -> Result<Option<Grant>, AllocationError> {
        let generation = self.generation;
        let active = self.active.as_mut().ok_or(AllocationError::ForeignPool)?;
        let wanted = active.wanted(request);
        let (key, span) = match active.engine.allocate(&wanted) {
            Ok(granted) => granted,
            Err(AllocateError::NoSpace) => return Ok(None),
            Err(error) => return Err(active.refused(error)),
        };
        let block = active.blocks[index(span.region.0)].as_mut().expect("B1: a region has a block");
        if block.empty {
            block.empty = false;
            active.empty_blocks -= 1;
        }
        let mut mapped = MappedPointer::UNMAPPED;
        if request.mapped {
            block.map_count += 1;
            mapped = block.memory.mapped().at(span.offset);
        }
        Ok(Some(Grant { memory: block.memory.memory, offset: span.offset, mapped, key, generation }))
    }

    /// Whether there may be another block for the request.
    pub(super) fn check_growth(&self, request: &VectorRequest) -> Result<(), AllocationError> {
        self.active.as_ref().ok_or(AllocationError::ForeignPool)?.check_growth(request).map(|_| ())
    }

    /// The block that would make room, if there may be one.
    #[cold]
    pub(super) fn plan_growth(&self, request: &VectorRequest) -> Result<Growth, AllocationError> {
        self.active.as_ref().ok_or(AllocationError::ForeignPool)?.plan_growth(request)
    }

    /// Takes a new block in and allocates. The block comes back where it did not help, or was not needed any more and
    /// is one empty block too many.
    pub(super) fn allocate_with(
        &mut self,
        block: DeviceBlock,
        request: &VectorRequest,
    ) -> (Result<Grant, AllocationError>, Option<DeviceBlock>) {
        let Some(active) = self.active.as_mut() else {
            return (Err(AllocationError::ForeignPool), Some(block));
        };
        let region = match active.add_block(block) {
            Ok(region) => region,
            Err(block) => {
                let limit = active.block_count;
                return (Err(MemoryError::TooManyAllocations { limit }.into()), Some(block));
            }
        };
        let granted = self.try_allocate(request);
        let Some(active) = self.active.as_mut() else {
            return (Err(AllocationError::ForeignPool), None);
        };
        let helped = matches!(granted, Ok(Some(_)));
        let kept = if helped { active.config.empty_blocks_kept } else { 0 };
        // If the block was used it is not empty, and stays.
        let surplus = active.block_mut(region).empty && active.empty_blocks > kept;
        let unwanted = if surplus { active.take_empty_block(region) } else { None };
        (granted.and_then(|grant| grant.ok_or_else(|| active.full(request))), unwanted)
    }
}

impl Active {
    /// No blocks yet.
    pub(super) fn new(config: VectorConfig, name: Option<&str>) -> Self {
        Self {
            config,
            engine: Engine::new(config.algorithm, config.block_size, config.max_blocks > 1),
            blocks: Vec::new(),
            block_count: 0,
            block_bytes: 0,
            empty_blocks: 0,
            names: HashMap::new(),
            name: name.map(Box::from),
        }
    }

    /// What the engine is asked for. Sizes that would overflow stay as they are: they fit nowhere.
    #[inline]
    fn wanted(&self, request: &VectorRequest) -> Request {
        let mut size = request.size;
        let mut alignment = request.alignment.max(self.config.min_alignment);
        if request.whole_pages && self.config.granularity > 1 {
            size = align_up(size, self.config.granularity).unwrap_or(size);
            alignment = alignment.max(self.config.granularity);
        }
        Request { size, alignment, strategy: request.strategy, upper: request.upper, tag: request.tag }
    }

    #[cold]
    fn refused(&self, error: AllocateError) -> AllocationError {
        match error {
            AllocateError::UpperInRing => AllocationError::UpperAddressInRing,
            _ => AllocationError::UpperAddress {
                algorithm: self.config.algorithm,
                max_block_count: if self.config.max_blocks == u32::MAX { 0 } else { self.config.max_blocks },
            },
        }
    }

    fn full(&self, request: &VectorRequest) -> AllocationError {
        let wanted = self.wanted(request);
        let usage = self.engine.usage();
        AllocationError::Full {
            size: wanted.size,
            alignment: wanted.alignment,
            free: usage.capacity - usage.used,
            largest_free: self.engine.largest_free(),
            block_count: self.block_count,
            max_block_count: if request.never_allocate { 0 } else { self.config.max_blocks },
        }
    }

    /// See [`Core::check_growth`]. Gives the bytes that a new block has to have.
    fn check_growth(&self, request: &VectorRequest) -> Result<u64, AllocationError> {
        // Else a block would be taken from the driver that does not help.
        let needed = self.engine.least_capacity(&self.wanted(request));
        if needed > self.config.block_size {
            return Err(AllocationError::BlockTooSmall { size: needed, block_size: self.config.block_size });
        }
        if request.never_allocate || self.block_count >= self.config.max_blocks {
            return Err(self.full(request));
        }
        Ok(needed)
    }

    /// See [`Core::plan_growth`].
    fn plan_growth(&self, request: &VectorRequest) -> Result<Growth, AllocationError> {
        let needed = self.check_growth(request)?;
        let sizes = self.blocks.iter().flatten().map(|block| block.memory.size);
        Ok(Growth {
            config: self.config,
            needed,
            largest_block: sizes.max().unwrap_or(0),
            within_budget: request.within_budget,
        })
    }

    pub(super) fn block_mut(&mut self, region: RegionId) -> &mut Block {
        self.blocks[index(region.0)].as_mut().expect("B1: a region has a block")
    }

    /// The block comes back if the engine takes no further region.
    pub(super) fn add_block(&mut self, memory: DeviceBlock) -> Result<RegionId, DeviceBlock> {
        let Ok(region) = self.engine.add_region(&memory.size) else {
            return Err(memory);
        };
        let at = index(region.0);
        if at >= self.blocks.len() {
            self.blocks.resize_with(at + 1, || None);
        }
        self.block_count += 1;
        self.block_bytes += memory.size;
        self.empty_blocks += 1;
        self.blocks[at] = Some(Block { memory, map_count: 0, empty: true });
        Ok(region)
    }

    /// Decides whether a block that has just been emptied stays.
    #[cold]
    pub(super) fn on_empty(&mut self, context: &DeviceContext, region: RegionId) -> Option<DeviceBlock> {
        let block = self.block_mut(region);
        block.empty = true;
        // Mappings that were left open ended with the last allocation.
        block.map_count = 0;
        self.empty_blocks += 1;
        let level = context.budgets.level(context.heap_of(self.config.memory_type));
        let kept = if level.usage >= level.budget { 0 } else { self.config.empty_blocks_kept };
        let surplus = self.empty_blocks > kept && self.block_count > self.config.min_blocks;
        if surplus { self.take_empty_block(region) } else { None }
    }

    fn take_empty_block(&mut self, region: RegionId) -> Option<DeviceBlock> {
        self.engine.remove_region(region).ok()?;
        let block = self.blocks[index(region.0)].take()?;
        self.block_count -= 1;
        self.block_bytes -= block.memory.size;
        self.empty_blocks -= 1;
        Some(block.memory)
    }

    /// Takes out empty blocks, the youngest first, until `keep` of them or the minimum of all are left.
    pub(super) fn take_empty_blocks(&mut self, keep: u32) -> Vec<DeviceBlock> {
        let mut taken = Vec::new();
        for id in (0..narrow(self.blocks.len())).rev() {
            if self.empty_blocks <= keep || self.block_count <= self.config.min_blocks {
                break;
            }
            if self.blocks[index(id)].as_ref().is_some_and(|block| block.empty) {
                taken.extend(self.take_empty_block(RegionId(id)));
            }
        }
        taken
    }

    pub(super) fn take_all_blocks(&mut self) -> Vec<DeviceBlock> {
        self.block_count = 0;
        self.block_bytes = 0;
        self.empty_blocks = 0;
        self.blocks.drain(..).flatten().map(|block| block.memory).collect()
    }

    /// Forgets the mappings that nobody uses, and says of which memory.
    pub(super) fn take_idle_mappings(&mut self) -> Vec<vk::DeviceMemory> {
        let idle = |block: &&mut Block| block.map_count == 0 && block.memory.mapped().is_mapped();
        let idle = self.blocks.iter_mut().flatten().filter(idle);
        idle.map(|block| {
            block.memory.set_mapped(MappedPointer::UNMAPPED);
            block.memory.memory
        })
        .collect()
    }
}
