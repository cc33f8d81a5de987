//! Draws and dispatches: each declares what is bound, records the barriers, binds what is stale, and then itself.

use std::ops::Range;

use ash::vk;
use sublet::descriptor::BindPoint;

use super::error::{check_multiple, check_range};
use super::{CommandList, ListError, buffers};
use crate::resource::Buffer;
use crate::track::Use;

fn count(range: &Range<u32>) -> u32 {
    range.end.saturating_sub(range.start)
}

impl CommandList {
    /// `vkCmdDispatch`.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// A compute pipeline is bound, everything that its shader uses is bound or declared and used as that says, and the
    /// counts are within the device's limits.
    pub unsafe fn dispatch(&mut self, groups: [u32; 3]) -> Result<(), ListError> {
        self.outside()?;
        self.needs_queue(vk::QueueFlags::COMPUTE)?;
        self.commit(BindPoint::Compute)?;
        let [x, y, z] = groups;
        // SAFETY: the list is being recorded, outside of rendering; the rest is the caller's promise.
        unsafe { self.core.api.device().cmd_dispatch(self.pool.main, x, y, z) };
        Ok(())
    }

    /// `vkCmdDispatchIndirect`: a `VkDispatchIndirectCommand` at `offset`.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// As [`dispatch`](Self::dispatch), for the counts that are in the buffer then.
    #[doc(alias = "ExecuteIndirect")]
    pub unsafe fn dispatch_indirect(&mut self, buffer: &Buffer, offset: u64) -> Result<(), ListError> {
        self.outside()?;
        self.needs_queue(vk::QueueFlags::COMPUTE)?;
        self.arguments::<vk::DispatchIndirectCommand>(buffer, offset, 1, 0)?;
        self.commit(BindPoint::Compute)?;
        // SAFETY: the list is being recorded, outside of rendering, and keeps the buffer, which has usage and bytes;
        // the rest is the caller's promise.
        unsafe { self.core.api.device().cmd_dispatch_indirect(self.pool.main, buffer.handle(), offset) };
        Ok(())
    }

    /// `vkCmdDraw`.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// A graphics pipeline is bound that fits the attachments, with its dynamic state set; everything that its shaders
    /// use is bound or declared, and used as that says; vertices are within the bound buffers.
    #[doc(alias = "DrawInstanced")]
    pub unsafe fn draw(&mut self, vertices: Range<u32>, instances: Range<u32>) -> Result<(), ListError> {
        self.ready_to_draw()?;
        let (device, count, copies) = (self.core.api.device(), count(&vertices), count(&instances));
        // SAFETY: the list is being recorded, within rendering; the rest is the caller's promise.
        unsafe { device.cmd_draw(self.pool.main, count, copies, vertices.start, instances.start) };
        Ok(())
    }

    /// `vkCmdDrawIndexed`.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// As [`draw`](Self::draw); an index buffer is bound, and has the indices.
    #[doc(alias = "DrawIndexedInstanced")]
    pub unsafe fn draw_indexed(
        &mut self,
        indices: Range<u32>,
        vertex_offset: i32,
        instances: Range<u32>,
    ) -> Result<(), ListError> {
        self.ready_to_draw()?;
        let (count, copies, first) = (count(&indices), count(&instances), instances.start);
        let (device, main) = (self.core.api.device(), self.pool.main);
        // SAFETY: the list is being recorded, within rendering; the rest is the caller's promise.
        unsafe { device.cmd_draw_indexed(main, count, copies, indices.start, vertex_offset, first) };
        Ok(())
    }

    /// `vkCmdDrawIndirect`: `count` times `VkDrawIndirectCommand` from `offset` on, `stride` bytes apart.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// As [`draw`](Self::draw), for what is in the buffer then; `multiDrawIndirect` is enabled if there are several.
    pub unsafe fn draw_indirect(
        &mut self,
        buffer: &Buffer,
        offset: u64,
        count: u32,
        stride: u32,
    ) -> Result<(), ListError> {
        self.inside()?;
        if count == 0 {
            return Ok(());
        }
        self.arguments::<vk::DrawIndirectCommand>(buffer, offset, count, stride)?;
        self.ready_to_draw()?;
        let (device, main) = (self.core.api.device(), self.pool.main);
        // SAFETY: the list is being recorded, within rendering, and keeps the buffer, which has usage and bytes; the
        // rest is the caller's promise.
        unsafe { device.cmd_draw_indirect(main, buffer.handle(), offset, count, stride) };
        Ok(())
    }

    /// `vkCmdDrawIndexedIndirect`: `count` times `VkDrawIndexedIndirectCommand` from `offset` on, `stride` bytes apart.
    ///
    /// # Errors
    /// [`ListError`]: no work was recorded.
    ///
    /// # Safety
    /// As [`draw_indexed`](Self::draw_indexed) and [`draw_indirect`](Self::draw_indirect).
    pub unsafe fn draw_indexed_indirect(
        &mut self,
        buffer: &Buffer,
        offset: u64,
        count: u32,
        stride: u32,
    ) -> Result<(), ListError> {
        self.inside()?;
        if count == 0 {
            return Ok(());
        }
        self.arguments::<vk::DrawIndexedIndirectCommand>(buffer, offset, count, stride)?;
        self.ready_to_draw()?;
        let (device, main) = (self.core.api.device(), self.pool.main);
        // SAFETY: the list is being recorded, within rendering, and keeps the buffer, which has usage and bytes; the
        // rest is the caller's promise.
        unsafe { device.cmd_draw_indexed_indirect(main, buffer.handle(), offset, count, stride) };
        Ok(())
    }

    /// Checks, keeps and declares what `count` commands read, `stride` bytes apart.
    fn arguments<T>(
        &mut self,
        buffer: &Buffer,
        offset: u64,
        count: u32,
        stride: u32,
    ) -> Result<(), ListError> {
        let size = u64::try_from(size_of::<T>()).unwrap_or(u64::MAX);
        buffers::needs(buffer, vk::BufferUsageFlags::INDIRECT_BUFFER)?;
        check_multiple("the offset", offset, 4)?;
        if count > 1 {
            check_multiple("the stride", stride.into(), 4)?;
            check_range("bytes of a command", 0, size, stride.into())?;
        }
        let more = u64::from(count.saturating_sub(1)) * u64::from(stride);
        let end = offset.saturating_add(more).saturating_add(size);
        check_range("bytes", offset, end, buffer.size())?;
        self.keep_buffer(buffer)?;
        self.declare(|recorder| recorder.use_buffer(buffer.id(), offset..end, Use::INDIRECT))
    }

    fn ready_to_draw(&mut self) -> Result<(), ListError> {
        self.inside()?;
        self.commit(BindPoint::Graphics)?;
        self.resume_rendering();
        Ok(())
    }
}
