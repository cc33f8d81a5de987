//! Defragmentation, with any choice for each move.
#![expect(unsafe_code, reason = "moves resources")]

use sublet::{DefragmentationAlgorithm, DefragmentationInfo, Move};
use sublet_fuzz::Choice;

use crate::call::MoveChoice;
use crate::program::{Program, Resource};

impl Program<'_> {
    /// Makes a pass with each list of up to eight choices.
    pub(crate) fn defragment(
        &mut self,
        owner: usize,
        algorithm: Choice,
        in_pool: Option<Choice>,
        bytes: u64,
        choices: &[MoveChoice],
    ) {
        let pools = std::mem::take(&mut self.pools);
        let pool = in_pool.and_then(|which| which.of(&pools)).map(|(_, _, pool)| pool);
        let info = DefragmentationInfo {
            algorithm: algorithm.one(&[
                DefragmentationAlgorithm::Balanced,
                DefragmentationAlgorithm::Fast,
                DefragmentationAlgorithm::Full,
                DefragmentationAlgorithm::Extensive,
            ]),
            pools: pool.as_slice(),
            max_bytes_per_pass: bytes,
            ..DefragmentationInfo::default()
        };
        let allocator = self.allocators[owner];
        if let Ok(mut defragmentation) = allocator.begin_defragmentation(&info) {
            for choices in choices.chunks(8) {
                let Some(pass) = defragmentation.begin_pass() else { break };
                for (planned, choice) in pass.zip(choices.iter().cycle()) {
                    self.perform(planned, *choice);
                }
            }
            defragmentation.end();
        }
        self.pools = pools;
    }

    fn perform(&mut self, planned: Move<'_>, choice: MoveChoice) {
        let at = self.held.iter().position(|held| held.allocation.id() == planned.source());
        let mut held = self.held.swap_remove(at.expect("only live allocations move"));
        assert!(planned.size() >= held.allocation.size());
        assert_eq!(planned.source_memory(), held.allocation.memory());
        match choice {
            MoveChoice::Ignore => planned.ignore(),
            MoveChoice::Drop => drop(planned),
            MoveChoice::Free => {
                self.displace(&held.allocation);
                self.destroy(&held.resource);
                // SAFETY: the device never used it, and its resource was destroyed.
                assert!(unsafe { planned.free(held.allocation) }.is_ok());
                return;
            }
            MoveChoice::Complete => {
                // SAFETY: the resources are alike, and the old one is destroyed before the move is complete.
                let new = unsafe {
                    match &held.resource {
                        Resource::None => Ok(Resource::None),
                        Resource::Buffer(_, info) => {
                            planned.create_buffer(info).map(|buffer| Resource::Buffer(buffer, *info))
                        }
                        Resource::Image(_, info) => {
                            planned.create_image(info).map(|image| Resource::Image(image, *info))
                        }
                    }
                };
                if let Ok(new) = new {
                    let (memory, offset) = (planned.memory(), planned.offset());
                    let range = (held.allocation.memory(), held.allocation.offset());
                    self.displace(&held.allocation);
                    // SAFETY: the device never used the old resource.
                    let moved = unsafe { planned.complete(&mut held.allocation) };
                    let is_moved = moved.is_ok();
                    let unused = if is_moved { std::mem::replace(&mut held.resource, new) } else { new };
                    self.destroy(&unused);
                    drop(moved);
                    let now = (held.allocation.memory(), held.allocation.offset());
                    assert_eq!(now, if is_moved { (memory, offset) } else { range });
                    // The program copies the bytes, which this one does not.
                    held.written = held.written.filter(|_| !is_moved);
                    self.place(&held);
                }
            }
        }
        self.held.push(held);
    }
}
