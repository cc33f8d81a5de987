//! `sublet devices`: lists devices, and the memory that Sublet chooses on each.

use serde::Serialize;
use sublet::sim::Gpu;

use crate::answer::{Answer, complain};
use crate::arguments::DevicesArguments;
use crate::choices::Choices;
use crate::describe::Description;
use crate::failure::CommandFailure;
use crate::select::{self, Choice};
use crate::table::TextTable;
use crate::text::bytes;
use crate::vulkan::{Physical, Vulkan};

#[derive(Serialize)]
struct DevicesDocument {
    devices: Vec<Description>,
}

pub(crate) fn run(arguments: &DevicesArguments) -> Result<Answer, CommandFailure> {
    let mut devices = Vec::new();
    let mut text = String::new();
    if let Some(said) = &arguments.device {
        devices.push(Choice::parse(said)?.with(None, |physical| whole(said.clone(), physical))?);
    } else {
        match all_of_drivers() {
            Ok(found) => devices = found,
            // With `--sim`, the command succeeds without a driver.
            Err(failure) if arguments.sim => complain(&format!("sublet: {}", failure.chain())),
            Err(failure) => return Err(failure),
        }
    }
    text += &devices.iter().map(Description::text).collect::<Vec<_>>().join("\n");
    if arguments.sim {
        let mut simulated = Vec::new();
        for profile in select::simulated() {
            let gpu = Gpu::new(profile);
            simulated.push(whole(format!("sim:{}", profile.name), Physical::simulated(&gpu))?);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text += &list(&simulated);
        devices.extend(simulated);
    }
    Ok(Answer::new("sublet-devices", 1, text, &DevicesDocument { devices }))
}

fn all_of_drivers() -> Result<Vec<Description>, CommandFailure> {
    let vulkan = Vulkan::open()?;
    let devices = vulkan.devices()?;
    if devices.is_empty() {
        return Err(CommandFailure::no_device("no Vulkan driver has a device"));
    }
    devices.iter().enumerate().map(|(number, physical)| whole(number.to_string(), *physical)).collect()
}

/// Returns a device with its memory choices.
fn whole(called: String, physical: Physical<'_>) -> Result<Description, CommandFailure> {
    let mut description = Description::of(called, &physical)?;
    description.choices = Some(Choices::of(&physical.open()?)?);
    Ok(description)
}

/// Returns one line per device.
fn list(devices: &[Description]) -> String {
    let mut table = TextTable::new(&["device", "name", "type", "Vulkan", "heaps", ">types", ">granularity"]);
    for device in devices {
        let heaps = device.heaps.iter().map(|heap| {
            let local = if heap.flags.is_empty() { "host " } else { "" };
            format!("{local}{}", bytes(heap.size))
        });
        table.row([
            device.device.clone(),
            device.name.clone(),
            device.kind.clone(),
            device.api_version.clone(),
            heaps.collect::<Vec<_>>().join(", "),
            device.types.len().to_string(),
            bytes(device.limits.buffer_image_granularity),
        ]);
    }
    table.text()
}
