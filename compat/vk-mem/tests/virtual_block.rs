//! Virtual blocks in a vk-mem program.
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a test calls what it tests")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "a test: the functions ask nothing of it")]

use ash::vk;
use vk_mem::{
    VirtualAllocationCreateFlags, VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateFlags,
    VirtualBlockCreateInfo,
};

#[test]
fn a_virtual_block_gives_ranges_and_takes_them_back_once() {
    let info = VirtualBlockCreateInfo { size: 1000, ..Default::default() };
    let mut block = VirtualBlock::new(info).unwrap();
    let wanted = VirtualAllocationCreateInfo {
        size: 100,
        alignment: 64,
        user_data: 5,
        flags: VirtualAllocationCreateFlags::VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT,
    };
    let (mut first, zero) = unsafe { block.allocate(wanted) }.unwrap();
    let (mut second, next) = unsafe { block.allocate(wanted) }.unwrap();
    assert_eq!((zero, next), (0, 128));
    unsafe { block.set_allocation_user_data(&mut second, std::ptr::without_provenance_mut(6)) };
    let info = unsafe { block.get_allocation_info(&second) }.unwrap();
    assert_eq!((info.offset, info.size, info.user_data), (128, 100, 6));
    let full = unsafe { block.allocate(VirtualAllocationCreateInfo { size: 1000, ..wanted }) };
    assert_eq!(full.unwrap_err(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    unsafe {
        block.free(&mut first);
        block.free(&mut first);
    }
    assert_eq!(block.get_statistics().allocationCount, 1);
    let json = block.build_stats_string(true);
    assert!(json.contains("\"AllocationBytes\": 100"), "{json}");
    assert_eq!(unsafe { block.get_allocation_info(&first) }.unwrap_err(), vk::Result::ERROR_UNKNOWN);
    unsafe { block.clear() };
    assert!(block.is_empty());
    unsafe { block.free(&mut second) };
    assert_eq!(block.calculate_statistics().unusedRangeSizeMax, 1000);
    let nothing = VirtualBlock::new(VirtualBlockCreateInfo::default());
    assert_eq!(nothing.err(), Some(vk::Result::ERROR_INITIALIZATION_FAILED));
}

#[test]
fn a_linear_virtual_block_has_an_upper_end() {
    let mut block = VirtualBlock::new(VirtualBlockCreateInfo {
        size: 1000,
        flags: VirtualBlockCreateFlags::VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT,
        allocation_callbacks: None,
    })
    .unwrap();
    let upper = VirtualAllocationCreateInfo {
        size: 100,
        alignment: 0,
        user_data: 0,
        flags: VirtualAllocationCreateFlags::VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
    };
    let (mut range, offset) = unsafe { block.allocate(upper) }.unwrap();
    assert_eq!(offset, 900);
    unsafe { block.free(&mut range) };
    assert!(block.is_empty());
}
