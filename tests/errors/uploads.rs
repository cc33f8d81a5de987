//! Errors of clocks and uploads.

use sublet::retire::*;
use sublet::upload::*;
use sublet::*;

use super::{DRIVER, RenderedError, each, rendered, saying, unnumbered};

pub(crate) fn all() -> Vec<RenderedError> {
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    let mut all = vec![saying(TooManyTimelines, &["64 timelines"])];
    all.extend(unnumbered([
        ClockSubmitError::NotOpen { ticket },
        ClockSubmitError::OtherClock { ticket },
        ClockSubmitError::ShutDown { ticket },
    ]));
    all.extend(unnumbered([DiscardError::NotOpen { ticket }, DiscardError::OtherClock { ticket }]));
    let waiting = clock.open(ticket.timeline());
    all.push(saying(MixedClocks { ticket, waiting }, &[&format!("{ticket:?}"), &format!("{waiting:?}")]));
    let other = OtherClock { ticket, tickets: 1001, collected: 1002 };
    all.push(saying(other, &["1001", "1002"]));
    all.push(saying(ReserveError::TooMany { additional: 1002, waiting: 1001 }, &["1002", "1001"]));
    let source = Vec::<u64>::new().try_reserve(usize::MAX).unwrap_err();
    all.push(saying(ReserveError::HostMemory { additional: 1001, source }, &["1001"]));
    all.push(rendered(FlushError::Driver(DRIVER)));
    all.push(saying(FlushError::MixedClocks(MixedClocks { ticket, waiting }), &[&format!("{waiting:?}")]));
    let full = CreateError::Allocation(AllocationError::BlockTooSmall { size: 1002, block_size: 1001 });
    all.extend(each([
        CreateUploadError::Size { size: 1001 },
        CreateUploadError::BufferTooLarge { size: 1002, max: 1001 },
        CreateUploadError::NoUsage,
        CreateUploadError::Limit { memory_limit: 1001, page_size: 1002 },
        CreateUploadError::DeviceAddress,
        CreateUploadError::ForeignPool,
        CreateUploadError::NotHostVisible { memory_type: 17 },
        CreateUploadError::PoolMemoryType { memory_type: 17, memory_type_bits: 0b1010 },
        CreateUploadError::MemoryType(FindMemoryTypeError::Resource(DRIVER)),
        CreateUploadError::Pool(CreatePoolError::BlockCounts { min: 1002, max: 1001 }),
    ]));
    let no_room = UploadError::MemoryLimit { memory_limit: 1001, in_use: 1002, needed: 1003 };
    all.extend(each([
        UploadError::ZeroSize,
        UploadError::Alignment { alignment: 1003 },
        UploadError::AlignmentTooLarge { alignment: 1002, max: 1001 },
        UploadError::Reserve { bytes: 1003, reserved: 1002, heaps: 1001 },
        UploadError::Oversize { size: 1002, max: 1001 },
        UploadError::Page(full),
        no_room,
    ]));
    all.extend(unnumbered([
        WaitError::NoRoom(no_room),
        WaitError::Wait(DRIVER),
        WaitError::NoProgress { ticket },
        WaitError::OtherClock(other),
    ]));
    all
}
