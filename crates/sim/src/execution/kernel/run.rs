//! The running of dispatches and draws.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ash::vk;

use crate::commands::check_groups;
use crate::execution::execute;
use crate::execution::execute::Work;
use crate::hazards::Actor;
use crate::objects::commands::ImageLayouts;
use crate::objects::commands::bindings::Bindings;
use crate::objects::commands::draw::{Draw, DrawCounts, DrawSpan};
use crate::objects::kernels::{Closure, Drawn, Kernel};
use crate::objects::pipelines::{PipelineProgram, Shader};
use crate::objects::state::{DeviceObject, DeviceState, StoreRange};

/// How many workgroups a dispatch starts.
pub(crate) enum Groups {
    Given([u32; 3]),
    /// The counts in a buffer when the dispatch runs: a `VkDispatchIndirectCommand` at an offset.
    At(StoreRange, u64),
}

/// The work of a dispatch, with what is bound now. If there is nothing to run, it reports that and answers `None`.
pub(crate) fn start(
    device: &DeviceObject,
    state: &DeviceState,
    bindings: &Bindings,
    groups: Groups,
    actor: Option<Actor>,
) -> Option<Work> {
    let program = Arc::clone(bindings.program(vk::PipelineBindPoint::COMPUTE)?);
    let closures = closures(device, &program)?;
    let (bindings, layouts) = (bindings.clone(), Arc::clone(&state.commands.layouts));
    Some(Box::new(move |device: &DeviceObject| {
        let groups = match &groups {
            Groups::Given(groups) => Some(*groups),
            Groups::At(bytes, offset) => indirect(device, bytes, *offset),
        };
        let Some(groups) = groups else { return false };
        if !groups.contains(&0) {
            run(device, (&program, &closures), &bindings, &layouts, groups, None, actor);
        }
        true
    }))
}

/// The work of a draw, with what is bound now. If there is nothing to run, it reports that and answers `None`.
pub(crate) fn draw(
    device: &DeviceObject,
    state: &DeviceState,
    bindings: &Bindings,
    draw: &Arc<Draw>,
    actor: Option<Actor>,
) -> Option<Work> {
    let closures = closures(device, &draw.program)?;
    // The bytes and the offset of each command.
    let mut places = Vec::new();
    if let DrawCounts::At { buffer: from, offset, count, stride } = draw.counts {
        let bytes = execute::buffer(device, state, from)?;
        let at = |position| offset + u64::from(position) * u64::from(stride);
        places.extend((0..count).map(|position| (bytes.clone(), at(position))));
    }
    let (bindings, layouts, draw) = (bindings.clone(), Arc::clone(&state.commands.layouts), Arc::clone(draw));
    Some(Box::new(move |device: &DeviceObject| {
        let spans = match draw.counts {
            DrawCounts::Given(span) => Some(vec![span]),
            DrawCounts::At { .. } => places.iter().map(|place| span(place, draw.indices.is_some())).collect(),
        };
        let Some(spans) = spans else { return false };
        for span in spans.into_iter().filter(|span| span.count > 0 && span.instances > 0) {
            let drawn = Drawn { draw: &draw, span };
            run(device, (&draw.program, &closures), &bindings, &layouts, [1; 3], Some(drawn), actor);
        }
        true
    }))
}

/// The numbers of a draw in a buffer; `None` if they cannot be read.
fn span((bytes, offset): &(StoreRange, u64), indexed: bool) -> Option<DrawSpan> {
    let mut words = [0; 5];
    read_words(bytes, *offset, words.iter_mut().take(if indexed { 5 } else { 4 }))?;
    Some(DrawSpan::from_words(words, indexed))
}

/// The closures of a program's shaders. A missing closure is reported.
fn closures(device: &DeviceObject, program: &PipelineProgram) -> Option<Vec<Arc<Closure>>> {
    let known = |shader: &Shader| {
        let name = &shader.entry_point;
        let found = device.gpu_state.kernels.get(name);
        if found.is_none() {
            let text = format!("nobody has said what the entry point \"{name}\" does: see Gpu::set_kernel");
            device.report("SUBLET-no-kernel", text);
        }
        found
    };
    program.shaders.iter().map(known).collect()
}

/// Calls the closures of a program, in the order of its stages.
fn run(
    device: &DeviceObject,
    (program, closures): (&PipelineProgram, &[Arc<Closure>]),
    bindings: &Bindings,
    layouts: &ImageLayouts,
    groups: [u32; 3],
    drawn: Option<Drawn<'_>>,
    actor: Option<Actor>,
) {
    for (shader, closure) in program.shaders.iter().zip(closures) {
        let layouts = Arc::clone(layouts);
        let mut kernel = Kernel { device, program, shader, bindings, layouts, groups, drawn, actor };
        // A closure that panics must not end the queue: the test finds the report.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| closure(&mut kernel))) {
            let text = format!("the closure panicked: {}", message(panic.as_ref()));
            kernel.report("SUBLET-kernel-panicked", &text);
        }
    }
}

/// Reads the words of an indirect command.
fn read_words<'a>(bytes: &StoreRange, offset: u64, words: impl Iterator<Item = &'a mut u32>) -> Option<()> {
    for (position, word) in (0_u64..).zip(words) {
        let mut read = [0; 4];
        if !bytes.store.read(bytes.offset + offset + position * 4, &mut read) {
            return None;
        }
        *word = u32::from_le_bytes(read);
    }
    Some(())
}

/// The numbers of a `VkDispatchIndirectCommand`; none are started if it has too many. `None` if it cannot be read.
fn indirect(device: &DeviceObject, bytes: &StoreRange, offset: u64) -> Option<[u32; 3]> {
    let mut groups = [0; 3];
    read_words(bytes, offset, groups.iter_mut())?;
    let rules = [
        "VUID-VkDispatchIndirectCommand-x-00417",
        "VUID-VkDispatchIndirectCommand-y-00418",
        "VUID-VkDispatchIndirectCommand-z-00419",
    ];
    if let Err((rule, text)) = check_groups(groups, rules) {
        device.report(rule, text);
        return Some([0; 3]);
    }
    Some(groups)
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}
