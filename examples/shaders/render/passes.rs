//! The passes of a frame and their attachments, as one table. It determines the lifetime of each attachment, the memory
//! that it may share, and its contents.

use ash::vk;

/// Width and height.
pub(crate) type Extent = [u16; 2];

/// Four texels are rendered for each texel of the picture.
pub(crate) const SCENE_EXTENT: Extent = [1920, 1080];
pub(crate) const HALF: Extent = [960, 540];
pub(crate) const SHADOW: Extent = [2048, 2048];
pub(crate) const HDR: vk::Format = vk::Format::R16G16B16A16_SFLOAT;
pub(crate) const DEPTH: vk::Format = vk::Format::D32_SFLOAT;
pub(crate) const SRGB: vk::Format = vk::Format::R8G8B8A8_SRGB;

/// The use of an attachment by a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Tests and writes depth. Discards the previous contents.
    Depth,
    /// Writes every texel.
    Colour,
    /// Blends into the contents.
    Blend,
    /// Reads in a shader.
    Sampled,
    /// Copies to a buffer.
    Copied,
}

impl Use {
    fn usage(self) -> vk::ImageUsageFlags {
        match self {
            Self::Depth => vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT,
            Self::Colour | Self::Blend => vk::ImageUsageFlags::COLOR_ATTACHMENT,
            Self::Sampled => vk::ImageUsageFlags::SAMPLED,
            Self::Copied => vk::ImageUsageFlags::TRANSFER_SRC,
        }
    }

    pub(crate) fn load_op(self) -> vk::AttachmentLoadOp {
        match self {
            Self::Depth => vk::AttachmentLoadOp::CLEAR,
            Self::Blend => vk::AttachmentLoadOp::LOAD,
            _ => vk::AttachmentLoadOp::DONT_CARE,
        }
    }
}

/// The passes in frame order. `Down` writes a level of the bloom, and `Up` adds to the next larger level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Pass {
    /// Renders the shadow map.
    Shadow,
    /// Renders the floor's mirror image.
    Mirror,
    /// Renders the camera's view in HDR.
    Scene,
    /// Blurs by depth of field.
    Blur,
    Down(u8),
    Up(u8),
    /// Combines everything and maps it to display colours.
    Develop,
    /// Downsamples four texels to one.
    Shrink,
    /// Copies for the host.
    Read,
}

use Pass::{Blur, Develop, Down, Mirror, Read, Scene, Shadow, Shrink, Up};
use Use::{Blend, Colour, Copied, Depth, Sampled};

/// Number of bloom levels. Each is half as wide as the previous one.
pub(crate) const LEVELS: u8 = 6;

pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) format: vk::Format,
    pub(crate) extent: Extent,
    /// In order of the passes.
    pub(crate) uses: Vec<(Pass, Use)>,
}

/// Indices in [`attachments`].
pub(crate) const SHADOW_MAP: usize = 0;
pub(crate) const MIRRORED: usize = 2;
pub(crate) const PICTURE: usize = 7;

pub(crate) fn attachments() -> Vec<Attachment> {
    let row = |name: &str, format, extent, uses: &[(Pass, Use)]| Attachment {
        name: name.to_owned(),
        format,
        extent,
        uses: uses.to_vec(),
    };
    let mut all = vec![
        row("shadow map", DEPTH, SHADOW, &[(Shadow, Depth), (Mirror, Sampled), (Scene, Sampled)]),
        row("mirror depth", DEPTH, HALF, &[(Mirror, Depth)]),
        row("mirror", HDR, HALF, &[(Mirror, Colour), (Scene, Sampled)]),
        row("depth", DEPTH, SCENE_EXTENT, &[(Scene, Depth)]),
        row(
            "light",
            HDR,
            SCENE_EXTENT,
            &[(Scene, Colour), (Blur, Sampled), (Down(0), Sampled), (Develop, Sampled)],
        ),
        row("blur", HDR, HALF, &[(Blur, Colour), (Develop, Sampled)]),
        row("developed", SRGB, SCENE_EXTENT, &[(Develop, Colour), (Shrink, Sampled)]),
        row("picture", SRGB, HALF, &[(Shrink, Colour), (Read, Copied)]),
    ];
    let mut extent = SCENE_EXTENT;
    for level in 0..LEVELS {
        extent = extent.map(|side| side / 2);
        // Down to the smallest level, then up into the existing levels.
        let mut uses = vec![(Down(level), Colour)];
        if level + 1 < LEVELS {
            uses.extend([(Down(level + 1), Sampled), (Up(LEVELS - 2 - level), Blend)]);
        }
        uses.push((if level == 0 { Develop } else { Up(LEVELS - 1 - level) }, Sampled));
        all.push(Attachment { name: format!("bloom {level}"), format: HDR, extent, uses });
    }
    all
}

/// Returns all passes in order.
pub(crate) fn order() -> Vec<Pass> {
    let mut all = vec![Shadow, Mirror, Scene, Blur];
    all.extend((0..LEVELS).map(Down));
    all.extend((0..LEVELS - 1).map(Up));
    all.extend([Develop, Shrink, Read]);
    all
}

impl Attachment {
    /// Returns how a pass uses it.
    pub(crate) fn used_in(&self, pass: Pass) -> Option<Use> {
        self.uses.iter().find(|(at, _)| *at == pass).map(|&(_, how)| how)
    }

    /// Returns the first and the last pass that use it.
    pub(crate) fn life(&self) -> (Pass, Pass) {
        (self.uses[0].0, self.uses[self.uses.len() - 1].0)
    }

    pub(crate) fn is_depth(&self) -> bool {
        self.format == DEPTH
    }

    /// Returns true if no pass reads it. It may then exist only in the tiles of the GPU.
    pub(crate) fn is_transient(&self) -> bool {
        self.uses.len() == 1
    }

    pub(crate) fn image_info(&self) -> vk::ImageCreateInfo<'static> {
        let [width, height] = self.extent.map(u32::from);
        let usages = self.uses.iter().map(|(_, how)| how.usage());
        let mut usage = usages.fold(vk::ImageUsageFlags::empty(), |all, one| all | one);
        if self.is_transient() {
            usage |= vk::ImageUsageFlags::TRANSIENT_ATTACHMENT;
        }
        vk::ImageCreateInfo::default()
            // The image aliases another one's memory.
            .flags(vk::ImageCreateFlags::ALIAS)
            .image_type(vk::ImageType::TYPE_2D)
            .format(self.format)
            .extent(vk::Extent3D { width, height, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(usage)
    }
}
