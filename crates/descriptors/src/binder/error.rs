//! Errors of pipeline layouts, staging and commits.

use ash::vk;

use super::BindPoint;
use crate::counts::DescriptorKind;
use crate::descriptor::DescriptorDataError;
use crate::models::BindingModel;
use crate::transient::{CreateTransientSetsError, TransientError};
use sublet::device::DriverError;
use sublet::upload::{CreateUploadError, UploadError};

/// The [`PipelineLayoutInfo`](super::PipelineLayoutInfo) could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PipelineLayoutError {
    /// The layout has more sets than `maxBoundDescriptorSets`, or than the 32 that the binder supports.
    TooManySets {
        /// The number of sets in the layout.
        asked: u64,
        /// The maximum number of sets.
        most: u32,
    },
    /// The layout has two push descriptor sets. A pipeline layout may have only one.
    TwoPushSets {
        /// The number of the first one.
        first: u32,
        /// The number of another one.
        second: u32,
    },
    /// The set has push descriptors, but they are not enabled, or not in combination with descriptor buffers.
    PushNotEnabled {
        /// The number of the set.
        set: u32,
    },
    /// The set has more descriptors than `maxPushDescriptors`.
    TooManyPushDescriptors {
        /// The number of the set.
        set: u32,
        /// Its number of descriptors.
        asked: u64,
        /// The limit.
        most: u32,
    },
    /// The layout has more descriptors of a type, or of types that share a limit, than the device allows.
    TooManyDescriptors {
        /// The type, or the first type that shares the limit.
        kind: DescriptorKind,
        /// The number of descriptors in all sets.
        asked: u64,
        /// The limit.
        most: u32,
    },
    /// The set layout is for descriptor buffers but the device's model is sets, or vice versa.
    WrongModel {
        /// The number of the set.
        set: u32,
        /// The binding model of the device.
        model: BindingModel,
    },
    /// Descriptor buffers do not support this type, or the device does not report its size.
    NotInBuffers {
        /// The number of the set.
        set: u32,
        /// The number of the binding.
        binding: u32,
        /// Its type.
        kind: DescriptorKind,
    },
    /// The driver reports an implausible size for a set in a descriptor buffer.
    SetSize {
        /// The number of the set.
        set: u32,
        /// The reported size in bytes.
        bytes: u64,
    },
    /// The driver reports an offset for a binding that is outside the set.
    BindingOffset {
        /// The number of the set.
        set: u32,
        /// The number of the binding.
        binding: u32,
        /// The reported offset in bytes.
        offset: u64,
        /// The size of the set in bytes.
        bytes: u64,
    },
    /// An update template could not be created.
    Template(DriverError),
}

sublet_engines::errors! { PipelineLayoutError:
    TooManySets { asked, most } => "{asked} sets, and at most {most} can be bound";
    TwoPushSets { first, second } => "sets {first} and {second} are both of push descriptors, and one can be";
    PushNotEnabled { set } => "set {set} is of push descriptors, which are not enabled for how descriptors are bound";
    TooManyPushDescriptors { set, asked, most } =>
        "set {set} has {asked} push descriptors, and at most {most} can be pushed";
    TooManyDescriptors { kind, asked, most } =>
        "{asked} descriptors of {kind:?} and its like, and a pipeline layout has at most {most}";
    WrongModel { set, model } => "the layout of set {set} was not made for the device's way to bind, {model:?}";
    NotInBuffers { set, binding, kind } => "binding {binding} of set {set}: no {kind:?} can be in a descriptor buffer";
    SetSize { set, bytes } => "the driver says that set {set} has {bytes} bytes";
    BindingOffset { set, binding, offset, bytes } =>
        "the driver says that binding {binding} of set {set} is at byte {offset}, and not all of it is in the set's \
         {bytes}";
    Template(error) => "an update template could not be made: {error}";
}

/// The descriptors were not staged. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StageError {
    /// The bind point has no pipeline layout: call [`set_layout`](super::Binder::set_layout) before staging.
    NoLayout {
        /// The bind point.
        point: BindPoint,
        /// The number of the set.
        set: u32,
    },
    /// The pipeline layout does not have the set.
    NoSuchSet {
        /// The given number.
        set: u32,
        /// The number of sets in the layout.
        sets: u32,
    },
    /// The set does not have the binding, or the binding has no descriptors.
    NoSuchBinding {
        /// The number of the set.
        set: u32,
        /// The given number.
        binding: u32,
    },
    /// The set has too many descriptors for staging. Write such a set in the program, and bind it with
    /// [`stage_set`](super::Binder::stage_set) or [`stage_buffer`](super::Binder::stage_buffer).
    SetTooLarge {
        /// The number of the set.
        set: u32,
        /// Its number of descriptors.
        descriptors: u32,
        /// The maximum number of staged descriptors.
        most: u32,
    },
    /// The range is outside the binding. Units: descriptors; bytes for inline uniform blocks.
    OutOfRange {
        /// The number of the binding.
        binding: u32,
        /// The start of the given range.
        first: u32,
        /// The length of the given range.
        asked: u64,
        /// The size of the binding.
        count: u32,
    },
    /// The binding has another type.
    WrongType {
        /// The number of the binding.
        binding: u32,
        /// Its type.
        expected: DescriptorKind,
        /// The given type.
        given: DescriptorKind,
    },
    /// The descriptor lacks data that descriptor buffers need.
    Data {
        /// The number of the binding.
        binding: u32,
        /// The index of the descriptor.
        element: u32,
        /// The missing data.
        source: DescriptorDataError,
    },
    /// The samplers of the binding are immutable.
    Immutable {
        /// The number of the binding.
        binding: u32,
    },
    /// The descriptors of the binding have no dynamic offsets.
    NotDynamic {
        /// The number of the binding.
        binding: u32,
        /// Its type.
        kind: DescriptorKind,
    },
    /// An offset or a size in bytes is misaligned.
    Misaligned {
        /// The number of the binding.
        binding: u32,
        /// The given value in bytes.
        given: u64,
        /// The alignment, in bytes.
        alignment: u64,
    },
    /// This set's layout has no `VkDescriptorSet`s: its descriptors are pushed, or are in a descriptor buffer.
    NoSets {
        /// The number of the set.
        set: u32,
    },
    /// The set's layout is not for descriptor buffers.
    NoBuffers {
        /// The number of the set.
        set: u32,
    },
    /// The offset of a set in a descriptor buffer is misaligned.
    MisalignedSet {
        /// The number of the set.
        set: u32,
        /// The given offset in bytes.
        given: u64,
        /// The alignment, in bytes.
        alignment: u64,
    },
    /// The set or the address of the descriptor buffer is null.
    NullSet {
        /// The number of the set.
        set: u32,
    },
}

sublet_engines::errors! { StageError:
    NoLayout { point, set } =>
        "set {set} is staged for {point:?}, which has no pipeline layout: call `set_layout` first";
    NoSuchSet { set, sets } => "there is no set {set}: the pipeline layout has {sets}";
    NoSuchBinding { set, binding } => "set {set} has no binding {binding}";
    SetTooLarge { set, descriptors, most } =>
        "set {set} has {descriptors} descriptors, and at most {most} are staged: give it as a whole";
    OutOfRange { binding, first, asked, count } => "{asked} from {first} on, and binding {binding} has {count}";
    WrongType { binding, expected, given } => "binding {binding} is of type {expected:?}, and not {given:?}";
    Data { binding, element, source } =>
        "element {element} of binding {binding} cannot be in a descriptor buffer: {source}", source;
    Immutable { binding } => "the samplers of binding {binding} are in its layout";
    NotDynamic { binding, kind } => "binding {binding} is of type {kind:?}, which has no dynamic offsets";
    Misaligned { binding, given, alignment } => "{given} for binding {binding} is not a multiple of {alignment}";
    NoSets { set } => "there are no descriptor sets of the layout of set {set}";
    NoBuffers { set } => "the layout of set {set} is not for descriptor buffers";
    MisalignedSet { set, given, alignment } => "offset {given} for set {set} is not a multiple of {alignment}";
    NullSet { set } => "what was given for set {set} is null";
}

/// The binder rejects the pipeline layout. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UseLayoutError {
    /// Its sets together are larger than a page, and only one page can be bound at a time.
    LargerThanPage {
        /// The size of all sets in a descriptor buffer, in bytes.
        bytes: u64,
        /// The size of a page in bytes.
        page_size: u64,
    },
    /// It was created for another [`DescriptorDevice`](crate::DescriptorDevice).
    Foreign {
        /// The pipeline layout.
        layout: vk::PipelineLayout,
    },
}

sublet_engines::errors! { UseLayoutError:
    LargerThanPage { bytes, page_size } => "the sets have {bytes} bytes, and a page of descriptors has {page_size}";
    Foreign { layout } => "{layout:?} was made for another device";
}

/// The [`Binder`](super::Binder) could not be created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateBinderError {
    /// The allocator of sets could not be created.
    Sets(CreateTransientSetsError),
    /// The arena for descriptor pages could not be created.
    Pages(CreateUploadError),
}

sublet_engines::errors! { CreateBinderError:
    Sets(error) => "there can be no descriptor sets: {error}";
    Pages(error) => "there can be no pages for descriptors: {error}";
}

/// The commit failed. Nothing was recorded, and the program may retry.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CommitError {
    /// A set could not be allocated.
    Sets(TransientError),
    /// The page for descriptors is full, and another page could not be created.
    Pages(UploadError),
    /// The program has staged more descriptor buffers of its own than can be bound beside the page.
    TooManyBuffers {
        /// The maximum number.
        most: usize,
    },
}

sublet_engines::errors! { CommitError:
    Sets(error) => "there is no descriptor set: {error}";
    Pages(error) => "there is no room for the bytes of descriptors: {error}";
    TooManyBuffers { most } => "more descriptor buffers of the program's own than the {most} that can be bound at once";
}
