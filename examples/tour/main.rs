//! A tour of all kinds of memory on one device.
//!
//! ```text
//! cargo run --release -p sublet-examples --example tour                              a driver's device, else a simulated one
//! cargo run --release -p sublet-examples --example tour -- --device list             what there is
//! cargo run --release -p sublet-examples --example tour -- --device sim:amd-rx-570   any of the simulated GPUs
//! ```
//! Each scene is one file. `kept` holds the live objects for the table at the end.

mod budget;
mod double_stack;
mod kept;
mod level;
mod memory_types;
mod render_target;
mod scopes;
mod staging_ring;
mod summary;
mod transfer;

use std::process::ExitCode;

use kept::Kept;
use sublet::Allocator;
use sublet_examples::{Context, Result, bytes, chain, heading, note};

fn main() -> ExitCode {
    sublet_examples::run(tour)
}

fn tour(context: &Context) -> Result<()> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    // Records all requests to the file in `SUBLET_TRACE`, if it is set.
    sublet::trace::start_from_environment(&allocator)?;
    let mut kept = Kept::new(context, &allocator);
    let outcome = scenes(&mut kept);
    // Frees everything even after an error, so that the error is not hidden by a list of leaks.
    let trimmed = kept.give_back()?;
    outcome?;

    heading("The end");
    note(&format!("Everything was freed; trim() gave the last {} of empty blocks back.", bytes(trimmed)));
    let leaks = allocator.destroy();
    for leak in &leaks {
        note(&format!("LEAKED: {leak}"));
    }
    if leaks.is_empty() {
        note("Allocator::destroy() reports what is still allocated: nothing. No leak.");
        Ok(())
    } else {
        Err("the tour leaks".into())
    }
}

/// Creates objects, prints them, and keeps them.
type Scene = fn(&mut Kept<'_>) -> Result<()>;

fn scenes(kept: &mut Kept<'_>) -> Result<()> {
    memory_types::show_device(kept);
    budget::show(kept, "Budgets before");
    let scenes: [(&str, Scene); 7] = [
        ("Default memory, in every memory type that a usage can reach", memory_types::run),
        ("A render target with memory of its own", render_target::run),
        ("Upload, copy on the device, read back", transfer::run),
        ("Pool: a staging ring buffer", staging_ring::run),
        ("Pool: a transient double stack", double_stack::run),
        ("Pool: a level that is freed at once", level::run),
        ("Pool: a stack of scopes", scopes::run),
    ];
    for (number, (title, scene)) in scenes.into_iter().enumerate() {
        heading(&format!("{}. {title}", number + 1));
        scene(kept).map_err(|error| format!("scene {}, {title}: {}", number + 1, chain(&*error)))?;
    }
    budget::show(kept, "Budgets after");
    summary::show(kept)
}
