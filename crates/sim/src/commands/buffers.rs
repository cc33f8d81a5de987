//! Commands on buffers: copy, fill, update.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use super::{BufferCommandRules, buffer_size, record};
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;
use crate::objects::state::{DeviceObject, DeviceState};

/// The most bytes that `vkCmdUpdateBuffer` takes: the data goes into the command buffer.
const MOST_UPDATED: u64 = 65536;

/// The rules of a copy between buffers. Each of the two commands has identifiers of its own.
struct CopyBufferRules {
    recording: &'static str,
    src: BufferCommandRules,
    dst: BufferCommandRules,
    src_offset: &'static str,
    dst_offset: &'static str,
    src_size: &'static str,
    dst_size: &'static str,
    overlap: &'static str,
    empty: &'static str,
    no_regions: &'static str,
}

macro_rules! copy_rules {
    ($command:literal, $info:literal, $region:literal) => {
        CopyBufferRules {
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            src: BufferCommandRules {
                parameter: concat!("VUID-", $info, "-srcBuffer-parameter"),
                usage: concat!("VUID-", $info, "-srcBuffer-00118"),
                bound: concat!("VUID-", $info, "-srcBuffer-00119"),
            },
            dst: BufferCommandRules {
                parameter: concat!("VUID-", $info, "-dstBuffer-parameter"),
                usage: concat!("VUID-", $info, "-dstBuffer-00120"),
                bound: concat!("VUID-", $info, "-dstBuffer-00121"),
            },
            src_offset: concat!("VUID-", $info, "-srcOffset-00113"),
            dst_offset: concat!("VUID-", $info, "-dstOffset-00114"),
            src_size: concat!("VUID-", $info, "-size-00115"),
            dst_size: concat!("VUID-", $info, "-size-00116"),
            overlap: concat!("VUID-", $info, "-pRegions-00117"),
            empty: concat!("VUID-", $region, "-size-01988"),
            no_regions: concat!("VUID-", $info, "-regionCount-arraylength"),
        }
    };
}

pub(crate) unsafe extern "system" fn copy(
    command_buffer: vk::CommandBuffer,
    src: vk::Buffer,
    dst: vk::Buffer,
    count: u32,
    p_regions: *const vk::BufferCopy,
) {
    // SAFETY: VUID-vkCmdCopyBuffer-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) }.to_vec();
    let rules = copy_rules!("vkCmdCopyBuffer", "vkCmdCopyBuffer", "VkBufferCopy");
    record_copy(command_buffer, "vkCmdCopyBuffer", &rules, (src, dst), regions);
}

pub(crate) unsafe extern "system" fn copy2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CopyBufferInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdCopyBuffer2-pCopyBufferInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkCopyBufferInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let regions = regions
        .iter()
        .map(|region| vk::BufferCopy {
            src_offset: region.src_offset,
            dst_offset: region.dst_offset,
            size: region.size,
        })
        .collect();
    let rules = copy_rules!("vkCmdCopyBuffer2", "VkCopyBufferInfo2", "VkBufferCopy2");
    let buffers = (info.src_buffer, info.dst_buffer);
    record_copy(command_buffer, "vkCmdCopyBuffer2", &rules, buffers, regions);
}

fn record_copy(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    rules: &CopyBufferRules,
    (src, dst): (vk::Buffer, vk::Buffer),
    regions: Vec<vk::BufferCopy>,
) {
    record(command_buffer, call, rules.recording, |device, state| {
        let src_size = buffer_size(device, state, src, vk::BufferUsageFlags::TRANSFER_SRC, &rules.src);
        let dst_size = buffer_size(device, state, dst, vk::BufferUsageFlags::TRANSFER_DST, &rules.dst);
        let (Some(src_size), Some(dst_size)) = (src_size, dst_size) else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => rules.no_regions, "regionCount is 0");
        let names = format!("{} to {}", state.name(src), state.name(dst));
        for region in &regions {
            check_copy(region, (src_size, dst_size), rules)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        refuse_if!(overlapping(state, src, dst, &regions) => rules.overlap,
            "{names}: the bytes that are read are also written");
        Ok(vec![RecordedCommand::CopyBuffer { src, dst, regions }])
    });
}

fn check_copy(
    region: &vk::BufferCopy,
    (src_size, dst_size): (u64, u64),
    rules: &CopyBufferRules,
) -> Result<(), Broken> {
    let vk::BufferCopy { src_offset: src, dst_offset: dst, size } = *region;
    refuse_if!(size == 0 => rules.empty, "size is 0");
    refuse_if!(src >= src_size => rules.src_offset, "srcOffset is {src} in a buffer of {src_size} bytes");
    refuse_if!(dst >= dst_size => rules.dst_offset, "dstOffset is {dst} in a buffer of {dst_size} bytes");
    refuse_if!(size > src_size - src => rules.src_size,
        "{size} bytes from {src} on, in a source of {src_size} bytes");
    refuse_if!(size > dst_size - dst => rules.dst_size,
        "{size} bytes to {dst}, in a destination of {dst_size} bytes");
    Ok(())
}

/// Returns whether any region's source overlaps any region's destination in memory.
fn overlapping(state: &DeviceState, src: vk::Buffer, dst: vk::Buffer, regions: &[vk::BufferCopy]) -> bool {
    let place = |buffer| {
        let bound = state.buffers.get(&buffer)?.bound.as_ref()?;
        Some((bound.memory, bound.offset))
    };
    let (Some((src_memory, src_start)), Some((dst_memory, dst_start))) = (place(src), place(dst)) else {
        return false;
    };
    src_memory == dst_memory
        && regions.iter().any(|from| {
            let from = (src_start + from.src_offset, src_start + from.src_offset + from.size);
            regions.iter().any(|to| {
                let to = (dst_start + to.dst_offset, dst_start + to.dst_offset + to.size);
                from.0 < to.1 && to.0 < from.1
            })
        })
}

pub(crate) unsafe extern "system" fn fill(
    command_buffer: vk::CommandBuffer,
    dst: vk::Buffer,
    offset: u64,
    size: u64,
    data: u32,
) {
    let rules = BufferCommandRules {
        parameter: "VUID-vkCmdFillBuffer-dstBuffer-parameter",
        usage: "VUID-vkCmdFillBuffer-dstBuffer-00029",
        bound: "VUID-vkCmdFillBuffer-dstBuffer-00031",
    };
    let recording = "VUID-vkCmdFillBuffer-commandBuffer-recording";
    record(command_buffer, "vkCmdFillBuffer", recording, |device, state| {
        let usage = vk::BufferUsageFlags::TRANSFER_DST;
        let Some(whole) = buffer_size(device, state, dst, usage, &rules) else {
            return Ok(Vec::new());
        };
        let broken = if offset >= whole {
            Some(("VUID-vkCmdFillBuffer-dstOffset-00024", "the offset is behind the end"))
        } else if !is_aligned(offset, 4) {
            Some(("VUID-vkCmdFillBuffer-dstOffset-00025", "the offset is no multiple of 4"))
        } else if size == vk::WHOLE_SIZE {
            None
        } else if size == 0 {
            Some(("VUID-vkCmdFillBuffer-size-00026", "the size is 0"))
        } else if size > whole - offset {
            Some(("VUID-vkCmdFillBuffer-size-00027", "the range ends behind the end"))
        } else if !is_aligned(size, 4) {
            Some(("VUID-vkCmdFillBuffer-size-00028", "the size is no multiple of 4"))
        } else {
            None
        };
        if let Some((rule, text)) = broken {
            let name = state.name(dst);
            return Err((rule, format!("{name} of {whole} bytes, {size} bytes from {offset} on: {text}")));
        }
        // WHOLE_SIZE leaves what is behind the last multiple of 4.
        let size = if size == vk::WHOLE_SIZE { (whole - offset) & !3 } else { size };
        Ok(vec![RecordedCommand::Fill { dst, offset, size, data }])
    });
}

pub(crate) unsafe extern "system" fn update(
    command_buffer: vk::CommandBuffer,
    dst: vk::Buffer,
    offset: u64,
    size: u64,
    p_data: *const c_void,
) {
    let recording = "VUID-vkCmdUpdateBuffer-commandBuffer-recording";
    record(command_buffer, "vkCmdUpdateBuffer", recording, |device, state| {
        let may = updatable(device, state, dst, offset, size);
        let Some(len) = u32::try_from(size).ok().filter(|_| may) else {
            return Ok(Vec::new());
        };
        // SAFETY: VUID-vkCmdUpdateBuffer-pData-parameter: `dataSize` bytes.
        let data = unsafe { chain::array(p_data.cast::<u8>(), len) };
        Ok(vec![RecordedCommand::Update { dst, offset, data: data.to_vec() }])
    });
}

/// Returns whether `vkCmdUpdateBuffer` may write there; reports why not.
fn updatable(device: &DeviceObject, state: &DeviceState, dst: vk::Buffer, offset: u64, size: u64) -> bool {
    let rules = BufferCommandRules {
        parameter: "VUID-vkCmdUpdateBuffer-dstBuffer-parameter",
        usage: "VUID-vkCmdUpdateBuffer-dstBuffer-00034",
        bound: "VUID-vkCmdUpdateBuffer-dstBuffer-00035",
    };
    let usage = vk::BufferUsageFlags::TRANSFER_DST;
    let Some(whole) = buffer_size(device, state, dst, usage, &rules) else {
        return false;
    };
    let broken = if size == 0 {
        Some(("VUID-vkCmdUpdateBuffer-dataSize-arraylength", "the size is 0"))
    } else if size > MOST_UPDATED {
        Some(("VUID-vkCmdUpdateBuffer-dataSize-00037", "the size is above 65536"))
    } else if !is_aligned(size, 4) {
        Some(("VUID-vkCmdUpdateBuffer-dataSize-00038", "the size is no multiple of 4"))
    } else if !is_aligned(offset, 4) {
        Some(("VUID-vkCmdUpdateBuffer-dstOffset-00036", "the offset is no multiple of 4"))
    } else if offset >= whole {
        Some(("VUID-vkCmdUpdateBuffer-dstOffset-00032", "the offset is behind the end"))
    } else if size > whole - offset {
        Some(("VUID-vkCmdUpdateBuffer-dataSize-00033", "the range ends behind the end"))
    } else {
        None
    };
    if let Some((rule, text)) = broken {
        let name = state.name(dst);
        device.report(rule, format!("{name} of {whole} bytes, {size} bytes from {offset} on: {text}"));
    }
    broken.is_none()
}
