//! The running of a dispatch.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ash::vk;

use super::{Closure, Kernel};
use crate::commands::{Bindings, Work, check_groups};
use crate::hazards::Actor;
use crate::state::{Bytes, Device, DeviceState};

/// How many workgroups a dispatch starts.
pub(crate) enum Groups {
    Given([u32; 3]),
    /// The counts in a buffer when the dispatch runs: a `VkDispatchIndirectCommand` at an offset.
    At(Bytes, u64),
}

/// The work of a dispatch, with what is bound now. If there is nothing to run, it reports that and answers `None`.
pub(crate) fn start(
    device: &Device,
    state: &DeviceState,
    bindings: &Bindings,
    groups: Groups,
    actor: Option<Actor>,
) -> Option<Work> {
    let program = Arc::clone(bindings.program(vk::PipelineBindPoint::COMPUTE)?);
    let name = &program.entry_point;
    let Some(closure) = device.hub.kernels.get(name) else {
        let text = format!("nobody has said what the entry point \"{name}\" does: see Gpu::set_kernel");
        device.report("SUBLET-no-kernel", text);
        return None;
    };
    let (bindings, layouts) = (bindings.clone(), Arc::clone(&state.commands.layouts));
    Some(Box::new(move |device: &Device| {
        let groups = match &groups {
            Groups::Given(groups) => Some(*groups),
            Groups::At(bytes, offset) => indirect(device, bytes, *offset),
        };
        let Some(groups) = groups else { return false };
        let (program, bindings) = (&program, &bindings);
        run(&mut Kernel { device, program, bindings, layouts, groups, actor }, &*closure);
        true
    }))
}

fn run(kernel: &mut Kernel<'_>, closure: &Closure) {
    if kernel.groups.contains(&0) {
        return;
    }
    // A closure that panics must not end the queue: the test finds the report.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| closure(kernel))) {
        let text = format!("the closure panicked: {}", message(panic.as_ref()));
        kernel.report("SUBLET-kernel-panicked", &text);
    }
}

/// The numbers of a `VkDispatchIndirectCommand`; none are started if it has too many. `None` if it cannot be read.
fn indirect(device: &Device, bytes: &Bytes, offset: u64) -> Option<[u32; 3]> {
    let mut words = [[0; 4]; 3];
    for (position, word) in (0_u64..).zip(&mut words) {
        if !bytes.store.read(bytes.offset + offset + position * 4, word) {
            return None;
        }
    }
    let groups = words.map(u32::from_le_bytes);
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
