//! Unmodified wgpu on the stand-in for gpu-allocator. It computes and renders many frames. The tests compare its output
//! and check that every block came from Sublet. They also record all requests and replay them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sublet::trace::{self, CallKind, Replay, Trace};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Bytes that Sublet allocated from the driver, and its number of `VkDeviceMemory` objects, according to its events.
static BYTES: AtomicU64 = AtomicU64::new(0);
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Counts Sublet's blocks.
struct Count;

/// Reads the size of a block from its event.
#[derive(Default)]
struct Size(u64);

impl Visit for Size {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "size" {
            self.0 = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for Count {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let (target, name) = (event.metadata().target(), event.metadata().name());
        if (target, name) != ("sublet::block", "block_created") {
            return;
        }
        let mut size = Size::default();
        event.record(&mut size);
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size.0, Ordering::Relaxed);
    }
}

/// Opens a device on any available Vulkan driver.
fn open() -> (wgpu::Device, wgpu::Queue) {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
        .expect("a Vulkan driver");
    println!("{:?}", adapter.get_info());
    pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        required_limits: wgpu::Limits::downlevel_defaults(),
        ..Default::default()
    }))
    .expect("a device")
}

/// Reads the bytes of a mappable buffer.
fn read(device: &wgpu::Device, buffer: &wgpu::Buffer) -> Vec<u8> {
    buffer.map_async(wgpu::MapMode::Read, .., |result| result.expect("it can be mapped"));
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device is done");
    let bytes = buffer.get_mapped_range(..).expect("it is mapped").to_vec();
    buffer.unmap();
    bytes
}

const NUMBERS: u32 = 4096;

const COMPUTE: &str = "
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    output[id.x] = input[id.x] * input[id.x] + 1u;
}";

/// Squares numbers on the device.
fn compute(device: &wgpu::Device, queue: &wgpu::Queue, frame: u32) {
    let buffer = |label, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: u64::from(NUMBERS) * 4,
            usage,
            mapped_at_creation: false,
        })
    };
    let input = buffer("input", wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let output = buffer("output", wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let back = buffer("back", wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let numbers: Vec<u32> = (0..NUMBERS).map(|number| number + frame).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    queue.write_buffer(&input, 0, &bytes);

    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(COMPUTE.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
        ],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(NUMBERS / 64, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &back, 0, u64::from(NUMBERS) * 4);
    queue.submit([encoder.finish()]);

    let found = read(device, &back);
    let words = found.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    for (number, square) in numbers.iter().zip(words) {
        assert_eq!(square, number.wrapping_mul(*number).wrapping_add(1), "frame {frame}");
    }
}

const SIDE: u32 = 256;

const RENDER: &str = "
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var nearest: sampler;
struct Corner { @builtin(position) position: vec4<f32>, @location(0) uv: vec2<f32> }
@vertex
fn corner(@builtin(vertex_index) index: u32) -> Corner {
    // One triangle that covers everything.
    let uv = vec2<f32>(f32((index << 1u) & 2u), f32(index & 2u));
    return Corner(vec4<f32>(uv * vec2(2.0, -2.0) + vec2(-1.0, 1.0), 0.0, 1.0), uv);
}
@fragment
fn colour(in: Corner) -> @location(0) vec4<f32> {
    return textureSample(image, nearest, in.uv);
}";

/// Uploads a texture, draws it over another one, and reads that back.
fn render(device: &wgpu::Device, queue: &wgpu::Queue, frame: u32) {
    let texture = |label, usage| {
        device.create_texture(&wgpu::TextureDescriptor {
            label: Some(label),
            size: wgpu::Extent3d { width: SIDE, height: SIDE, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: wgpu::TextureFormat::Rgba8Unorm,
            usage,
            view_formats: &[],
        })
    };
    let source = texture("source", wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST);
    let target = texture("target", wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC);
    let pixels: Vec<u8> = (0..SIDE * SIDE)
        .flat_map(|pixel| {
            [pixel.to_le_bytes()[0], (pixel >> 8).to_le_bytes()[0], frame.to_le_bytes()[0], 255]
        })
        .collect();
    let layout =
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(SIDE * 4), rows_per_image: None };
    queue.write_texture(source.as_image_copy(), &pixels, layout, source.size());

    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(RENDER.into()),
    });
    let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: None,
        layout: None,
        vertex: wgpu::VertexState {
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: Default::default(),
        depth_stencil: None,
        multisample: Default::default(),
        fragment: Some(wgpu::FragmentState {
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            targets: &[Some(wgpu::TextureFormat::Rgba8Unorm.into())],
        }),
        multiview_mask: None,
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::TextureView(&source.create_view(&Default::default())),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: wgpu::BindingResource::Sampler(&device.create_sampler(&Default::default())),
            },
        ],
    });
    let back = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("pixels"),
        size: u64::from(SIDE * SIDE) * 4,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let view = target.create_view(&Default::default());
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::RED),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
    let to = wgpu::TexelCopyBufferInfo { buffer: &back, layout };
    encoder.copy_texture_to_buffer(target.as_image_copy(), to, target.size());
    queue.submit([encoder.finish()]);
    assert!(read(device, &back) == pixels, "frame {frame}: what is drawn is what was uploaded");
}

/// Number of times that each of the tests' own buffers and textures is created.
const FRAMES: u32 = 100;

/// Checks that the recording holds all of wgpu's requests. Its replay allocates as many blocks from the driver.
fn replay(path: &Path, (bytes, blocks): (u64, u64)) {
    let trace = Trace::read(&std::fs::read(path).expect("a recording")).expect("a whole trace");
    println!("{} events of {:?} in {}", trace.records.len(), trace.header.program, path.display());
    let named = |name: &str| {
        let is_it = |event: &trace::Event| match event {
            trace::Event::Allocate(made) => made.wanted.name.as_deref() == Some(name),
            _ => false,
        };
        trace.records.iter().filter(|record| is_it(&record.event)).count()
    };
    for name in ["input", "output", "back", "pixels", "source", "target"] {
        assert_eq!(named(name), FRAMES as usize, "{name}");
    }
    assert_eq!(named("mapped at creation"), 1);

    let gpu = trace.header.simulated().build();
    gpu.log_allocations(true);
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { sublet::Allocator::new(&trace.header.create_info(&gpu)) }.expect("an allocator");
    let report = Replay::new(&trace, &allocator).finish();
    let (allocate, free) = (report.call(CallKind::Allocate), report.call(CallKind::Free));
    println!("replayed: {allocate:?}, {free:?}, {:?}", report.memory);
    assert_eq!((report.refused, report.unknown, allocate.failed), (0, 0, 0));
    assert_eq!(allocate.made, free.made, "wgpu leaves nothing");
    let calls = gpu.take_log();
    assert_eq!((calls.len() as u64, calls.iter().map(|call| call.asked.size).sum()), (blocks, bytes));
}

#[test]
fn wgpu_computes_and_renders_on_sublet_alone() {
    let path = std::env::var_os("SUBLET_TRACE").map_or_else(
        || std::env::temp_dir().join(format!("sublet-wgpu-{}.trace", std::process::id())),
        std::path::PathBuf::from,
    );
    // SAFETY: this is the only test here, and no thread that reads the environment was started yet.
    unsafe { std::env::set_var("SUBLET_TRACE", &path) };
    let subscriber = tracing_subscriber::registry().with(Count);
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    let (device, queue) = open();

    // A buffer that is mapped at creation.
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("mapped at creation"),
        size: 1024,
        usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: true,
    });
    buffer.get_mapped_range_mut(..).expect("it is mapped").copy_from_slice(&[7; 1024]);
    buffer.unmap();

    for frame in 0..FRAMES {
        compute(&device, &queue, frame);
        render(&device, &queue, frame);
    }

    // The stand-in's own lists are the source of this report.
    let report = device.generate_allocator_report().expect("the backend has an allocator");
    println!("{report:.5?}");
    assert!(report.allocations.iter().any(|allocation| allocation.name.contains("mapped at creation")));
    let (bytes, blocks) = (BYTES.load(Ordering::Relaxed), BLOCKS.load(Ordering::Relaxed));
    println!("Sublet took {bytes} bytes from the driver, in {blocks} calls");
    // Everything that wgpu reports as reserved came from Sublet. 300 buffers and 200 textures share a few blocks.
    assert!(report.total_reserved_bytes > 0 && report.total_reserved_bytes <= bytes);
    assert!(blocks < 50);

    // Dropping the device drops the allocator, which ends the recording.
    drop((buffer, queue, device));
    replay(&path, (bytes, blocks));
}
