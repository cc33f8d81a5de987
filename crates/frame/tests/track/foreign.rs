//! A `Global` rejects the objects of another one, without side effects.

use ash::vk::{self, Handle};
use fastrand::Rng;
use sublet_frame::track::{
    BufferId, BufferInfo, Global, ImageId, ImageInfo, Queue, Recorder, ResolveError, ResourceId, Split,
    StateError, Submission, Subresources, Use, UseError,
};
use vk::PipelineStageFlags2 as Stages;

/// Another `Global` with the same resources and queues in the same slots. Its ids differ only in the number of their
/// `Global`.
pub struct Foreign {
    pub global: Global,
    rng: Rng,
    queues: Vec<Queue>,
    buffers: Vec<BufferId>,
    images: Vec<ImageId>,
}

impl Foreign {
    pub fn new(seed: u64, families: &[u32]) -> Self {
        let mut global = Global::new();
        let queues = families.iter().map(|&family| global.add_queue(family)).collect();
        Self { global, rng: Rng::with_seed(!seed), queues, buffers: Vec::new(), images: Vec::new() }
    }

    pub fn add_buffer(&mut self, info: &BufferInfo) {
        self.buffers.push(self.global.add_buffer(info));
    }

    pub fn add_image(&mut self, info: &ImageInfo) {
        self.images.push(self.global.add_image(info));
    }

    /// Returns one of its resources, of either kind.
    fn resource(&mut self) -> ResourceId {
        let at = self.rng.usize(0..self.buffers.len() + self.images.len());
        match self.images.get(at.wrapping_sub(self.buffers.len())) {
            Some(&image) => image.into(),
            None => self.buffers[at].into(),
        }
    }

    /// Passes foreign resources to a list of the program, which stays usable.
    pub fn disturb_list(&mut self, list: &mut Recorder) {
        let of = |resource| Err(UseError::OtherGlobal { resource });
        let resource = self.resource();
        match self.rng.u32(0..6) {
            0 => assert_eq!(list.storage_barrier(resource), of(resource)),
            1 => {
                let Some(&buffer) = self.rng.choice(&self.buffers) else { return };
                let end = self.rng.u64(1..=8);
                assert_eq!(list.use_buffer(buffer, 0..end, Use::COPY_TARGET), of(buffer.into()));
                let mut split = Split::new();
                let answer = list.split_buffer(buffer, 0..end, Use::VERTICES, &mut split);
                assert_eq!(answer, Err(UseError::OtherGlobal { resource: buffer.into() }));
            }
            2 => {
                let Some(&image) = self.rng.choice(&self.images) else { return };
                let part = Subresources::ALL.mips(0..self.rng.u32(1..4));
                assert_eq!(list.use_image(image, &part, Use::CLEAR), of(image.into()));
                let mut split = Split::new();
                let answer = list.split_image(image, &part, Use::COPY_SOURCE, &mut split);
                assert_eq!(answer, Err(UseError::OtherGlobal { resource: image.into() }));
                list.join(&mut split);
                assert_eq!(list.assume_image(image, &part, Use::CLEAR), of(image.into()));
            }
            _ => {}
        }
    }

    /// Passes foreign objects to the `Global` of the program, and objects of the program to this one.
    pub fn disturb(&mut self, own: &mut Global, queue: Queue, lists: &[&Recorder]) {
        let resource = self.resource();
        let of = Err(StateError::OtherGlobal { resource });
        let at = self.rng.usize(0..self.queues.len());
        let other = self.queues[at];
        match self.rng.u32(0..12) {
            0 => assert_eq!(own.freeze(resource, Use::COPY_SOURCE), of),
            1 => assert_eq!(own.thaw(resource), of),
            2 => assert_eq!(own.idle(resource), of),
            3 => assert_eq!(own.remove(resource), of),
            4 => assert_eq!(own.acquired(resource, queue, Stages::ALL_COMMANDS), of),
            5 => assert_eq!(own.intervals(resource), Err(StateError::OtherGlobal { resource })),
            6 => {
                let answer = self.global.acquired(resource, queue, Stages::ALL_COMMANDS);
                assert_eq!(answer, Err(StateError::OtherQueue { queue }));
            }
            7 => {
                let Some(&image) = self.rng.choice(&self.images) else { return };
                let answer = own.layouts(image, |_, _, _| panic!("the image is foreign"));
                let refused = Err(StateError::OtherGlobal { resource: image.into() });
                assert_eq!(answer, refused);
                assert_eq!(own.assume_layout(image, vk::ImageLayout::GENERAL), refused);
            }
            _ => {}
        }
        let mut submission = Submission::revocable();
        let refused = Err(ResolveError::OtherQueue { queue: other });
        assert_eq!(own.resolve(other, lists, &mut submission), refused);
        assert_eq!(
            self.global.resolve(queue, lists, &mut submission),
            Err(ResolveError::OtherQueue { queue })
        );
        if !lists.is_empty() {
            let refused = Err(ResolveError::WrongQueue { list: 0 });
            assert_eq!(self.global.resolve(other, lists, &mut submission), refused);
        }
    }

    /// Resolves a submission here. Only this `Global` can revoke it.
    pub fn resolve_and_revoke(&mut self, own: &mut Global) {
        let mut list = Recorder::new(self.queues[0]);
        let resource = self.resource();
        list.storage_barrier(resource).unwrap();
        let mut submission = Submission::revocable();
        self.global.resolve(self.queues[0], &[&list], &mut submission).unwrap();
        assert!(!own.revoke(&mut submission));
        assert!(self.global.revoke(&mut submission));
    }
}

#[test]
fn queues_of_another_global_have_no_submissions() {
    let (mut one, mut two) = (Global::new(), Global::new());
    let (_, queue) = (one.add_queue(0), two.add_queue(0));
    let asked = std::panic::catch_unwind(|| one.submitted(queue));
    assert!(asked.is_err());
    assert_eq!(two.submitted(queue), 0);
}

/// Two lists begin a split dependency. Its id identifies the list.
#[test]
fn a_split_dependency_is_not_joined_in_another_list() {
    let mut global = Global::new();
    let queue = global.add_queue(0);
    let buffer = global.add_buffer(&BufferInfo::new(vk::Buffer::from_raw(1), 8));
    let begin = || {
        let (mut list, mut split) = (Recorder::new(queue), Split::new());
        list.use_buffer(buffer, 0..8, Use::COPY_TARGET).unwrap();
        list.flush();
        assert!(list.split_buffer(buffer, 0..8, Use::VERTICES, &mut split).unwrap());
        (list, split)
    };
    let ((mut one, mut its), (_, mut other)) = (begin(), begin());
    one.join(&mut other);
    let refused = global.resolve(queue, &[&one], &mut Submission::new());
    assert_eq!(refused, Err(ResolveError::Split { list: 0, resource: buffer.into() }));
    one.join(&mut its);
    assert_eq!(global.resolve(queue, &[&one], &mut Submission::new()), Ok(()));
}
