//! See [`Compactor`].
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::collections::HashSet;
use std::fmt;
use std::time::Instant;

use ash::vk;
use sublet::retire::Ticket;
use sublet::{DefragmentationInfo, HeapBudget, Move, SharedDefragmentation};

use super::transfer::{ResourceTransfer, can_copy};
use super::{CompactError, CompactStep, CompactorCreateInfo, CompactorStatistics, Moved};
use crate::device::DeviceCore;
use crate::frame::{Frames, SubmitInfo};
use crate::resource::FoundResource;
use crate::track::{BarrierBatch, ResourceId};

type Subscriber = Box<dyn FnMut(&Moved<'_>) + Send>;

/// Moves buffers and images, a few in each frame, so that the driver gets memory blocks back: see the
/// [module](crate::compact).
///
/// ```
/// # let (_gpu, mut frames) = sublet_frame::doc_example();
/// use sublet_frame::{CompactStep, Compactor, CompactorCreateInfo, MovedResource};
///
/// let mut compactor = Compactor::new(CompactorCreateInfo::new(frames.queue(0)));
/// compactor.subscribe(|moved| match moved.resource {
///     MovedResource::Buffer { buffer, old } => println!("{old:?} is now {:?}", buffer.handle()),
///     MovedResource::Image { views, .. } => println!("{} views to rewrite", views.len()),
///     _ => {}
/// });
/// for _ in 0..10 {
///     frames.begin()?;
///     assert_eq!(compactor.step(&frames)?, CompactStep::Idle, "there is nothing to gain");
///     // Record and submit lists.
///     frames.end();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compactor {
    info: CompactorCreateInfo,
    context: Option<SharedDefragmentation>,
    subscribers: Vec<Subscriber>,
    requested: bool,
    /// The current run was requested.
    asked: bool,
    /// Free bytes in blocks after the last run.
    baseline: u64,
    /// A movable resource was not moved.
    hindered: bool,
    statistics: CompactorStatistics,
}

impl Compactor {
    /// Creates an idle compactor.
    #[must_use]
    pub fn new(info: CompactorCreateInfo) -> Self {
        Self {
            info,
            context: None,
            subscribers: Vec::new(),
            requested: false,
            asked: false,
            baseline: 0,
            hindered: false,
            statistics: CompactorStatistics::default(),
        }
    }

    /// Calls `f` for every resource that has moved, before any list can use it again. Rewrite descriptors and addresses
    /// there.
    ///
    /// [`step`](Self::step) calls `f`. `f` must not record or submit lists, call [`Frames::with_queue`], pin or freeze
    /// resources, or wait for a lock that another thread holds while doing so: that would deadlock.
    pub fn subscribe(&mut self, f: impl FnMut(&Moved<'_>) + Send + 'static) {
        self.subscribers.push(Box::new(f));
    }

    /// Starts at the next step, regardless of the amount of free memory.
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// Returns true while a run is active.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.context.is_some()
    }

    /// Returns the counters since creation.
    #[must_use]
    pub fn statistics(&self) -> CompactorStatistics {
        self.statistics
    }

    /// Performs the moves of a frame. Call it once in each frame, between [`Frames::begin`] and the lists of the frame.
    /// Handles, views and ids of resources change only in this function.
    ///
    /// Other threads may record and submit meanwhile. A list that uses a resource during its move waits, and
    /// submissions wait until the copies are submitted.
    ///
    /// # Errors
    /// See [`CompactError`]; nothing was moved.
    ///
    /// # Panics
    /// If a subscriber panics. The moves remain, and other subscribers may not have been called.
    ///
    /// # Complexity
    /// O(memory types) while idle. Otherwise that of [`begin_pass`](sublet::Defragmentation::begin_pass) plus the moved
    /// bytes.
    pub fn step(&mut self, frames: &Frames) -> Result<CompactStep, CompactError> {
        let mut unobserved = Vec::new();
        let stepped = self.advance(frames, &mut unobserved);
        // All locks are released.
        frames.core.notify_barriers(&unobserved);
        stepped.map_err(|error| match frames.core.is_lost() {
            true => CompactError::Lost,
            false => frames.core.or_lost(error),
        })
    }

    /// Performs the step and collects the recorded barriers in `unobserved`, for the observer.
    fn advance(
        &mut self,
        frames: &Frames,
        unobserved: &mut Vec<BarrierBatch>,
    ) -> Result<CompactStep, CompactError> {
        let core = &*frames.core;
        if core.is_closed() {
            return Err(CompactError::Lost);
        }
        if self.context.is_none() && !self.has_reason(core) {
            return Ok(CompactStep::Idle);
        }
        let context = match &mut self.context {
            Some(context) => context,
            slot => {
                let info = DefragmentationInfo {
                    algorithm: self.info.algorithm,
                    max_bytes_per_pass: self.info.max_bytes_per_frame,
                    max_allocations_per_pass: self.info.max_moves_per_frame,
                    max_time_per_pass: Some(self.info.max_time_per_frame),
                    ..DefragmentationInfo::default()
                };
                let begun =
                    core.allocator.begin_shared_defragmentation(&info).map_err(CompactError::Begin)?;
                (self.asked, self.hindered) = (std::mem::take(&mut self.requested), false);
                self.statistics.starts += 1;
                slot.insert(begun)
            }
        };
        if context.has_moves() {
            return Ok(CompactStep::Waiting);
        }
        let Some(pass) = context.begin_pass() else { return Ok(self.end(core)) };
        // Code within `Frames::with_queue` may wait for a step, so a step must not wait for the queues under `moving`.
        let queues = core.submitter.lock();
        let moving = core.moving.lock();
        let result = self.make(frames, pass.collect(), unobserved);
        drop(queues);
        self.hindered |= result.is_err();
        let Some((mut transfers, bytes, ticket)) = result? else { return Ok(CompactStep::Waiting) };
        transfers.iter_mut().for_each(|transfer| transfer.arrive(core));
        self.statistics.moves += u64::try_from(transfers.len()).unwrap_or(u64::MAX);
        self.statistics.bytes_moved += bytes;
        for transfer in &transfers {
            self.subscribers.iter_mut().for_each(|subscriber| subscriber(&transfer.moved(ticket)));
        }
        let moves = transfers.len();
        // From here on, lists may use the moved resources.
        drop(transfers);
        drop(moving);
        Ok(CompactStep::Moved { moves, bytes, ticket })
    }

    /// Creates the replacements, copies, and submits. Returns `None` if nothing can be moved now.
    fn make(
        &mut self,
        frames: &Frames,
        moves: Vec<Move<'static>>,
        unobserved: &mut Vec<BarrierBatch>,
    ) -> Result<Option<(Vec<ResourceTransfer>, u64, Ticket)>, CompactError> {
        let core = &*frames.core;
        let queue = self.info.queue;
        let flags = core.queues.get(queue.index()).map(|data| core.families[data.family].flags);
        let flags = flags.unwrap_or(vk::QueueFlags::empty());
        // If a resource of a block must stay, nothing else of that block is moved.
        let mut found = Vec::with_capacity(moves.len());
        let mut staying = HashSet::new();
        for moved in &moves {
            let one = core.movables.find(moved.source()).filter(|one| {
                let (free, id): (bool, ResourceId) = match one {
                    // The program has dropped it. When the lists in flight are done, its memory is free without a move.
                    None => return true,
                    Some(FoundResource::Buffer(buffer)) => {
                        let addressed = buffer.usage().contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
                        let notified = !addressed || !self.subscribers.is_empty();
                        (buffer.is_movable() && notified, buffer.id().into())
                    }
                    Some(FoundResource::Image(image)) => {
                        (image.is_movable() && can_copy(image, flags), image.id().into())
                    }
                };
                free && core.global.lock().can_be_replaced(id)
            });
            if one.is_none() {
                staying.insert(moved.source_memory());
            }
            found.push(one);
        }
        let started = Instant::now();
        let mut transfers = Vec::with_capacity(moves.len());
        let mut bytes = 0;
        for (moved, one) in moves.into_iter().zip(found) {
            let late = !transfers.is_empty() && started.elapsed() >= self.info.max_time_per_frame;
            let Some(one) = one.filter(|_| !staying.contains(&moved.source_memory())) else {
                moved.ignore();
                continue;
            };
            let Some(one) = one.filter(|_| !late) else {
                self.hindered = true;
                continue;
            };
            let size = moved.size();
            let transfer = match one {
                FoundResource::Buffer(buffer) => ResourceTransfer::of_buffer(buffer, moved),
                FoundResource::Image(image) => ResourceTransfer::of_image(core, image, moved),
            };
            match transfer? {
                Some(transfer) => {
                    bytes += size;
                    transfers.push(transfer);
                }
                None => {
                    self.statistics.busy += 1;
                    self.hindered = true;
                }
            }
        }
        if transfers.is_empty() {
            return Ok(None);
        }
        let mut list = frames.list(queue).map_err(CompactError::Open)?;
        transfers.iter().try_for_each(|transfer| transfer.declare(&mut list))?;
        // This records no barriers and cannot fail: no resource is used twice, so all barriers are in the preamble, and
        // no rendering is active.
        let _ = list.flush();
        for transfer in &transfers {
            // SAFETY: all copies were declared and the barriers recorded; `can_copy` was checked for images.
            unsafe { transfer.copy(&list) };
        }
        // SAFETY: the submission has no semaphores.
        let ticket = unsafe { frames.submit_unobserved(queue, [list], &SubmitInfo::default(), unobserved) };
        let ticket = ticket.map_err(CompactError::Submit)?;
        Ok(Some((transfers, bytes, ticket)))
    }

    fn end(&mut self, core: &DeviceCore) -> CompactStep {
        let statistics = self.context.take().map(|context| context.statistics()).unwrap_or_default();
        self.statistics.bytes_freed += statistics.bytes_freed;
        self.statistics.blocks_freed += statistics.blocks_freed;
        if self.hindered {
            // Later moves may gain more.
            self.requested |= self.asked;
        } else {
            self.baseline = free_bytes(core);
        }
        CompactStep::Ended(statistics)
    }

    fn has_reason(&mut self, core: &DeviceCore) -> bool {
        let CompactorCreateInfo { start_bytes, start_heap_usage, .. } = self.info;
        if self.requested || (start_bytes == 0 && start_heap_usage <= 0.0) {
            return self.requested;
        }
        let free = free_bytes(core);
        self.baseline = self.baseline.min(free);
        let more = free - self.baseline;
        let is_full = |heap: &HeapBudget| {
            #[expect(
                clippy::cast_precision_loss,
                clippy::as_conversions,
                reason = "it is multiplied with a fraction"
            )]
            let most = heap.budget as f64 * f64::from(start_heap_usage);
            #[expect(
                clippy::cast_precision_loss,
                clippy::as_conversions,
                reason = "it is compared with an approximate limit"
            )]
            let usage = heap.usage as f64;
            start_heap_usage > 0.0 && usage > most
        };
        (start_bytes != 0 && more >= start_bytes)
            || (more != 0 && core.allocator.heap_budgets().iter().any(is_full))
    }
}

fn free_bytes(core: &DeviceCore) -> u64 {
    let types = core.allocator.memory_type_statistics();
    types.iter().map(|one| one.block_bytes.saturating_sub(one.allocation_bytes)).sum()
}

impl fmt::Debug for Compactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compactor")
            .field("info", &self.info)
            .field("active", &self.is_active())
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}
