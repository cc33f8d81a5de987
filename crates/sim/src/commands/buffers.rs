//! Commands on buffers: copy, fill, update.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use super::{CommandForm, buffer_size, record};
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;
use crate::objects::state::{DeviceObject, DeviceState};

/// The most bytes that `vkCmdUpdateBuffer` takes: the data goes into the command buffer.
const MOST_UPDATED: u64 = 65536;

pub(crate) unsafe extern "system" fn copy(
    command_buffer: vk::CommandBuffer,
    src: vk::Buffer,
    dst: vk::Buffer,
    count: u32,
    p_regions: *const vk::BufferCopy,
) {
    // SAFETY: VUID-vkCmdCopyBuffer-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) }.to_vec();
    let form = CommandForm { call: "vkCmdCopyBuffer", info: "vkCmdCopyBuffer", region: "VkBufferCopy" };
    record_copy(command_buffer, form, (src, dst), regions);
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
    let form = CommandForm { call: "vkCmdCopyBuffer2", info: "VkCopyBufferInfo2", region: "VkBufferCopy2" };
    record_copy(command_buffer, form, (info.src_buffer, info.dst_buffer), regions);
}

fn record_copy(
    command_buffer: vk::CommandBuffer,
    form: CommandForm,
    (src, dst): (vk::Buffer, vk::Buffer),
    regions: Vec<vk::BufferCopy>,
) {
    record(command_buffer, form.call, |device, state| {
        let (read, written) = (vk::BufferUsageFlags::TRANSFER_SRC, vk::BufferUsageFlags::TRANSFER_DST);
        let rules = ["srcBuffer-parameter", "srcBuffer-00118", "srcBuffer-00119"];
        let src_size = buffer_size(device, state, src, read, form.info, rules);
        let rules = ["dstBuffer-parameter", "dstBuffer-00120", "dstBuffer-00121"];
        let dst_size = buffer_size(device, state, dst, written, form.info, rules);
        let (Some(src_size), Some(dst_size)) = (src_size, dst_size) else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => form.rule("regionCount-arraylength"), "regionCount is 0");
        let names = format!("{} to {}", state.name(src), state.name(dst));
        for region in &regions {
            check_copy(region, (src_size, dst_size), form)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        refuse_if!(overlapping(state, src, dst, &regions) => form.rule("pRegions-00117"),
            "{names}: the bytes that are read are also written");
        Ok(vec![RecordedCommand::CopyBuffer { src, dst, regions }])
    });
}

fn check_copy(
    region: &vk::BufferCopy,
    (src_size, dst_size): (u64, u64),
    form: CommandForm,
) -> Result<(), Broken> {
    let vk::BufferCopy { src_offset: src, dst_offset: dst, size } = *region;
    refuse_if!(size == 0 => form.region_rule("size-01988"), "size is 0");
    refuse_if!(src >= src_size => form.rule("srcOffset-00113"),
        "srcOffset is {src} in a buffer of {src_size} bytes");
    refuse_if!(dst >= dst_size => form.rule("dstOffset-00114"),
        "dstOffset is {dst} in a buffer of {dst_size} bytes");
    refuse_if!(size > src_size - src => form.rule("size-00115"),
        "{size} bytes from {src} on, in a source of {src_size} bytes");
    refuse_if!(size > dst_size - dst => form.rule("size-00116"),
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
    record(command_buffer, "vkCmdFillBuffer", |device, state| {
        let usage = vk::BufferUsageFlags::TRANSFER_DST;
        let rules = ["dstBuffer-parameter", "dstBuffer-00029", "dstBuffer-00031"];
        let Some(whole) = buffer_size(device, state, dst, usage, "vkCmdFillBuffer", rules) else {
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
    record(command_buffer, "vkCmdUpdateBuffer", |device, state| {
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
    let usage = vk::BufferUsageFlags::TRANSFER_DST;
    let rules = ["dstBuffer-parameter", "dstBuffer-00034", "dstBuffer-00035"];
    let Some(whole) = buffer_size(device, state, dst, usage, "vkCmdUpdateBuffer", rules) else {
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
