//! Renders a lit, textured scene without a window on any available Vulkan driver. Writes a PNG, and a page with the
//! memory map. Sublet manages all memory: meshes and textures, attachments that share memory because they are not used
//! at the same time, pictures that the host reads. `sublet-frame` manages the rest: uploads, sets, barriers,
//! submissions, and deferred destruction.
//!
//! `cargo run --release -p sublet-shader-examples --example render` writes `target/render.png` and `target/render.html`.
//! `-- --output DIR` writes both to DIR, `-- --check` compares the picture with `reference.png`, and `-- --barriers`
//! shows the barriers of the last frame.
//!
//! `passes.rs` is the plan of a frame; most of the rest follows from it. A device without dynamic rendering and a
//! simulated GPU cannot draw here. For these, the example shows only the memory use.

mod attachments;
mod barriers;
mod camera;
mod keeper;
mod meshes;
mod noise;
mod output;
mod passes;
mod pipelines;
mod record;
mod scene;
mod sets;
mod surfaces;
mod textures;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use image::DynamicImage;
use sublet::upload::UploadArenaCreateInfo;
use sublet::{Allocator, AllocatorCreateInfo, Tracking};
use sublet_descriptors::{BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo};
use sublet_examples::{Context, Result, Table, bytes, frame_features, heading, note};
use sublet_frame::{Frames, FramesCreateInfo, QueueInfo, ReadBack};

use attachments::Attachments;
use barriers::Barriers;
use output::Output;
use passes::HALF;
use record::{Frame, Renderer};
use scene::{KNOT, Scene, fine_knot};
use world::{DeviceMesh, World};

const FRAMES: u8 = 8;
const IN_FLIGHT: usize = 3;
/// From this frame on, the camera is near.
const NEAR: u8 = 4;

/// The contents of device memory, present even if the device cannot draw.
struct Resources {
    world: World,
    attachments: Attachments,
}

fn main() -> ExitCode {
    sublet_examples::run_with(Output::HELP, Output::new, |context, output| render(context, &output))
}

fn render(context: &Context, output: &Output) -> Result<()> {
    // The scene is small, and the memory map shows source lines of allocations.
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 32 << 20,
        tracking: Tracking::CALLER,
        ..context.allocator_info()
    };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&info) }?);
    // Records all requests to the file in `SUBLET_TRACE`, if it is set.
    sublet::trace::start_from_environment(&allocator)?;
    let info = DescriptorDeviceCreateInfo { model: BindingModel::Sets, ..context.descriptor_info() };
    // SAFETY: as above, for everything made from this.
    let descriptors = unsafe { DescriptorDevice::new(&info) }?;
    let barriers = Barriers::default();
    let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
    let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
    let of = FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues);
    let info = FramesCreateInfo {
        features: frame_features(context),
        frames_in_flight: IN_FLIGHT,
        descriptors: Some(&descriptors),
        uploads: UploadArenaCreateInfo { name: Some("uploads"), ..of.uploads.clone() },
        on_barriers: output.barriers.then(|| barriers.observer()),
        ..of
    };
    // SAFETY: all handles belong to the context's device, which has these features enabled, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;
    let scene = Scene::new();
    let world = World::new(&mut frames, &scene)?;
    let mut resources = Resources { world, attachments: Attachments::new(&frames)? };
    resources.attachments.show();

    if context.draws() {
        let renderer = Renderer::new(context, &frames)?;
        let picture = draw(&mut frames, &renderer, &scene, &mut resources, output, &barriers)?;
        frames.wait(&picture)?;
        let [width, height] = HALF.map(u32::from);
        let texels = image::RgbaImage::from_raw(width, height, picture.bytes()?);
        output.picture(&DynamicImage::from(texels.ok_or("the picture is of another size")?).into_rgb8())
    } else {
        note("This device draws nothing, so that there is no picture, only the memory that one takes.");
        output.memory(&allocator)
    }
}

/// Draws all frames, a few of them in flight, while camera and sun move. Returns the last picture.
fn draw(
    frames: &mut Frames,
    renderer: &Renderer<'_>,
    scene: &Scene,
    resources: &mut Resources,
    output: &Output,
    barriers: &Barriers,
) -> Result<ReadBack> {
    heading(&format!("{FRAMES} frames, {IN_FLIGHT} of them in flight"));
    let mut table = Table::new(&[">frame", ">slot", ">upload pages", ">barriers", ">calls", ">in flight"]);
    let mut last = None;
    for frame in 0..FRAMES {
        frames.begin()?;
        barriers.clear();
        let (before, slot) = (frames.statistics(), frames.slot());
        let mut list = frames.list(frames.queue(0))?;
        if frame == NEAR {
            // A finer mesh replaces a coarse one that frames in flight still use.
            let name = "mesh knot, fine";
            resources.world.meshes[KNOT] = DeviceMesh::new(frames, &mut list, name, &fine_knot())?;
        }
        let drawn = Frame { renderer, scene, resources, list: &mut list };
        last = Some(drawn.record(f32::from(frame) / f32::from(FRAMES - 1), barriers)?);
        barriers.submit();
        frames.submit(frames.queue(0), [list])?;
        frames.end();
        let now = frames.statistics();
        let (count, calls) = (now.barriers - before.barriers, now.barrier_calls - before.barrier_calls);
        table.row([&frame, &slot, &bytes(now.upload_bytes), &count, &calls, &now.in_flight]);
    }
    table.print();
    if output.barriers {
        barriers.show(&resources.attachments);
    }
    // Reports the memory while everything is live.
    output.memory(frames.allocator())?;
    last.ok_or_else(|| "no frame was drawn".into())
}
