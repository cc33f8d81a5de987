//! The scene in the memory of the device: meshes and textures, and the copies that bring them there.

use ash::vk;
use sublet::upload::UploadRing;
use sublet::{Allocation, AllocationCreateInfo, Allocator, MemoryUsage};

use crate::copies::Copy;
use crate::flight::Flight;
use crate::meshes::{Mesh, Vertex};
use crate::scene::Scene;
use crate::support::Result;
use crate::textures::{COLOUR, NORMAL, Texture};

/// Indices, and then vertices, in one buffer.
pub(crate) struct DeviceMesh {
    pub(crate) buffer: vk::Buffer,
    memory: Allocation,
    pub(crate) vertices_at: u64,
    pub(crate) indices: u32,
}

pub(crate) type DeviceImage = (vk::Image, Allocation);

pub(crate) struct World {
    pub(crate) meshes: Vec<DeviceMesh>,
    /// Colours and normals.
    pub(crate) textures: Vec<[DeviceImage; 2]>,
}

impl World {
    /// A submission for each thing: there are always some in flight while the next one is written to the ring.
    pub(crate) fn new(allocator: &Allocator, flight: &mut Flight<'_>, scene: &Scene) -> Result<Self> {
        let mut world = Self { meshes: Vec::new(), textures: Vec::new() };
        for (name, mesh) in &scene.meshes {
            let (_, ticket) = flight.begin()?;
            let (mesh, copy) = DeviceMesh::new(allocator, &mut flight.ring, name, mesh)?;
            flight.submit(ticket, |device, commands| copy.record(device, commands))?;
            world.meshes.push(mesh);
        }
        for texture in &scene.textures {
            let mut upload = |levels: &[Vec<u8>], format, kind| -> Result<DeviceImage> {
                let (_, ticket) = flight.begin()?;
                let (image, copy) = image(allocator, &mut flight.ring, texture, levels, format, kind)?;
                flight.submit(ticket, |device, commands| copy.record(device, commands))?;
                Ok(image)
            };
            let colour = upload(&texture.colour, COLOUR, "colour")?;
            let normal = upload(&texture.normal, NORMAL, "normal")?;
            world.textures.push([colour, normal]);
        }
        Ok(world)
    }

    /// # Safety
    /// The device is done with all of it.
    pub(crate) unsafe fn destroy(self, allocator: &Allocator) -> Result<()> {
        for mesh in self.meshes {
            // SAFETY: the caller's own promise.
            unsafe { allocator.destroy_buffer(mesh.buffer, mesh.memory) }?;
        }
        for (image, memory) in self.textures.into_iter().flatten() {
            // SAFETY: the caller's own promise.
            unsafe { allocator.destroy_image(image, memory) }?;
        }
        Ok(())
    }
}

impl DeviceMesh {
    /// Room on the device, and the bytes in the ring.
    pub(crate) fn new(
        allocator: &Allocator,
        ring: &mut UploadRing<&Allocator>,
        name: &str,
        mesh: &Mesh,
    ) -> Result<(Self, Copy)> {
        let mut bytes: Vec<u8> = mesh.indices.iter().flat_map(|index| index.to_le_bytes()).collect();
        let vertices_at = u64::try_from(bytes.len())?;
        bytes.extend(mesh.vertices.iter().flat_map(Vertex::bytes));
        let usage = vk::BufferUsageFlags::INDEX_BUFFER | vk::BufferUsageFlags::VERTEX_BUFFER;
        let info = vk::BufferCreateInfo::default()
            .size(u64::try_from(bytes.len())?)
            .usage(usage | vk::BufferUsageFlags::TRANSFER_DST);
        let device_local = AllocationCreateInfo {
            name: Some(name),
            ..AllocationCreateInfo::new(MemoryUsage::AutoPreferDevice)
        };
        // SAFETY: the create-info is valid.
        let (buffer, memory) = unsafe { allocator.create_buffer(&info, &device_local) }?;
        let upload = ring.write(&bytes, 4)?;
        let indices = u32::try_from(mesh.indices.len())?;
        Ok((Self { buffer, memory, vertices_at, indices }, Copy::Mesh(upload, buffer)))
    }

    /// What has to be retired with its last frame.
    pub(crate) fn into_parts(self) -> (vk::Buffer, Allocation) {
        (self.buffer, self.memory)
    }
}

fn image(
    allocator: &Allocator,
    ring: &mut UploadRing<&Allocator>,
    texture: &Texture,
    levels: &[Vec<u8>],
    format: vk::Format,
    kind: &str,
) -> Result<(DeviceImage, Copy)> {
    let name = format!("texture {}, {kind}", texture.name);
    let device_local = AllocationCreateInfo {
        name: Some(&name),
        ..AllocationCreateInfo::new(MemoryUsage::AutoPreferDevice)
    };
    // SAFETY: every device has such images.
    let (image, memory) = unsafe { allocator.create_image(&texture.image_info(format), &device_local) }?;
    let upload = ring.write(&levels.concat(), ring.alignments().copy)?;
    Ok(((image, memory), Copy::Image(upload, image, texture.side.into())))
}
