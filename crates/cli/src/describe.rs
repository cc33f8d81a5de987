//! The description of a device, as text and as JSON.

use std::collections::BTreeSet;

use ash::vk;
use serde::Serialize;

use crate::choices::Choices;
use crate::failure::CommandFailure;
use crate::table::{TextTable, heading};
use crate::text::{bytes, count, device_name, flags, version};
use crate::vulkan::Physical;

/// A device. Sizes are in bytes.
#[derive(Serialize)]
pub(crate) struct Description {
    /// The value for `--device`.
    pub(crate) device: String,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) api_version: String,
    pub(crate) driver: Option<String>,
    pub(crate) driver_version: u32,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u32,
    pub(crate) heaps: Vec<HeapDescription>,
    pub(crate) types: Vec<MemoryTypeDescription>,
    pub(crate) limits: Limits,
    pub(crate) extensions: Vec<Extension>,
    pub(crate) choices: Option<Choices>,
}

#[derive(Serialize)]
pub(crate) struct HeapDescription {
    pub(crate) size: u64,
    pub(crate) flags: Vec<String>,
    pub(crate) budget: Option<u64>,
    pub(crate) usage: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct MemoryTypeDescription {
    pub(crate) heap: u32,
    pub(crate) flags: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct Limits {
    pub(crate) buffer_image_granularity: u64,
    pub(crate) non_coherent_atom_size: u64,
    pub(crate) max_memory_allocation_count: u32,
    pub(crate) max_memory_allocation_size: Option<u64>,
    pub(crate) max_buffer_size: Option<u64>,
    pub(crate) min_memory_map_alignment: usize,
}

/// An extension that Sublet uses.
#[derive(Serialize)]
pub(crate) struct Extension {
    pub(crate) name: &'static str,
    pub(crate) what_for: &'static str,
    /// True if the device supports it, as an extension or through its Vulkan version.
    pub(crate) there: bool,
    /// The Vulkan version that promoted it to core, if the device has that version.
    pub(crate) core: Option<&'static str>,
}

/// The minor version of Vulkan 1 that promoted an extension to core, and its name.
type CorePromotion = Option<(u32, &'static str)>;

/// The extensions, the Vulkan version that promoted each to core, and Sublet's use of it.
const EXTENSIONS: &[(&str, CorePromotion, &str)] = &[
    (
        "VK_KHR_get_memory_requirements2",
        Some((1, "1.1")),
        "asks drivers whether they prefer dedicated memory",
    ),
    ("VK_KHR_dedicated_allocation", Some((1, "1.1")), "gives large resources memory of their own"),
    ("VK_KHR_bind_memory2", Some((1, "1.1")), "binds with a chain of structures"),
    ("VK_KHR_maintenance4", Some((3, "1.3")), "asks for requirements without making the resource"),
    ("VK_KHR_maintenance5", Some((4, "1.4")), "usages of 64 bits"),
    ("VK_EXT_memory_budget", None, "budgets as the system sees them"),
    ("VK_EXT_memory_priority", None, "says what to evict last"),
    ("VK_EXT_pageable_device_local_memory", None, "changes priorities later"),
    ("VK_AMD_device_coherent_memory", None, "lets allocations use AMD's device-coherent types"),
    ("VK_KHR_buffer_device_address", Some((2, "1.2")), "device addresses of buffers"),
    ("VK_KHR_external_memory_fd", None, "exports memory to others"),
    ("VK_KHR_external_memory_win32", None, "exports memory to others"),
    ("VK_KHR_timeline_semaphore", Some((2, "1.2")), "says when the device is done"),
    ("VK_KHR_push_descriptor", Some((4, "1.4")), "descriptors without sets"),
    (
        "VK_EXT_descriptor_indexing",
        Some((2, "1.2")),
        "heaps of descriptors that are updated after they are bound",
    ),
    ("VK_EXT_inline_uniform_block", Some((3, "1.3")), "uniforms within a set"),
    ("VK_EXT_mutable_descriptor_type", None, "one array for descriptors of every type"),
    ("VK_EXT_descriptor_buffer", None, "descriptors in buffers"),
    ("VK_EXT_descriptor_heap", None, "Vulkan's own heaps of descriptors"),
];

impl Description {
    /// Describes a device. `called` is the value for `--device`.
    pub(crate) fn of(called: String, physical: &Physical<'_>) -> Result<Self, CommandFailure> {
        let (properties, memory) = (physical.properties(), physical.memory());
        let (budgets, more) = (physical.budgets()?, physical.more()?);
        let budget = |heap: usize| budgets.as_ref().and_then(|budgets| budgets.get(heap).copied());
        let offered: BTreeSet<String> = physical
            .extensions()?
            .iter()
            .filter_map(|extension| {
                Some(extension.extension_name_as_c_str().ok()?.to_string_lossy().into_owned())
            })
            .collect();
        Ok(Self {
            device: called,
            name: device_name(&properties),
            kind: format!("{:?}", properties.device_type),
            api_version: version(properties.api_version),
            driver: more.driver,
            driver_version: properties.driver_version,
            vendor_id: properties.vendor_id,
            device_id: properties.device_id,
            heaps: memory
                .memory_heaps_as_slice()
                .iter()
                .enumerate()
                .map(|(number, heap)| HeapDescription {
                    size: heap.size,
                    flags: flags(heap.flags),
                    budget: budget(number).map(|budget| budget.budget),
                    usage: budget(number).map(|budget| budget.usage),
                })
                .collect(),
            types: memory
                .memory_types_as_slice()
                .iter()
                .map(|kind| MemoryTypeDescription {
                    heap: kind.heap_index,
                    flags: flags(kind.property_flags),
                })
                .collect(),
            limits: Limits {
                buffer_image_granularity: properties.limits.buffer_image_granularity,
                non_coherent_atom_size: properties.limits.non_coherent_atom_size,
                max_memory_allocation_count: properties.limits.max_memory_allocation_count,
                max_memory_allocation_size: more.max_memory_allocation_size,
                max_buffer_size: more.max_buffer_size,
                min_memory_map_alignment: properties.limits.min_memory_map_alignment,
            },
            extensions: extensions(&offered, properties.api_version),
            choices: None,
        })
    }

    /// Returns the description as tables.
    pub(crate) fn text(&self) -> String {
        let mut text = heading(&format!("{}: {}", self.device, self.name)).trim_start().to_owned();
        text += &format!("  {}, Vulkan {}", self.kind, self.api_version);
        if let Some(driver) = &self.driver {
            text += &format!(", {driver}");
        }
        text += &format!(
            ", driver version {:#x}, vendor {:#06x}, device {:#06x}\n",
            self.driver_version, self.vendor_id, self.device_id
        );
        text += &heading("Heaps");
        text += &self.heap_table();
        text += &heading("Memory types");
        let mut table = TextTable::new(&[">type", ">heap", "flags"]);
        for (number, kind) in self.types.iter().enumerate() {
            table.row([number.to_string(), kind.heap.to_string(), named(&kind.flags)]);
        }
        text += &table.text();
        text += &heading("Limits");
        text += &self.limit_table();
        text += &heading("Extensions that Sublet makes use of");
        let mut table = TextTable::new(&["extension", "there", "for"]);
        for extension in &self.extensions {
            let there = match (extension.there, extension.core) {
                (false, _) => "no".to_owned(),
                (true, Some(core)) => format!("Vulkan {core}"),
                (true, None) => "yes".to_owned(),
            };
            table.row([extension.name.to_owned(), there, extension.what_for.to_owned()]);
        }
        text += &table.text();
        if let Some(choices) = &self.choices {
            text += &heading("What Sublet would choose: memory types in the order in which they are tried");
            text += &choices.text();
        }
        text
    }

    fn heap_table(&self) -> String {
        let mut table = TextTable::new(&[">heap", ">size", ">budget", ">in use", "flags"]);
        let maybe = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), bytes);
        for (number, heap) in self.heaps.iter().enumerate() {
            table.row([
                number.to_string(),
                bytes(heap.size),
                maybe(heap.budget),
                maybe(heap.usage),
                named(&heap.flags),
            ]);
        }
        table.text()
    }

    fn limit_table(&self) -> String {
        let limits = &self.limits;
        let size = |size: Option<u64>| size.map_or_else(|| "unknown".to_owned(), bytes);
        let number = match limits.max_memory_allocation_count {
            u32::MAX => "no limit".to_owned(),
            number => count(number.into()),
        };
        let mut table = TextTable::new(&["limit", ">value"]);
        for (name, value) in [
            ("bufferImageGranularity", bytes(limits.buffer_image_granularity)),
            ("nonCoherentAtomSize", bytes(limits.non_coherent_atom_size)),
            ("minMemoryMapAlignment", format!("{} B", limits.min_memory_map_alignment)),
            ("maxMemoryAllocationCount", number),
            ("maxMemoryAllocationSize", size(limits.max_memory_allocation_size)),
            ("maxBufferSize", size(limits.max_buffer_size)),
        ] {
            table.row([name.to_owned(), value]);
        }
        table.text()
    }
}

fn named(flags: &[String]) -> String {
    if flags.is_empty() { "-".to_owned() } else { flags.join(" ") }
}

fn extensions(offered: &BTreeSet<String>, api_version: u32) -> Vec<Extension> {
    let minor = vk::api_version_minor(api_version);
    let each = EXTENSIONS.iter().map(|&(name, promoted, what_for)| {
        let core = promoted.filter(|(version, _)| *version <= minor).map(|(_, version)| version);
        Extension { name, what_for, there: core.is_some() || offered.contains(name), core }
    });
    each.collect()
}
