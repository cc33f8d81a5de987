//! Errors of vectors over any block source.

use sublet::device::DriverError;
use sublet::metadata::{AllocateError, RegionError};
use sublet::vector::{GiveBackError, HandleError, PolicyError, VectorError};

use super::{DRIVER, RenderedError, each, rendered};

pub(crate) fn all() -> Vec<RenderedError> {
    let mut all = Vec::from(each::<VectorError<DriverError>, _>([
        VectorError::Policy(PolicyError { min_blocks: 1002, max_blocks: 1001 }),
        VectorError::Request(AllocateError::UpperInRing),
        VectorError::TooLarge,
        VectorError::Full { blocks: 1001, units: 1002 },
        VectorError::Region(RegionError::Capacity { capacity: 1002, max: 1001 }),
        VectorError::Create(DRIVER),
        VectorError::Realize(DRIVER),
        VectorError::Exhausted { tried: 1001 },
    ]));
    all.extend(each([PolicyError { min_blocks: 1002, max_blocks: 1001 }]));
    all.extend(each([HandleError::Foreign, HandleError::Stale]));
    all.push(rendered(GiveBackError { reason: HandleError::Stale, granted: () }));
    all
}
