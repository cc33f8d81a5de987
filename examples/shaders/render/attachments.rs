//! Memory for the attachments. Attachments that are not used at the same time share it. Attachments that nothing reads
//! need no memory on GPUs that keep them in their tiles.

use std::collections::BTreeMap;

use ash::vk;
use sublet::AllocationCreateInfo;
use sublet_frame::{Frames, Image, TransientImage};

use crate::passes::{Attachment, attachments, order};
use sublet_examples::{Result, Table, bytes, heading, note};

pub(crate) struct Attachments {
    pub(crate) table: Vec<Attachment>,
    pub(crate) images: Vec<Image>,
}

impl Attachments {
    pub(crate) fn new(frames: &Frames) -> Result<Self> {
        let table = attachments();
        let step = |pass| (0..).zip(order()).find(|(_, of)| *of == pass).map_or(0, |(step, _)| step);
        let transient = |attachment: &Attachment| {
            let (first, last) = attachment.life();
            TransientImage { info: attachment.image_info(), steps: step(first)..=step(last) }
        };
        let device_local = AllocationCreateInfo {
            preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            priority: 1.0,
            name: Some("attachments"),
            ..Default::default()
        };
        let images: Vec<_> = table.iter().map(transient).collect();
        // SAFETY: every device can render to these formats.
        let images = unsafe { frames.create_transient_images(&images, &device_local) }?;
        Ok(Self { table, images })
    }

    /// Prints lifetime and memory of each attachment.
    pub(crate) fn show(&self) {
        heading("Attachments, and what they share");
        let mut table = Table::new(&["attachment", ">size", "from", "to", ">at"]);
        let (mut all, mut memory) = (0, BTreeMap::new());
        for (attachment, image) in self.table.iter().zip(&self.images) {
            let (Some(range), Some(allocation)) = (image.memory_range(), image.allocation()) else {
                continue;
            };
            let (first, last) = attachment.life();
            let (first, last) = (format!("{first:?}"), format!("{last:?}"));
            let (size, at) = (bytes(range.size), bytes(range.offset - allocation.offset()));
            all += range.size;
            memory.insert((allocation.memory(), allocation.offset()), allocation.size());
            table.row([&attachment.name, &size, &first, &last, &at]);
        }
        table.print();
        let shared: u64 = memory.values().sum();
        let (saved, percent) = (bytes(all - shared), (all - shared) * 100 / all);
        let (all, shared) = (bytes(all), bytes(shared));
        note(&format!("{all} of images in {shared} of memory: {saved} saved, {percent} %."));
    }
}
