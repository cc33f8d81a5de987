//! The scene in device memory: meshes and textures.

use ash::vk;
use sublet::{AllocationCreateInfo, MemoryUsage};
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{Buffer, CommandList, Frames, Image, ImageData};

use crate::meshes::{Mesh, Vertex};
use crate::scene::Scene;
use crate::textures::{COLOUR, NORMAL, Texture};
use sublet_examples::Result;

/// Indices, then vertices, in one buffer.
pub(crate) struct DeviceMesh {
    pub(crate) buffer: Buffer,
    pub(crate) vertices_at: u64,
    pub(crate) indices: u32,
}

pub(crate) struct World {
    pub(crate) meshes: Vec<DeviceMesh>,
    /// Colours and normals.
    pub(crate) textures: Vec<[Image; 2]>,
}

impl World {
    /// Submits each resource separately, so that some are in flight while the next one is written.
    pub(crate) fn new(frames: &mut Frames, scene: &Scene) -> Result<Self> {
        let mut world = Self { meshes: Vec::new(), textures: Vec::new() };
        for (name, mesh) in &scene.meshes {
            world.meshes.push(upload(frames, |frames, list| DeviceMesh::new(frames, list, name, mesh))?);
        }
        for texture in &scene.textures {
            let colour = upload(frames, |frames, list| image(frames, list, texture, COLOUR))?;
            let normal = upload(frames, |frames, list| image(frames, list, texture, NORMAL))?;
            world.textures.push([colour, normal]);
        }
        Ok(world)
    }
}

fn upload<T>(frames: &mut Frames, make: impl FnOnce(&Frames, &mut CommandList) -> Result<T>) -> Result<T> {
    frames.begin()?;
    let mut list = frames.list(frames.queue(0))?;
    let made = make(frames, &mut list)?;
    list.flush()?;
    frames.submit(frames.queue(0), [list])?;
    frames.end();
    Ok(made)
}

impl DeviceMesh {
    pub(crate) fn new(frames: &Frames, list: &mut CommandList, name: &str, mesh: &Mesh) -> Result<Self> {
        let mut bytes: Vec<u8> = mesh.indices.iter().flat_map(|index| index.to_le_bytes()).collect();
        let vertices_at = u64::try_from(bytes.len())?;
        bytes.extend(mesh.vertices.iter().flat_map(Vertex::bytes));
        let usage = vk::BufferUsageFlags::INDEX_BUFFER | vk::BufferUsageFlags::VERTEX_BUFFER;
        let size = u64::try_from(bytes.len())?;
        let info =
            vk::BufferCreateInfo::default().size(size).usage(usage | vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { frames.create_buffer(&info, &device_local(name)) }?;
        list.upload(&buffer, 0, &bytes)?;
        // Later draws from it need no barrier.
        // SAFETY: the queue supports drawing, or nothing uses the buffer for it.
        unsafe { list.use_buffer(&buffer, 0..size, Use::VERTICES | Use::INDICES) }?;
        Ok(Self { buffer, vertices_at, indices: u32::try_from(mesh.indices.len())? })
    }
}

fn device_local(name: &str) -> AllocationCreateInfo<'_> {
    AllocationCreateInfo { name: Some(name), ..AllocationCreateInfo::new(MemoryUsage::AutoPreferDevice) }
}

fn image(frames: &Frames, list: &mut CommandList, texture: &Texture, format: vk::Format) -> Result<Image> {
    let (kind, texels) =
        if format == COLOUR { ("colour", &texture.colour) } else { ("normal", &texture.normal) };
    let name = format!("texture {}, {kind}", texture.name);
    // SAFETY: every device supports such images.
    let image = unsafe { frames.create_image(&texture.image_info(format), &device_local(&name)) }?;
    list.upload_image(&image, &[ImageData::new(0, 0, texels)])?;
    list.generate_mips(&image)?;
    let sampled = Use::sampled(vk::PipelineStageFlags2::FRAGMENT_SHADER);
    // SAFETY: as for meshes.
    unsafe { list.use_image(&image, &Subresources::ALL, sampled) }?;
    Ok(image)
}
