//! The recorded barriers of a frame, as a table and as a chart of attachments over time.

use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use sublet_frame::BarrierObserver;
use sublet_frame::track::BarrierBatch;

use crate::attachments::Attachments;
use crate::passes::{Pass, order};
use sublet_examples::{Table, heading, note};

#[derive(Default)]
struct Seen {
    /// Barriers before a list are recorded at its submission.
    pass: Option<Pass>,
    calls: usize,
    memory: usize,
    images: Vec<(Option<Pass>, vk::ImageMemoryBarrier2<'static>)>,
}

/// Collects the barriers that the frames report.
#[derive(Clone, Default)]
pub(crate) struct Barriers(Arc<Mutex<Seen>>);

impl Barriers {
    pub(crate) fn observer(&self) -> BarrierObserver {
        let seen = Arc::clone(&self.0);
        Arc::new(move |batch: &BarrierBatch| {
            let mut seen = seen.lock();
            seen.calls += 1;
            seen.memory += batch.memory().len() + batch.buffers().len();
            let pass = seen.pass;
            seen.images.extend(batch.images().iter().map(|image| (pass, *image)));
        })
    }

    /// Clears the collected barriers.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Seen::default();
    }

    /// Attributes the following barriers to this pass.
    pub(crate) fn enter(&self, pass: Pass) {
        self.0.lock().pass = Some(pass);
    }

    /// Marks the list as recorded; its submission follows.
    pub(crate) fn submit(&self) {
        self.0.lock().pass = None;
    }

    pub(crate) fn show(&self, attachments: &Attachments) {
        let seen = self.0.lock();
        heading("Barriers of the last frame");
        let mut table = Table::new(&["before", "attachment", "from", "to", "layout", "becomes"]);
        let of = |at: usize| {
            let handle = attachments.images[at].handle();
            seen.images.iter().filter(move |(_, barrier)| barrier.image == handle)
        };
        let mut passes = vec![None];
        passes.extend(order().into_iter().map(Some));
        for &pass in &passes {
            let before = pass.map_or("the frame".to_owned(), |pass| format!("{pass:?}"));
            for (at, attachment) in attachments.table.iter().enumerate() {
                for (_, barrier) in of(at).filter(|(seen, _)| *seen == pass) {
                    let cell = |debug: &dyn std::fmt::Debug| format!("{debug:?}");
                    let (from, to) = (cell(&barrier.src_stage_mask), cell(&barrier.dst_stage_mask));
                    let layouts = [barrier.old_layout, barrier.new_layout].map(|layout| cell(&layout));
                    table.row([&before, &attachment.name, &from, &to, &layouts[0], &layouts[1]]);
                }
            }
        }
        table.print();
        note(&format!(
            "{} barriers in {} calls of vkCmdPipelineBarrier2.\n",
            seen.images.len() + seen.memory,
            seen.calls
        ));
        note(
            "Who has what, pass by pass: D depth, C colour, s sampled, r read by a copy; a capital is written to.",
        );
        for (at, attachment) in attachments.table.iter().enumerate() {
            let (first, last) = attachment.life();
            let mut layout = vk::ImageLayout::UNDEFINED;
            let line: String = passes
                .iter()
                .map(|&pass| {
                    if let Some((_, barrier)) = of(at).find(|(seen, _)| *seen == pass) {
                        layout = barrier.new_layout;
                    }
                    let used = pass.is_some_and(|pass| attachment.used_in(pass).is_some());
                    match layout {
                        _ if !used => {
                            if pass > Some(first) && pass < Some(last) {
                                '-'
                            } else {
                                '.'
                            }
                        }
                        vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL
                        | vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL => 's',
                        vk::ImageLayout::TRANSFER_SRC_OPTIMAL => 'r',
                        _ if attachment.is_depth() => 'D',
                        _ => 'C',
                    }
                })
                .collect();
            note(&format!("  {:<14}{line}", attachment.name));
        }
    }
}
