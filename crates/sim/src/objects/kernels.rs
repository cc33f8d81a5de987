//! The closures that stand for shaders.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::hazards::Actor;
use crate::objects::commands::ImageLayouts;
use crate::objects::commands::bindings::Bindings;
use crate::objects::commands::draw::{Draw, DrawSpan};
use crate::objects::pipelines::{PipelineProgram, Shader};
use crate::objects::state::DeviceObject;

/// The closure that stands for a shader.
pub(crate) type Closure = dyn Fn(&mut Kernel<'_>) + Send + Sync;

/// Closures by the names of their entry points.
#[derive(Default)]
pub(crate) struct Kernels(pub(crate) RwLock<BTreeMap<String, Arc<Closure>>>);

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl Kernels {
    pub(crate) fn get(&self, entry_point: &str) -> Option<Arc<Closure>> {
        self.0.read().get(entry_point).cloned()
    }
}

/// One dispatch or draw, as the closure that stands for its shader sees it. See
/// [`Gpu::set_kernel`](crate::Gpu::set_kernel).
///
/// A wrong descriptor is reported, and reads through it give zeroes. In a draw `vkCmdDraw` takes the place of
/// `vkCmdDispatch`, but for what concerns heaps:
///
/// | report | meaning |
/// |---|---|
/// | `VUID-vkCmdDispatch-None-08600` | nothing is bound at the set's number, or with a layout that is not compatible |
/// | `VUID-vkCmdDispatch-None-08115`, `VUID-vkCmdDispatch-None-08117` | a set is bound, and the pipeline is for descriptor buffers, or the other way round |
/// | `VUID-vkCmdDispatch-None-11308`, `VUID-vkCmdDispatch-None-11309` | no heap is bound, or the descriptor is outside of it or in its reserved range |
/// | `VUID-VkComputePipelineCreateInfo-flags-11312` | the pipeline has no mapping for the binding |
/// | `SUBLET-descriptor-binding` | the pipeline's layout has no such binding or element |
/// | `SUBLET-descriptor-unwritten` | nothing was written there |
/// | `SUBLET-descriptor-garbage` | the bytes in the descriptor buffer are no descriptor |
/// | `SUBLET-descriptor-type` | the descriptor is of another type than the binding, or than what is asked for |
/// | `SUBLET-descriptor-destroyed` | what it describes is destroyed, or has no memory |
/// | `SUBLET-descriptor-range` | bytes outside of what it describes are read or written |
/// | `SUBLET-descriptor-read-only` | something is written to a uniform buffer, or to an image that is no storage image |
/// | `VUID-vkCmdDraw-None-09600` | an image is not in the layout of its descriptor |
/// | `SUBLET-address` | no buffer with a device address lies at the address |
///
/// ```
/// use sublet_sim::{Gpu, Kernel, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// // Set 0, binding 1, element 0.
/// gpu.set_kernel("clear", |kernel: &mut Kernel<'_>| {
///     let buffer = kernel.buffer(0, 1, 0);
///     buffer.write(0, &vec![0; buffer.len() as usize]);
/// });
/// ```
pub struct Kernel<'a> {
    pub(crate) device: &'a DeviceObject,
    pub(crate) program: &'a PipelineProgram,
    pub(crate) shader: &'a Shader,
    pub(crate) bindings: &'a Bindings,
    pub(crate) layouts: ImageLayouts,
    pub(crate) groups: [u32; 3],
    /// The draw; `None` in a dispatch.
    pub(crate) drawn: Option<Drawn<'a>>,
    /// The call that its accesses belong to, if hazards are looked for.
    pub(crate) actor: Option<Actor>,
}

/// A draw that runs.
#[derive(Clone, Copy)]
pub(crate) struct Drawn<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) span: DrawSpan,
}
