//! The memory types that Sublet would choose for each usage, each kind of host access and typical resources.

use ash::vk;
use serde::Serialize;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateFlags, MemoryUsage};

use crate::failure::CommandFailure;
use crate::table::TextTable;
use crate::vulkan::Opened;

/// Memory types by usage, host access and resource.
#[derive(Serialize)]
pub(crate) struct Choices {
    /// The resources, in the order of each row's list.
    resources: Vec<&'static str>,
    rows: Vec<ChoiceRow>,
}

#[derive(Serialize)]
struct ChoiceRow {
    usage: String,
    host_access: &'static str,
    /// For each resource, memory types in the order in which they are tried; `null` if the device does not support the
    /// resource.
    types: Vec<Option<Vec<u32>>>,
}

enum ChosenResource {
    Buffer(vk::BufferUsageFlags),
    Image(vk::Format, vk::ImageUsageFlags),
}

/// The most common resources.
fn resources() -> [(&'static str, ChosenResource); 6] {
    use vk::{BufferUsageFlags as Buffer, ImageUsageFlags as Image};
    let color = vk::Format::R8G8B8A8_UNORM;
    [
        ("staging buffer", ChosenResource::Buffer(Buffer::TRANSFER_SRC | Buffer::TRANSFER_DST)),
        (
            "other buffer",
            ChosenResource::Buffer(
                Buffer::UNIFORM_BUFFER
                    | Buffer::STORAGE_BUFFER
                    | Buffer::VERTEX_BUFFER
                    | Buffer::TRANSFER_DST,
            ),
        ),
        ("texture", ChosenResource::Image(color, Image::SAMPLED | Image::TRANSFER_DST)),
        ("color target", ChosenResource::Image(color, Image::COLOR_ATTACHMENT | Image::SAMPLED)),
        ("depth target", ChosenResource::Image(vk::Format::D16_UNORM, Image::DEPTH_STENCIL_ATTACHMENT)),
        (
            "transient target",
            ChosenResource::Image(color, Image::COLOR_ATTACHMENT | Image::TRANSIENT_ATTACHMENT),
        ),
    ]
}

const USAGES: &[MemoryUsage] = &[
    MemoryUsage::Auto,
    MemoryUsage::AutoPreferDevice,
    MemoryUsage::AutoPreferHost,
    MemoryUsage::GpuLazilyAllocated,
    MemoryUsage::GpuOnly,
    MemoryUsage::CpuOnly,
    MemoryUsage::CpuToGpu,
    MemoryUsage::GpuToCpu,
    MemoryUsage::CpuCopy,
    MemoryUsage::Unknown,
];

/// Host access, which only the three `Auto` usages take into account.
fn accesses() -> [(&'static str, AllocationCreateFlags); 5] {
    use AllocationCreateFlags as Flags;
    let instead = Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD;
    [
        ("none", Flags::empty()),
        ("sequential write", Flags::HOST_ACCESS_SEQUENTIAL_WRITE),
        ("random", Flags::HOST_ACCESS_RANDOM),
        ("sequential write, or transfer", Flags::HOST_ACCESS_SEQUENTIAL_WRITE | instead),
        ("random, or transfer", Flags::HOST_ACCESS_RANDOM | instead),
    ]
}

fn is_auto(usage: MemoryUsage) -> bool {
    matches!(usage, MemoryUsage::Auto | MemoryUsage::AutoPreferDevice | MemoryUsage::AutoPreferHost)
}

impl Choices {
    /// Queries an allocator on the device, created as in most programs: without AMD's device-coherent memory.
    pub(crate) fn of(device: &Opened<'_>) -> Result<Self, CommandFailure> {
        let without = AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY;
        device.with_allocator(without, |allocator| Self::ask(device, allocator))
    }

    fn ask(device: &Opened<'_>, allocator: &Allocator) -> Self {
        let mut rows = Vec::new();
        let resources = resources();
        for &usage in USAGES {
            let accesses = accesses();
            let accesses = if is_auto(usage) { &accesses[..] } else { &accesses[..1] };
            for &(host_access, flags) in accesses {
                let wanted = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(usage) };
                let types = resources.iter().map(|(_, resource)| types(device, allocator, resource, &wanted));
                rows.push(ChoiceRow { usage: format!("{usage:?}"), host_access, types: types.collect() });
            }
        }
        Self { resources: resources.iter().map(|(name, _)| *name).collect(), rows }
    }

    /// Returns the rows to print. A usage has one row if host access makes no difference.
    fn rows_with_access(&self) -> Vec<(&ChoiceRow, &'static str)> {
        let mut rows = Vec::new();
        for usage in self.rows.chunk_by(|one, other| one.usage == other.usage) {
            match usage {
                [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|row| row.types == first.types) => {
                    rows.push((first, "any"));
                }
                _ => rows.extend(usage.iter().map(|row| (row, row.host_access))),
            }
        }
        rows
    }

    /// One table. A dash means that no memory type fits.
    pub(crate) fn text(&self) -> String {
        let mut headings = vec!["usage", "host access"];
        headings.extend(&self.resources);
        let mut table = TextTable::new(&headings);
        for (row, access) in self.rows_with_access() {
            let cell = |types: &Option<Vec<u32>>| match types.as_deref() {
                None => "no such image".to_owned(),
                Some([]) => "-".to_owned(),
                Some(types) => types.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            };
            let cells = [row.usage.clone(), access.to_owned()];
            table.row(cells.into_iter().chain(row.types.iter().map(cell)));
        }
        table.text()
    }
}

fn types(
    device: &Opened<'_>,
    allocator: &Allocator,
    resource: &ChosenResource,
    wanted: &AllocationCreateInfo<'_>,
) -> Option<Vec<u32>> {
    match *resource {
        ChosenResource::Buffer(usage) => {
            let info = vk::BufferCreateInfo::default().size(1 << 16).usage(usage);
            Some(device.types_for_buffer(allocator, &info, wanted))
        }
        ChosenResource::Image(format, usage) => {
            let info = vk::ImageCreateInfo::default()
                .image_type(vk::ImageType::TYPE_2D)
                .format(format)
                .extent(vk::Extent3D { width: 256, height: 256, depth: 1 })
                .mip_levels(1)
                .array_layers(1)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(usage);
            device.types_for_image(allocator, &info, wanted)
        }
    }
}
