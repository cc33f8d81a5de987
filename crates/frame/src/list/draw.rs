//! Draws and dispatches. Each declares the bound resources, records barriers and stale descriptors, and then the
//! command.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;

use ash::vk;
use sublet_descriptors::BindPoint;

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
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// A compute pipeline is bound. All resources that its shader uses are bound or declared, with matching uses. The
    /// counts are within the limits of the device.
    pub unsafe fn dispatch(&mut self, groups: [u32; 3]) -> Result<(), ListError> {
        self.outside()?;
        self.needs_queue(vk::QueueFlags::COMPUTE)?;
        self.commit(BindPoint::Compute)?;
        let [x, y, z] = groups;
        // SAFETY: the list is being recorded, outside of rendering; the caller guarantees the rest.
        unsafe { self.core.api.device().cmd_dispatch(self.pool.main, x, y, z) };
        Ok(())
    }

    /// `vkCmdDispatchIndirect`, with a `VkDispatchIndirectCommand` at `offset`.
    ///
    /// # Errors
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// See [`dispatch`](Self::dispatch), for the counts in the buffer at execution.
    #[doc(alias = "ExecuteIndirect")]
    pub unsafe fn dispatch_indirect(&mut self, buffer: &Buffer, offset: u64) -> Result<(), ListError> {
        self.outside()?;
        self.needs_queue(vk::QueueFlags::COMPUTE)?;
        self.arguments::<vk::DispatchIndirectCommand>(buffer, offset, 1, 0)?;
        self.commit(BindPoint::Compute)?;
        // SAFETY: the list is being recorded, outside of rendering, and keeps the buffer. Usage and range were checked.
        // The caller guarantees the rest.
        unsafe { self.core.api.device().cmd_dispatch_indirect(self.pool.main, buffer.handle(), offset) };
        Ok(())
    }

    /// `vkCmdDraw`.
    ///
    /// # Errors
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// A graphics pipeline that matches the attachments is bound, and its dynamic state is set. All resources that its
    /// shaders use are bound or declared, with matching uses. Vertices are within the bound buffers.
    #[doc(alias = "DrawInstanced")]
    pub unsafe fn draw(&mut self, vertices: Range<u32>, instances: Range<u32>) -> Result<(), ListError> {
        self.ready_to_draw()?;
        let (device, count, copies) = (self.core.api.device(), count(&vertices), count(&instances));
        // SAFETY: the list is being recorded, within rendering; the caller guarantees the rest.
        unsafe { device.cmd_draw(self.pool.main, count, copies, vertices.start, instances.start) };
        Ok(())
    }

    /// `vkCmdDrawIndexed`.
    ///
    /// # Errors
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// See [`draw`](Self::draw). An index buffer with these indices is bound.
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
        // SAFETY: the list is being recorded, within rendering; the caller guarantees the rest.
        unsafe { device.cmd_draw_indexed(main, count, copies, indices.start, vertex_offset, first) };
        Ok(())
    }

    /// `vkCmdDrawIndirect`, with `count` commands of type `VkDrawIndirectCommand` from `offset` on, `stride` bytes
    /// apart.
    ///
    /// # Errors
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// See [`draw`](Self::draw), for the contents of the buffer at execution. `multiDrawIndirect` is enabled if `count`
    /// is above 1.
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
        // SAFETY: the list is being recorded, within rendering, and keeps the buffer. Usage and range were checked. The
        // caller guarantees the rest.
        unsafe { device.cmd_draw_indirect(main, buffer.handle(), offset, count, stride) };
        Ok(())
    }

    /// `vkCmdDrawIndexedIndirect`, with `count` commands of type `VkDrawIndexedIndirectCommand` from `offset` on,
    /// `stride` bytes apart.
    ///
    /// # Errors
    /// See [`ListError`]; no work was recorded.
    ///
    /// # Safety
    /// See [`draw_indexed`](Self::draw_indexed) and [`draw_indirect`](Self::draw_indirect).
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
        // SAFETY: the list is being recorded, within rendering, and keeps the buffer. Usage and range were checked. The
        // caller guarantees the rest.
        unsafe { device.cmd_draw_indexed_indirect(main, buffer.handle(), offset, count, stride) };
        Ok(())
    }

    /// Checks, keeps and declares the arguments of `count` indirect commands, `stride` bytes apart.
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
