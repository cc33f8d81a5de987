//! Frame after frame, a few of them in flight, while the camera and the sun go their ways.

use sublet::Allocator;
use sublet::descriptor::DescriptorDevice;

use crate::Resources;
use crate::flight::{Flight, IN_FLIGHT};
use crate::output::Output;
use crate::picture::Picture;
use crate::record::Frame;
use crate::renderer::Renderer;
use crate::scene::{KNOT, Scene, fine_knot};
use crate::support::{Context, Result, Table, bytes, heading};
use crate::world::DeviceMesh;

const FRAMES: u8 = 8;
/// From this frame on the camera is near.
const NEAR: u8 = 4;

/// Draws all frames, and answers the last one.
pub(crate) fn draw(
    context: &Context,
    allocator: &Allocator,
    scene: &Scene,
    flight: &mut Flight<'_>,
    resources: &mut Resources,
    output: &Output,
) -> Result<Picture> {
    // SAFETY: the context has made instance and device for this version and these features, and outlives it.
    let descriptors = unsafe { DescriptorDevice::new(&context.descriptor_info()) }?;
    let mut renderer = Renderer::new(context, allocator, &descriptors, scene, resources)?;
    let slot = frames(allocator, scene, flight, resources, &mut renderer, output);
    // What was submitted uses the renderer also where something went wrong.
    flight.wait_for_all()?;
    let picture = slot.and_then(|slot| resources.readback.picture(allocator, slot));
    // SAFETY: the device is idle.
    unsafe { renderer.destroy() };
    picture
}

/// Answers the slot of the last frame.
fn frames(
    allocator: &Allocator,
    scene: &Scene,
    flight: &mut Flight<'_>,
    resources: &mut Resources,
    renderer: &mut Renderer<'_>,
    output: &Output,
) -> Result<usize> {
    heading(&format!("{FRAMES} frames, {IN_FLIGHT} of them in flight"));
    let mut table =
        Table::new(&[">frame", ">slot", ">uniforms", ">sets so far", ">uploaded", ">waiting to be freed"]);
    let mut last = 0;
    for frame in 0..FRAMES {
        let (slot, ticket) = flight.begin()?;
        let time = f32::from(frame) / f32::from(FRAMES - 1);
        let sets = renderer.prepare(flight, ticket, scene, resources, time)?;
        // A finer mesh takes the place of a coarse one that frames in flight still draw.
        let mut copy = None;
        if frame == NEAR {
            let name = "mesh knot, fine";
            let (fine, to_device) = DeviceMesh::new(allocator, &mut flight.ring, name, &fine_knot())?;
            let coarse = std::mem::replace(&mut resources.world.meshes[KNOT], fine);
            let (buffer, memory) = coarse.into_parts();
            // SAFETY: the frames that use it were begun before this one.
            unsafe { flight.retired.retire_buffer(ticket, buffer, memory) };
            copy = Some(to_device);
        }
        let drawn = Frame { renderer, scene, resources, sets: &sets, slot };
        flight.submit(ticket, |device, commands| {
            if let Some(copy) = &copy {
                copy.record(device, commands);
            }
            drawn.record(device, commands);
        })?;
        let (uniforms, sets) = (renderer.arena.statistics(), renderer.sets.statistics());
        let (uploaded, waiting) = (copy.map_or(0, |copy| copy.size()), flight.retired.len());
        let [uniforms, uploaded] = [uniforms.reserved, uploaded].map(bytes);
        table.row([&frame, &slot, &uniforms, &sets.sets_allocated, &uploaded, &waiting]);
        last = slot;
    }
    table.print();
    // While everything lives.
    output.memory(allocator)?;
    Ok(last)
}
