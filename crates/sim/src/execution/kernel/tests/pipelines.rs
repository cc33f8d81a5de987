//! Shader modules, pipelines, caches, and the dispatch itself.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::super::*;
use super::buffers::*;

#[test]
fn a_module_that_is_no_spirv_is_refused() {
    let fixture = KernelFixture::new("lavapipe");
    let wrong = [
        (vec![0x0302_2307], 4, "VUID-VkShaderModuleCreateInfo-pCode-07912"),
        (vec![0x0723_0203], 0, "VUID-VkShaderModuleCreateInfo-codeSize-01085"),
        (vec![0x0723_0203, 0], 6, "VUID-VkShaderModuleCreateInfo-codeSize-08735"),
    ];
    for (words, size, rule) in wrong {
        let info =
            vk::ShaderModuleCreateInfo { code_size: size, p_code: words.as_ptr(), ..Default::default() };
        assert!(unsafe { fixture.device().create_shader_module(&info, None) }.is_err());
        assert_eq!(fixture.reports(), [rule]);
    }
}

#[test]
fn a_dispatch_without_a_kernel_or_a_pipeline_is_reported() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"nothing");
    fixture.run(|commands| unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) });
    assert_eq!(fixture.reports(), ["VUID-vkCmdDispatch-None-08606"]);
    fixture.run(|commands| {
        unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
        unsafe { fixture.device().cmd_dispatch(commands, 65535, 65536, 1) };
    });
    assert_eq!(fixture.reports(), ["VUID-vkCmdDispatch-groupCountY-00387", "SUBLET-no-kernel"]);
}

#[test]
fn a_closure_runs_once_for_a_dispatch_and_not_at_all_for_no_workgroups() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"count");
    let groups = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&groups);
    fixture.gpu.set_kernel("count", move |kernel| {
        counter.fetch_add(kernel.groups().iter().product::<u32>() * 1000 + 1, Ordering::Relaxed);
    });
    fixture.run(|commands| {
        unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { fixture.device().cmd_dispatch(commands, 2, 3, 4) };
        unsafe { fixture.device().cmd_dispatch(commands, 2, 0, 4) };
        unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
    });
    assert_eq!(groups.load(Ordering::Relaxed), 25_002);
}

#[test]
fn commands_run_in_their_order() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"increment");
    let usage =
        Usage::STORAGE_BUFFER | Usage::SHADER_DEVICE_ADDRESS | Usage::TRANSFER_DST | Usage::TRANSFER_SRC;
    let target = fixture.buffer(64, usage);
    let address = target.address;
    fixture.gpu.set_kernel("increment", move |kernel| {
        let memory = kernel.memory(address);
        memory.write_u32(0, memory.read_u32(0) + 1);
    });
    fixture.run(|commands| {
        let device = fixture.device();
        unsafe { device.cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { device.cmd_fill_buffer(commands, target.handle, 0, 64, 10) };
        unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
        let copy = [vk::BufferCopy { src_offset: 0, dst_offset: 32, size: 4 }];
        unsafe { device.cmd_copy_buffer(commands, target.handle, target.handle, &copy) };
        unsafe { device.cmd_dispatch(commands, 1, 1, 1) };
    });
    let bytes = fixture.bytes(target, 64);
    assert_eq!((bytes[0], bytes[32]), (12, 11));
}

#[test]
fn an_indirect_dispatch_reads_its_numbers_when_it_runs() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"count");
    let numbers = fixture.buffer(64, Usage::INDIRECT_BUFFER | Usage::TRANSFER_DST);
    let plain = fixture.buffer(64, Usage::STORAGE_BUFFER);
    let groups = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&groups);
    fixture.gpu.set_kernel("count", move |kernel| {
        counter.fetch_add(kernel.groups().iter().product(), Ordering::Relaxed);
    });
    fixture.run(|commands| {
        let device = fixture.device();
        unsafe { device.cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { device.cmd_fill_buffer(commands, numbers.handle, 16, 12, 5) };
        unsafe { device.cmd_dispatch_indirect(commands, numbers.handle, 16) };
        unsafe { device.cmd_fill_buffer(commands, numbers.handle, 16, 4, 70_000) };
        unsafe { device.cmd_dispatch_indirect(commands, numbers.handle, 16) };
        unsafe { device.cmd_dispatch_indirect(commands, numbers.handle, 56) };
        unsafe { device.cmd_dispatch_indirect(commands, numbers.handle, 2) };
        unsafe { device.cmd_dispatch_indirect(commands, plain.handle, 0) };
    });
    assert_eq!(groups.load(Ordering::Relaxed), 125);
    let expected = [
        "VUID-vkCmdDispatchIndirect-offset-00407",
        "VUID-vkCmdDispatchIndirect-offset-02710",
        "VUID-vkCmdDispatchIndirect-buffer-02709",
        "VUID-VkDispatchIndirectCommand-x-00417",
    ];
    assert_eq!(fixture.reports(), expected);
}

#[test]
fn a_closure_that_panics_is_reported_and_the_queue_goes_on() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipelines = [c"fails", c"works"].map(|name| fixture.pipeline(layout, name));
    fixture.gpu.set_kernel("fails", |kernel| assert_eq!(kernel.groups(), [7; 3]));
    let ran = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&ran);
    fixture.gpu.set_kernel("works", move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    fixture.run(|commands| {
        for pipeline in pipelines {
            unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
            unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
        }
    });
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.reports(), ["SUBLET-kernel-panicked"]);
}

#[test]
fn a_pipeline_in_flight_must_not_be_destroyed() {
    let fixture = KernelFixture::new("lavapipe");
    let layout = fixture.layout(&[]);
    let pipeline = fixture.pipeline(layout, c"nothing");
    fixture.gpu.set_kernel("nothing", |_| {});
    let commands = fixture.record(|commands| {
        unsafe { fixture.device().cmd_bind_pipeline(commands, POINT, pipeline) };
        unsafe { fixture.device().cmd_dispatch(commands, 1, 1, 1) };
    });
    fixture.gpu.hold_submissions(true);
    fixture.submit(commands).unwrap();
    unsafe { fixture.device().destroy_pipeline(pipeline, None) };
    assert_eq!(fixture.reports(), ["VUID-vkDestroyPipeline-pipeline-00765"]);
    fixture.gpu.run_pending();
    // It is gone for what was recorded, too.
    assert!(fixture.submit(commands).is_err());
    assert_eq!(fixture.reports(), ["VUID-vkQueueSubmit-pCommandBuffers-00070"]);
}

#[test]
fn a_pipeline_outlives_its_layout_and_knows_its_constants() {
    let fixture = KernelFixture::new("lavapipe");
    let code = [0x0723_0203];
    let module = unsafe {
        fixture.device().create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&code), None)
    };
    let module = module.unwrap();
    let info = vk::PipelineLayoutCreateInfo::default();
    let layout = unsafe { fixture.device().create_pipeline_layout(&info, None) }.unwrap();
    let entries = [
        vk::SpecializationMapEntry { constant_id: 3, offset: 4, size: 2 },
        vk::SpecializationMapEntry { constant_id: 4, offset: 6, size: 8 },
    ];
    let data = [0, 1, 2, 3, 4, 5, 6, 7];
    let constants = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(STAGE)
        .module(module)
        .name(c"constants")
        .specialization_info(&constants);
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
    let pipelines =
        unsafe { fixture.device().create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }
            .unwrap();
    unsafe { fixture.device().destroy_pipeline_layout(layout, None) };
    unsafe { fixture.device().destroy_shader_module(module, None) };
    fixture.gpu.set_kernel("constants", |kernel| {
        assert_eq!(kernel.entry_point(), "constants");
        assert_eq!(kernel.constant(3), Some(&[4, 5][..]));
        assert_eq!((kernel.constant(4), kernel.constant(0)), (None, None));
    });
    fixture.dispatch(pipelines[0], |_| ());
    unsafe { fixture.device().destroy_pipeline(pipelines[0], None) };
}

#[test]
fn a_pipeline_is_not_made_of_what_is_not_there() {
    let fixture = KernelFixture::new("lavapipe");
    let wrong = fixture.try_pipeline(vk::PipelineLayout::null(), c"main", vk::PipelineCreateFlags::empty());
    assert_eq!(wrong, Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    assert_eq!(fixture.reports(), ["VUID-VkComputePipelineCreateInfo-layout-parameter"]);
    let layout = fixture.layout(&[]);
    fixture.gpu.faults().fail_nth("vkCreateComputePipelines", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let failed = fixture.try_pipeline(layout, c"main", vk::PipelineCreateFlags::empty());
    assert_eq!(failed, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
    let pipeline = fixture.pipeline(layout, c"main");
    unsafe { fixture.device().destroy_pipeline(vk::Pipeline::null(), None) };
    unsafe { fixture.device().destroy_pipeline(pipeline, None) };
    unsafe { fixture.device().destroy_pipeline(pipeline, None) };
    assert_eq!(fixture.reports(), ["VUID-vkDestroyPipeline-pipeline-parameter"]);
}

#[test]
fn what_is_left_of_shaders_is_a_leak() {
    let gpu = crate::Gpu::new(crate::profiles::Profile::by_name("lavapipe").unwrap());
    let info = vk::PipelineCacheCreateInfo::default();
    let _ = unsafe { gpu.device().create_pipeline_cache(&info, None) }.unwrap();
    assert_eq!((gpu.live().pipeline_caches, gpu.live().is_empty()), (1, false));
    let leaks = gpu.finish();
    assert!(leaks.iter().any(|leak| leak.text.contains("PIPELINE_CACHE")), "{leaks:?}");
}

#[test]
fn a_pipeline_cache_has_a_header_and_nothing_else() {
    let fixture = KernelFixture::new("lavapipe");
    let info = vk::PipelineCacheCreateInfo::default();
    let caches = [0; 2].map(|_| unsafe { fixture.device().create_pipeline_cache(&info, None) }.unwrap());
    let data = unsafe { fixture.device().get_pipeline_cache_data(caches[0]) }.unwrap();
    assert_eq!((data.len(), data[0], data[4]), (32, 32, 1));
    unsafe { fixture.device().merge_pipeline_caches(caches[0], &caches[1..]) }.unwrap();
    for cache in caches {
        unsafe { fixture.device().destroy_pipeline_cache(cache, None) };
    }
}
