//! A lit, textured scene, rendered without a window on whichever Vulkan driver there is, as a PNG, and beside it a page
//! that shows what lies where. All its memory is Sublet's: meshes and textures through a staging ring, attachments that
//! share memory because they are not used at the same time, numbers out of an upload arena, sets that live for a frame,
//! pictures that the host reads.
//!
//! ```text
//! cargo run --release --example render                       target/render.png and target/render.html
//! cargo run --release --example render -- --output DIR       the same in DIR
//! cargo run --release --example render -- --check            compares it with examples/render/reference.png
//! ```
//! `passes.rs` is the plan of a frame; most of the rest follows from it. A simulated GPU draws nothing: there the
//! example shows only what memory it takes.

mod attachments;
mod barriers;
mod camera;
mod copies;
mod draw;
mod flight;
mod keeper;
mod math;
mod memory;
mod meshes;
mod noise;
mod output;
mod passes;
mod picture;
mod pipelines;
mod places;
mod readback;
mod record;
mod renderer;
mod scene;
mod sets;
#[path = "../support/mod.rs"]
mod support;
mod surfaces;
mod targets;
mod textures;
mod world;

use std::process::ExitCode;

use ash::vk;
use sublet::{Allocator, AllocatorCreateInfo, Tracking};
use support::{Context, Result, note};

use attachments::Attachments;
use flight::{Flight, IN_FLIGHT};
use output::Output;
use readback::Readback;
use scene::Scene;
use world::World;

/// What is in the memory of the device, whether it can draw or not.
struct Resources {
    world: World,
    attachments: Attachments,
    readback: Readback,
}

fn main() -> ExitCode {
    support::run_with(Output::arguments(), |context, matches| render(context, &Output::new(matches)))
}

fn render(context: &Context, output: &Output) -> Result<()> {
    // The scene is small, and the memory map shows where in this program an allocation was made.
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 32 << 20,
        tracking: Tracking::CALLER,
        ..context.allocator_info()
    };
    // SAFETY: the context has made instance and device for this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&info) }?;
    // With `SUBLET_TRACE=FILE` all that is asked of it is recorded there.
    sublet::trace::start_from_environment(&allocator)?;
    let scene = Scene::new();
    let mut flight = Flight::new(context, &allocator)?;
    let mut resources = Resources {
        world: World::new(&allocator, &mut flight, &scene)?,
        attachments: Attachments::new(context, &allocator)?,
        readback: Readback::new(&allocator, IN_FLIGHT)?,
    };
    resources.attachments.show();

    let outcome = if can_draw(context) {
        let picture = draw::draw(context, &allocator, &scene, &mut flight, &mut resources, output);
        picture.and_then(|picture| output.picture(&picture))
    } else {
        note("This device draws nothing, so that there is no picture, only the memory that one takes.");
        output.memory(&allocator)
    };

    flight.wait_for_all()?;
    // SAFETY: the device is idle, here and below.
    unsafe { resources.readback.destroy(&allocator) }?;
    // SAFETY: as above.
    unsafe { resources.attachments.destroy(context, &allocator) }?;
    // SAFETY: as above.
    unsafe { resources.world.destroy(&allocator) }?;
    // SAFETY: as above.
    unsafe { flight.destroy() };
    let leaks = allocator.destroy();
    outcome?;
    if leaks.is_empty() { Ok(()) } else { Err(format!("forgotten: {leaks:?}").into()) }
}

/// Simulated GPUs copy bytes and compute, and some devices do nothing else either.
fn can_draw(context: &Context) -> bool {
    let (instance, device) = (context.instance(), context.physical_device());
    // SAFETY: the physical device is of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    let family = usize::try_from(context.queue_family_index()).ok().and_then(|at| families.get(at));
    let graphics = family.is_some_and(|family| family.queue_flags.contains(vk::QueueFlags::GRAPHICS));
    graphics && context.gpu().is_none()
}
