//! A Vulkan driver in Rust, in process, on host memory: tests memory code without a GPU.
//!
//! A [`Gpu`] is an instance, a device and a queue of a simulated GPU. Its objects are ash's own, and every call goes
//! through a C function pointer from `vkGetInstanceProcAddr`, as with any driver. It simulates one of the real GPUs
//! of [`profiles`], with that GPU's heaps, memory types, limits and requirements.
//!
//! # What it does
//!
//! - **Memory is real** host memory, which takes no space until it is written. Heap sizes and
//!   `maxMemoryAllocationCount` are enforced. Copies and fills on a queue move the bytes.
//! - **Memory that is not coherent has two sides**: what `vkMapMemory` returns, and what the device sees. Only
//!   `vkFlushMappedMemoryRanges` and `vkInvalidateMappedMemoryRanges` copy between them, so a forgotten flush shows as
//!   wrong bytes. [`Gpu::read_memory`] reads the device's side.
//! - **Wrong use is reported** as the validation layers do, with the valid-usage identifier of the Vulkan
//!   specification: [`Gpu::messages`], [`Gpu::assert_silent`]. A call that is reported does nothing and returns
//!   `VK_ERROR_VALIDATION_FAILED_EXT`, if it has a result. An object that is destroyed at the wrong time is still
//!   destroyed. A stale handle is reported, and never dereferenced. Reports also go to the program's own
//!   `VkDebugUtilsMessengerEXT` and to `tracing`; unread ones go to standard error.
//! - **It reports what validation layers cannot see**, because it knows the place of every resource:
//!
//!   | report | meaning |
//!   |---|---|
//!   | `SUBLET-overlap` | two resources share bytes, and neither [`Gpu::allow_aliasing`], [`Gpu::declare_aliasing`] nor `VK_IMAGE_CREATE_ALIAS_BIT` on both allows it |
//!   | `SUBLET-granularity` | a linear and an optimal resource share a page of `bufferImageGranularity` |
//!   | `SUBLET-shared-atom` | the host flushes an atom of `nonCoherentAtomSize` that holds bytes of two resources |
//!   | `SUBLET-vkWaitForFences-never-signaled`, `SUBLET-vkWaitSemaphores-never-signaled`, `SUBLET-vkQueueWaitIdle-stuck`, `SUBLET-vkDeviceWaitIdle-stuck`, `SUBLET-vkCmdWaitEvents-never-set` | the program waits for a signal that no submission will send |
//!   | `SUBLET-vkFreeMemory-callbacks` | memory was allocated with allocation callbacks and freed without, or the reverse |
//!   | `SUBLET-not-sparse`, `SUBLET-sparse-page`, `SUBLET-sparse-image` | `vkQueueBindSparse` for a resource that is not sparse, or for less than whole pages |
//!   | `SUBLET-update-while-pending` | a descriptor with `UPDATE_AFTER_BIND` and without `UPDATE_UNUSED_WHILE_PENDING` is updated after a submission that still uses its set |
//!   | `SUBLET-no-kernel`, `SUBLET-kernel-panicked` | a dispatch for which there is no closure, or whose closure panicked |
//!   | `SUBLET-descriptor-binding`, and others that [`Kernel`] lists | a shader reads a descriptor that is missing or of the wrong kind |
//!   | `SUBLET-descriptor-too-many` | `vkGetDescriptorEXT` was called for more than 2^24 different descriptors |
//!   | `SUBLET-vkGetDescriptorSetLayoutBindingOffsetEXT-binding` | the layout has no such binding |
//!   | `SUBLET-unsupported-clear`, `SUBLET-unsupported-blit`, `SUBLET-unsupported-resolve` | a format that the simulated device cannot clear, convert or average: its channels are not whole bytes |
//!   | `SUBLET-unsupported-rendering` | rendering that is suspended and resumed; passes of several subpasses, with input attachments, or in secondary command buffers; framebuffers without images |
//!   | `SUBLET-unsupported-pipeline` | dynamic state other than viewports and scissors |
//!   | `SUBLET-exclusive-ownership` | a queue family uses, or releases, a resource that another family owns; only with [`GpuBuilder::hazards`] |
//!   | `SUBLET-transfer-failed` | the host has no memory left for the device's |
//!   | `SUBLET-memory-limit` | device memory exceeds [`GpuBuilder::memory_limit`], or `SUBLET_SIM_MEMORY_LIMIT` is not a number |
//!   | `SUBLET-profile` | `SUBLET_SIM_PROFILE` names neither a GPU nor a readable file with one |
//!   | `SUBLET-internal` | a bug in the simulated device itself |
//!
//! - **Descriptors**: layouts, pools, sets, update templates, push descriptors and push constants, with the rules for
//!   what submissions still use. Pools refuse as the profile's driver does, which may be never
//!   ([`DescriptorPoolPolicy`]). [`Gpu::descriptor_pool_overruns`] counts sets and descriptors beyond the sizes of
//!   their pools, and [`DescriptorQuirk`] selects known faults of drivers. Tests can read the contents of sets and the
//!   bindings of command buffers: [`Gpu::descriptor`], [`Gpu::bound_set`], [`Gpu::bound_descriptor`],
//!   [`Gpu::push_constants`].
//! - **Descriptor buffers** (`VK_EXT_descriptor_buffer`) with every driver's own sizes and alignments. The bindings of
//!   a set are not in the order of their numbers, and none begins at 0: Vulkan promises neither. The device recognises
//!   a descriptor by its bytes, so an overwritten or unwritten one is not taken for another.
//! - **Descriptor heaps** (`VK_EXT_descriptor_heap`) where the profile has them, as `nvidia-rtx-5070-ti` does, or the
//!   GPU is [given them](GpuBuilder::descriptor_heap). Resource and sampler heaps with the driver's reserved ranges,
//!   push data, and the mapping of sets and bindings with every source except shader records. Secondary command buffers
//!   inherit heaps.
//! - **Images**: copies, clears, blits of either filter, resolves, and rendering, whose attachments are cleared,
//!   loaded, stored and resolved: dynamic rendering, and render passes of one subpass, which also change layouts.
//! - **Shaders are closures**: [`Gpu::set_kernel`] sets the closure of an entry point. A dispatch or a draw runs it in
//!   queue order, with the current bindings: sets, push descriptors, descriptor buffers, push constants, device
//!   addresses. Descriptors are checked when a shader reads them, see [`Kernel`]. A draw also has vertices, indices and
//!   attachments, see [`KernelDraw`], and no rasterizer.
//! - **Work in flight**: submissions run at once, or when the program waits for them, see [`Gpu::hold_submissions`];
//!   until then, destroying an object that they use is reported. [`GpuBuilder::queues`] adds queues, each with its own
//!   order, and [`GpuBuilder::family`] queue families.
//! - **Hazards**, if [`GpuBuilder::hazards`] is set. Each access is compared with those before it. Accesses are those
//!   of copies, fills, updates, clears, blits, resolves, indirect dispatches, attachments, of a draw's commands,
//!   indices and vertices, and of a [`Kernel`]'s buffers and images. Buffers are compared by bytes, images by
//!   subresources and areas, and images in shaders by subresources. Barriers and events of either interface, the
//!   dependencies of render passes, semaphores with their stages, and waits of the host order accesses, also across
//!   command buffers, submissions and queues. Two unordered accesses are reported under the layers' names
//!   (`SYNC-HAZARD-READ-AFTER-WRITE`, `-WRITE-AFTER-READ`, `-WRITE-AFTER-WRITE`, and `-RACING-` on two queues). A
//!   report has both calls, the shared part, and the missing link: a semaphore, an execution dependency, an
//!   availability or a visibility. The ownership of queue families is checked too. The validation layer agrees on a
//!   common list of programs. The accesses of a shader are those that its closure makes, not those that its descriptors
//!   allow. These accesses are not checked: by address, in descriptor heaps, inline, to the descriptors themselves, by
//!   the host, and to images that share memory with another resource.
//! - **Faults on request**: [`Gpu::faults`] fails the n-th call of a function, delays calls, reports budgets, loses the
//!   device.
//! - **It counts**: [`Gpu::calls`], [`Gpu::live`].
//!
//! # How to test your own code with it
//!
//! ```
//! use ash::vk;
//! use sublet_sim::{Gpu, profiles};
//!
//! /// The code under test: memory that the host writes, filled with a byte.
//! fn upload(device: &ash::Device, kind: u32, byte: u8) -> Result<vk::DeviceMemory, vk::Result> {
//!     let info = vk::MemoryAllocateInfo::default().allocation_size(256).memory_type_index(kind);
//!     let memory = unsafe { device.allocate_memory(&info, None)? };
//!     let flags = vk::MemoryMapFlags::empty();
//!     match unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, flags) } {
//!         Ok(data) => {
//!             unsafe { data.cast::<u8>().write_bytes(byte, 256) };
//!             let range = vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE);
//!             unsafe { device.flush_mapped_memory_ranges(&[range])? };
//!             unsafe { device.unmap_memory(memory) };
//!             Ok(memory)
//!         }
//!         Err(error) => {
//!             unsafe { device.free_memory(memory, None) };
//!             Err(error)
//!         }
//!     }
//! }
//!
//! let visible = vk::MemoryPropertyFlags::HOST_VISIBLE;
//! for profile in profiles::ALL {
//!     let gpu = Gpu::new(profile);
//!     let kind = profile.types.iter().position(|kind| kind.flags.contains(visible)).unwrap() as u32;
//!     // The upload succeeds, and the device sees the bytes.
//!     let memory = upload(gpu.device(), kind, 7).unwrap();
//!     assert_eq!(unsafe { gpu.read_memory(memory, 0, 256) }.unwrap(), [7; 256]);
//!     unsafe { gpu.device().free_memory(memory, None) };
//!     // After a failure nothing is left behind.
//!     gpu.faults().fail_nth("vkMapMemory", 0, vk::Result::ERROR_MEMORY_MAP_FAILED);
//!     assert_eq!(upload(gpu.device(), kind, 7), Err(vk::Result::ERROR_MEMORY_MAP_FAILED));
//!     assert!(gpu.live().is_empty());
//!     // No rule was broken.
//!     gpu.assert_silent();
//! }
//! ```
//!
//! A program that makes instance and device itself, or is not written in Rust, starts from [`get_instance_proc_addr`];
//! the environment variables `SUBLET_SIM_PROFILE` and `SUBLET_SIM_API_VERSION` choose the GPU. To measure an allocator
//! without a driver's cost, there is [`NullGpu`].
//!
//! # What it does not simulate
//!
//! - Rasterization, and functions that do not concern memory, descriptors, dispatches or draws: `vkGetDeviceProcAddr`
//!   returns null for them. Only the first word of a shader module is read.
//! - The effect of samplers on texels, and the part of an image that a view selects. Only their lifetimes are checked.
//! - Null descriptors, acceleration structures in descriptors, pools that may exceed their sizes
//!   (`VK_NV_descriptor_pool_overallocation`), and embedded or YCbCr samplers.
//! - Sparse images and sparse residency, protected memory beyond its flags, and device groups of more than one device.
//!   `vkQueueBindSparse` binds pages of sparse buffers at once, not in queue order.
//! - Memory shared with another process or API. Within one process, memory imported from a file descriptor has the
//!   bytes of the exported memory while that lives. Other handle types are only recorded, see [`MemoryInfo`].
//! - Eviction: a full heap refuses. [`Faults::set_budget`] sets budgets.
//! - Time, except by [`Faults::delay`].
//! - Protection from races of the program: two threads that write the same bytes of mapped memory race, as on a GPU.
//! - Most valid usage that concerns neither memory nor descriptors, and the static use of descriptors by shaders: here
//!   a set may lack descriptors that no shader reads. Use the validation layers for both.
#![deny(unsafe_code)]

mod commands;
mod driver;
mod execution;
mod facts;
mod gpu;
mod hazards;
mod memory;
mod objects;
mod pipelines;
#[cfg(test)]
mod tests;

pub use driver::environment::{MEMORY_LIMIT_VARIABLE, PROFILE_VARIABLE, VERSION_VARIABLE};
pub use execution::kernel::{KernelBuffer, KernelDraw, KernelImage};
pub use facts::format;
pub use facts::machine::host_memory;
pub use facts::profiles;
pub use facts::profiles::pool_policy::{DescriptorPoolPolicy, DescriptorQuirk};
pub use facts::profiles::{DEFAULT_PROFILE, DescriptorHeapLimits, Profile};
pub use gpu::Gpu;
pub use gpu::builder::GpuBuilder;
pub use gpu::faults::Faults;
pub use gpu::live::LiveObjects;
pub use gpu::null::NullGpu;
#[doc(hidden)]
pub use hazards::feed;
pub use objects::descriptors::contents::SimulatedDescriptor;
pub use objects::kernels::Kernel;
pub use objects::log::{AllocateCall, SyncedRange};
pub use objects::memory::MemoryInfo;
pub use objects::messages::Message;

use std::ffi::c_char;

use ash::vk;

/// `vkGetInstanceProcAddr` of a simulated GPU, for programs that make instance and device themselves.
///
/// Each instance is a GPU of its own. Its profile is the one that the environment variable `SUBLET_SIM_PROFILE` names,
/// or that the file holds that it names; else [`DEFAULT_PROFILE`]. Its version of Vulkan is `SUBLET_SIM_API_VERSION`,
/// else the profile's; `SUBLET_SIM_MEMORY_LIMIT` is how much host memory it takes. Reports go to `tracing`, and at the
/// instance's destruction to standard error.
///
/// # Safety
///
/// 1. `p_name` is NULL or a null-terminated string.
/// 2. The function that is returned is called with the type that Vulkan gives its name.
///
/// ```
/// use ash::vk;
/// let loader = ash::StaticFn { get_instance_proc_addr: sublet_sim::get_instance_proc_addr };
/// let entry = unsafe { ash::Entry::from_static_fn(loader) };
/// let instance = unsafe { entry.create_instance(&vk::InstanceCreateInfo::default(), None) }.unwrap();
/// assert_eq!(unsafe { instance.enumerate_physical_devices() }.unwrap().len(), 1);
/// unsafe { instance.destroy_instance(None) };
/// ```
#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    p_name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: 1 and 2 of this function: the two are the same function of Vulkan.
    unsafe { driver::get_instance_proc_addr::<{ driver::environment::ENVIRONMENT }>(instance, p_name) }
}

/// The README's code, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct SimReadme;
