//! Shader modules, pipelines and pipeline caches.
//!
//! Nothing is compiled: a shader does what a closure of the test does, see `kernel`. Of a module, only the size and the
//! first word are read. Pipelines are immutable, and share their program with the command buffers that bind them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use super::graphics;
use crate::facts::arithmetic::{index, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::ffi;
use crate::objects::entry::{checked, entries, on_device};
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::pipelines::{Pipeline, PipelineProgram, Shader};
use crate::objects::state::{DeviceObject, DeviceState};
use crate::pipelines::descriptor_heap;

entries! {
    Device result vk::PFN_vkCreateShaderModule = create_module: core 0 "vkCreateShaderModule";
    Device void vk::PFN_vkDestroyShaderModule = destroy_module: core 0 "vkDestroyShaderModule";
    Device result vk::PFN_vkCreateComputePipelines = create_compute: core 0 "vkCreateComputePipelines";
    Device result vk::PFN_vkCreateGraphicsPipelines = graphics::create: core 0 "vkCreateGraphicsPipelines";
    Device void vk::PFN_vkDestroyPipeline = destroy: core 0 "vkDestroyPipeline";
    Device result vk::PFN_vkCreatePipelineCache = create_cache: core 0 "vkCreatePipelineCache";
    Device void vk::PFN_vkDestroyPipelineCache = destroy_cache: core 0 "vkDestroyPipelineCache";
    Device result vk::PFN_vkGetPipelineCacheData = cache_data: core 0 "vkGetPipelineCacheData";
    Device result vk::PFN_vkMergePipelineCaches = merge_caches: core 0 "vkMergePipelineCaches";
}

/// The first word of every SPIR-V module, in the order of bytes of the host that runs it.
const SPIRV_MAGIC: u32 = 0x0723_0203;

unsafe extern "system" fn create_module(
    device: vk::Device,
    p_info: *const vk::ShaderModuleCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_module: *mut vk::ShaderModule,
) -> vk::Result {
    checked(device, "vkCreateShaderModule", |device| {
        // SAFETY: VUID-vkCreateShaderModule-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateShaderModule-pCreateInfo-parameter") }?;
        // SAFETY: VUID-VkShaderModuleCreateInfo-pCode-parameter.
        unsafe { check_code(info) }?;
        let insert = |state: &mut DeviceState, handle, host| {
            state.pipelines.modules.insert(handle, host);
        };
        // SAFETY: 1: VUID-vkCreateShaderModule-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateShaderModule-pShaderModule-parameter.
        Ok(unsafe { host::create(device, callbacks, p_module, insert) })
    })
}

/// Checks whether the code of a module looks like SPIR-V: whole words, the first of which is the magic number.
///
/// # Safety
///
/// `info` is valid: its code is NULL, or as long as it says.
unsafe fn check_code(info: &vk::ShaderModuleCreateInfo<'_>) -> Result<(), Broken> {
    let size = info.code_size;
    refuse_if!(size == 0 => "VUID-VkShaderModuleCreateInfo-codeSize-01085", "codeSize is 0");
    refuse_if!(size % 4 != 0 => "VUID-VkShaderModuleCreateInfo-codeSize-08735",
        "codeSize is {size}, no multiple of 4");
    // SAFETY: the promise of `check_code`: NULL, or `codeSize` bytes, which are a word at least.
    match unsafe { chain::input(info.p_code) } {
        Some(&SPIRV_MAGIC) => Ok(()),
        Some(word) => {
            let text = format!("the first word is {word:#x}, and SPIR-V begins with {SPIRV_MAGIC:#x}");
            Err(("VUID-VkShaderModuleCreateInfo-pCode-07912", text))
        }
        None => Err(("VUID-VkShaderModuleCreateInfo-pCode-parameter", "pCode is NULL".to_owned())),
    }
}

destroys! {
    fn destroy_module(module: vk::ShaderModule) = "vkDestroyShaderModule",
    ["shaderModule-parameter", "shaderModule-01092", "shaderModule-01093"],
    |device, state, _| state.pipelines.modules.remove(&module)
}

unsafe extern "system" fn create_compute(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    p_infos: *const vk::ComputePipelineCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_pipelines: *mut vk::Pipeline,
) -> vk::Result {
    on_device(device, "vkCreateComputePipelines", |device| {
        let rules = [
            "VUID-vkCreateComputePipelines-createInfoCount-arraylength",
            "VUID-vkCreateComputePipelines-pipelineCache-parameter",
        ];
        // SAFETY: VUID-vkCreateComputePipelines-pCreateInfos-parameter.
        let infos = unsafe { chain::array(p_infos, count) };
        let programs = check_cache(device, cache, infos.is_empty(), rules).and_then(|()| {
            // SAFETY: VUID-vkCreateComputePipelines-pCreateInfos-parameter: a valid structure.
            infos.iter().map(|info| unsafe { compute(device, info) }).collect()
        });
        // SAFETY: VUID-vkCreateComputePipelines-pAllocator-parameter; no lock is held; and `pPipelines` has
        // `createInfoCount` elements: VUID-vkCreateComputePipelines-pPipelines-parameter.
        unsafe { make(device, programs, infos.len(), callbacks, p_pipelines) }
    })
}

/// Makes pipelines of programs, or says why there are none.
///
/// # Safety
///
/// 1. `callbacks` is NULL or valid.
/// 2. No lock of the driver is held.
/// 3. `p_pipelines` is NULL, or valid for a write of `count` elements.
pub(super) unsafe fn make(
    device: &DeviceObject,
    programs: Result<Vec<PipelineProgram>, Broken>,
    count: usize,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_pipelines: *mut vk::Pipeline,
) -> vk::Result {
    // Pipelines that could not be made are NULL.
    for position in 0..count {
        // SAFETY: 3 of `make`.
        unsafe { chain::output(p_pipelines.wrapping_add(position), vk::Pipeline::null()) };
    }
    let programs = match programs {
        Ok(programs) => programs,
        Err((rule, text)) => return device.refuse(rule, text),
    };
    for (position, program) in programs.into_iter().enumerate() {
        // SAFETY: 1 and 2 of `make`.
        let host = match unsafe { host::take(callbacks) } {
            Ok(host) => host,
            Err(error) => return error,
        };
        let handle = device.gpu_state.handle();
        let pipeline = Pipeline { program: Arc::new(program), in_use: 0, host };
        device.state.lock().pipelines.pipelines.insert(handle, pipeline);
        // SAFETY: 3 of `make`.
        unsafe { chain::output(p_pipelines.wrapping_add(position), handle) };
    }
    vk::Result::SUCCESS
}

pub(super) fn check_cache(
    device: &DeviceObject,
    cache: vk::PipelineCache,
    empty: bool,
    [some, known]: [&'static str; 2],
) -> Result<(), Broken> {
    refuse_if!(empty => some, "createInfoCount is 0");
    let state = device.state.lock();
    refuse_if!(!cache.is_null() && !state.pipelines.caches.contains_key(&cache)
        => known, "{}", state.missing(device, cache));
    Ok(())
}

/// The program of a compute pipeline.
///
/// # Safety
///
/// `info` is valid, and so is what it points to.
unsafe fn compute(
    device: &DeviceObject,
    info: &vk::ComputePipelineCreateInfo<'_>,
) -> Result<PipelineProgram, Broken> {
    let stage = &info.stage;
    refuse_if!(stage.stage != vk::ShaderStageFlags::COMPUTE => "VUID-VkComputePipelineCreateInfo-stage-00701",
        "the stage is {:?}", stage.stage);
    // SAFETY: the promise of `compute`: a valid chain (VUID-VkComputePipelineCreateInfo-pNext-pNext).
    let flags = unsafe { all_flags(info.flags, info.p_next) };
    let rules =
        ["VUID-VkComputePipelineCreateInfo-flags-11311", "VUID-VkComputePipelineCreateInfo-layout-parameter"];
    // SAFETY: the promise of `compute`.
    unsafe { program(device, flags, std::slice::from_ref(stage), info.layout, rules) }
}

/// The flags of a pipeline: newer ones replace the old ones.
///
/// # Safety
///
/// The chain is valid.
pub(super) unsafe fn all_flags(flags: vk::PipelineCreateFlags, next: *const c_void) -> u64 {
    // SAFETY: the promise of `all_flags`.
    let newer = unsafe { chain::find::<vk::PipelineCreateFlags2CreateInfoKHR<'_>>(next) };
    newer.map_or(u64::from(flags.as_raw()), |newer| newer.flags.as_raw())
}

/// The program of these shaders. The rules are those of a layout where there are heaps, and of one that is unknown.
///
/// # Safety
///
/// The stages are valid, and so is what they point to.
pub(super) unsafe fn program(
    device: &DeviceObject,
    flags: u64,
    stages: &[vk::PipelineShaderStageCreateInfo<'_>],
    layout: vk::PipelineLayout,
    [layout_of_heaps, unknown]: [&'static str; 2],
) -> Result<PipelineProgram, Broken> {
    let with_heaps = flags & ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP.as_raw() != 0;
    refuse_if!(with_heaps && !layout.is_null() => layout_of_heaps,
        "the pipeline is for heaps, and has a layout");
    let mut shaders = Vec::new();
    for stage in stages {
        // SAFETY: the promise of `program`.
        shaders.push(unsafe { shader(device, stage, with_heaps) }?);
    }
    shaders.sort_by_key(|shader| shader.stage);
    let state = device.state.lock();
    let layout = match state.descriptors.pipeline_layouts.get(&layout) {
        Some(found) => Arc::clone(&found.layout),
        None if with_heaps => Arc::default(),
        None => return Err((unknown, state.missing(device, layout))),
    };
    let descriptor_buffer = flags & u64::from(vk::PipelineCreateFlags::DESCRIPTOR_BUFFER_EXT.as_raw()) != 0;
    Ok(PipelineProgram { layout, descriptor_buffer, shaders, drawing: None })
}

/// # Safety
///
/// `stage` is valid, and so is what it points to.
unsafe fn shader(
    device: &DeviceObject,
    stage: &vk::PipelineShaderStageCreateInfo<'_>,
    with_heaps: bool,
) -> Result<Shader, Broken> {
    refuse_if!(stage.p_name.is_null() => "VUID-VkPipelineShaderStageCreateInfo-pName-parameter",
        "pName is NULL");
    // SAFETY: not NULL, and so a null-terminated string (VUID-VkPipelineShaderStageCreateInfo-pName-parameter).
    let entry_point = unsafe { CStr::from_ptr(stage.p_name) }.to_string_lossy().into_owned();
    if stage.module.is_null() {
        // SAFETY: the promise of `shader`: a valid chain (VUID-VkPipelineShaderStageCreateInfo-pNext-pNext).
        let Some(code) = (unsafe { chain::find::<vk::ShaderModuleCreateInfo<'_>>(stage.p_next) }) else {
            let text = "module is NULL, and no VkShaderModuleCreateInfo is in the chain".to_owned();
            return Err(("VUID-VkPipelineShaderStageCreateInfo-stage-08771", text));
        };
        // SAFETY: VUID-VkShaderModuleCreateInfo-pCode-parameter.
        unsafe { check_code(code) }?;
    } else {
        let state = device.state.lock();
        refuse_if!(!state.pipelines.modules.contains_key(&stage.module)
            => "VUID-VkPipelineShaderStageCreateInfo-module-parameter",
            "{}", state.missing(device, stage.module));
    }
    // SAFETY: the promise of `shader`: VUID-VkPipelineShaderStageCreateInfo-pSpecializationInfo-parameter.
    let constants = unsafe { constants(stage.p_specialization_info) };
    let mut heap = None;
    if with_heaps {
        let Some(limits) = crate::memory::usage::heap_limits(device) else {
            let text = "DESCRIPTOR_HEAP is set, and the feature descriptorHeap is not enabled".to_owned();
            return Err(("VUID-VkPipelineCreateFlags2CreateInfo-flags-parameter", text));
        };
        let alignment = device.profile().limits.min_uniform_buffer_offset_alignment;
        // SAFETY: the promise of `shader`: VUID-VkPipelineShaderStageCreateInfo-pNext-pNext.
        heap = Some(unsafe { descriptor_heap::read_mappings(&limits, alignment, stage.p_next) }?);
    }
    Ok(Shader { stage: stage.stage, entry_point, heap, constants })
}

/// The values of specialization constants.
///
/// # Safety
///
/// `info` is NULL or valid, and so is what it points to.
unsafe fn constants(info: *const vk::SpecializationInfo<'_>) -> BTreeMap<u32, Vec<u8>> {
    // SAFETY: the promise of `constants`: NULL or valid.
    let Some(info) = (unsafe { chain::input(info) }) else {
        return BTreeMap::new();
    };
    // SAFETY: VUID-VkSpecializationInfo-pMapEntries-parameter.
    let entries = unsafe { chain::array(info.p_map_entries, info.map_entry_count) };
    let size = u32::try_from(info.data_size).unwrap_or(u32::MAX);
    // SAFETY: VUID-VkSpecializationInfo-pData-parameter: `dataSize` bytes.
    let data = unsafe { chain::array(info.p_data.cast::<u8>(), size) };
    let value = |entry: &vk::SpecializationMapEntry| {
        let start = index(entry.offset);
        Some((entry.constant_id, data.get(start..start.checked_add(entry.size)?)?.to_vec()))
    };
    entries.iter().filter_map(value).collect()
}

destroys! {
    fn destroy(pipeline: vk::Pipeline) = "vkDestroyPipeline",
    ["pipeline-parameter", "pipeline-00766", "pipeline-00767"],
    |device, state, name| {
        let found = state.pipelines.pipelines.remove(&pipeline)?;
        if found.in_use > 0 {
            let text = format!("{name} is destroyed, and a submission still uses it");
            device.report("VUID-vkDestroyPipeline-pipeline-00765", text);
        }
        Some(found.host)
    }
}

unsafe extern "system" fn create_cache(
    device: vk::Device,
    _: *const vk::PipelineCacheCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_cache: *mut vk::PipelineCache,
) -> vk::Result {
    on_device(device, "vkCreatePipelineCache", |device| {
        let insert = |state: &mut DeviceState, handle, host| {
            state.pipelines.caches.insert(handle, host);
        };
        // SAFETY: 1: VUID-vkCreatePipelineCache-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreatePipelineCache-pPipelineCache-parameter.
        unsafe { host::create(device, callbacks, p_cache, insert) }
    })
}

destroys! {
    fn destroy_cache(cache: vk::PipelineCache) = "vkDestroyPipelineCache",
    ["pipelineCache-parameter", "pipelineCache-00771", "pipelineCache-00772"],
    |device, state, _| state.pipelines.caches.remove(&cache)
}

/// The header that every cache begins with (`VkPipelineCacheHeaderVersionOne`). Here it is all that a cache has.
fn header(device: &DeviceObject) -> Vec<u8> {
    let profile = device.profile();
    let mut uuid = [0; 16];
    for (to, from) in uuid.iter_mut().zip(profile.name.bytes()) {
        *to = from;
    }
    let version = vk::PipelineCacheHeaderVersion::ONE.as_raw().to_le_bytes();
    let words =
        [32_u32.to_le_bytes(), version, profile.vendor_id.to_le_bytes(), profile.device_id.to_le_bytes()];
    words.iter().flatten().chain(&uuid).copied().collect()
}

unsafe extern "system" fn cache_data(
    device: vk::Device,
    cache: vk::PipelineCache,
    p_size: *mut usize,
    p_data: *mut c_void,
) -> vk::Result {
    on_device(device, "vkGetPipelineCacheData", |device| {
        let state = device.state.lock();
        if !state.pipelines.caches.contains_key(&cache) {
            let text = state.missing(device, cache);
            return device.refuse("VUID-vkGetPipelineCacheData-pipelineCache-parameter", text);
        }
        let data = header(device);
        // SAFETY: VUID-vkGetPipelineCacheData-pDataSize-parameter.
        let Some(size) = (unsafe { p_size.as_mut() }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        if p_data.is_null() {
            *size = data.len();
            return vk::Result::SUCCESS;
        }
        if widen(*size) < widen(data.len()) {
            // A part of the header is never written.
            *size = 0;
            return vk::Result::INCOMPLETE;
        }
        *size = data.len();
        // SAFETY: the pointer has `*pDataSize` bytes (VUID-vkGetPipelineCacheData-pData-parameter), which is enough.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), p_data.cast(), data.len()) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn merge_caches(
    device: vk::Device,
    target: vk::PipelineCache,
    count: u32,
    p_sources: *const vk::PipelineCache,
) -> vk::Result {
    checked(device, "vkMergePipelineCaches", |device| {
        // SAFETY: VUID-vkMergePipelineCaches-pSrcCaches-parameter.
        let sources = unsafe { chain::array(p_sources, count) };
        let state = device.state.lock();
        let rules = [
            "VUID-vkMergePipelineCaches-dstCache-parameter",
            "VUID-vkMergePipelineCaches-pSrcCaches-parameter",
        ];
        let all = std::iter::once((target, rules[0])).chain(sources.iter().map(|&cache| (cache, rules[1])));
        for (cache, rule) in all {
            state.known(device, cache, state.pipelines.caches.get(&cache), rule)?;
        }
        Ok(vk::Result::SUCCESS)
    })
}
