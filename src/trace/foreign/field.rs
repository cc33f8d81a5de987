//! The fields of foreign events, in files.

use ash::vk;

use super::facts::{
    DriverMemoryAction, DriverMemoryReport, ForeignImage, ForeignMemoryFlags, ForeignObject,
    ForeignRequirements, MemoryNumber, ResourceNumber, SparseBinding,
};
use crate::operations::operations;
use crate::record::bytes::{Put, Take, Wrong};
use crate::record::encode::Operation;
use crate::trace::Event;
use crate::trace::fields::one_of;

/// A field of a foreign event.
pub(super) trait ForeignField: Sized {
    fn read(take: &mut Take<'_>) -> Result<Self, Wrong>;
    fn put(&self, put: &mut Vec<u8>);
}

/// Reads the fields of a struct in their order in the file.
macro_rules! structs {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl ForeignField for $name {
            fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
                Ok(Self { $($field: ForeignField::read(take)?),* })
            }

            fn put(&self, put: &mut Vec<u8>) {
                $(self.$field.put(put);)*
            }
        })*
    };
}
structs! {
    ForeignImage {
        format, width, height, depth, mip_levels, array_layers, samples, tiling, usage, flags, image_type
    }
    SparseBinding { resource_offset, size, memory, memory_offset }
    DriverMemoryReport { action, object, object_type, size, heap }
}

/// Implements the trait for types with a number in the file.
macro_rules! numbers {
    ($($type:ty: $take:ident, |$number:ident| $value:expr, |$field:ident| $back:expr;)*) => {
        $(impl ForeignField for $type {
            fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
                let $number = take.$take()?;
                $value
            }

            fn put(&self, put: &mut Vec<u8>) {
                let $field = *self;
                put.number(u64::from($back));
            }
        })*
    };
}

/// A Vulkan enumeration as the number of the file. Negative values take five bytes.
fn raw(number: u32) -> i32 {
    i32::from_le_bytes(number.to_le_bytes())
}

fn number(raw: i32) -> u32 {
    u32::from_le_bytes(raw.to_le_bytes())
}

numbers! {
    u32: small, |number| Ok(number), |value| value;
    u64: number, |number| Ok(number), |value| value;
    MemoryNumber: number, |number| Ok(Self(number)), |value| value.0;
    ResourceNumber: number, |number| Ok(Self(number)), |value| value.0;
    ForeignMemoryFlags: small, |bits| Ok(Self::from_bits_retain(bits)), |flags| flags.bits();
    vk::Format: small, |format| Ok(Self::from_raw(raw(format))), |format| number(format.as_raw());
    vk::ObjectType: small, |kind| Ok(Self::from_raw(raw(kind))), |kind| number(kind.as_raw());
    vk::ImageType: small, |kind| Ok(Self::from_raw(raw(kind))), |kind| number(kind.as_raw());
    vk::ImageUsageFlags: small, |bits| Ok(Self::from_raw(bits)), |flags| flags.as_raw();
    vk::ImageCreateFlags: small, |bits| Ok(Self::from_raw(bits)), |flags| flags.as_raw();
    // Errors are negative in Vulkan, and positive in the file.
    vk::Result: small, |error| Ok(Self::from_raw(raw(error).wrapping_neg())),
        |result| number(result.as_raw().wrapping_neg());
    // 2 is the tiling with a DRM modifier.
    vk::ImageTiling: small,
        |tiling| Ok(if tiling == 2 { Self::DRM_FORMAT_MODIFIER_EXT } else { Self::from_raw(raw(tiling)) }),
        |tiling| if tiling == Self::DRM_FORMAT_MODIFIER_EXT { 2 } else { number(tiling.as_raw()) };
    DriverMemoryAction: number,
        |action| one_of(&Self::ALL, action),
        |action| match action {
            Self::Allocated => 0_u32,
            Self::Freed => 1,
            Self::Imported => 2,
            Self::Unimported => 3,
            Self::Failed => 4,
        };
    // The numbers of objects begin at 1.
    Option<MemoryNumber>: number, |number| Ok((number != 0).then_some(MemoryNumber(number))),
        |memory| memory.map_or(0, |memory| memory.0);
    Option<ResourceNumber>: number, |number| Ok((number != 0).then_some(ResourceNumber(number))),
        |resource| resource.map_or(0, |resource| resource.0);
    Option<u64>: number, |number| Ok(number.checked_sub(1)),
        |value| value.map_or(0, |value| value.wrapping_add(1));
    Option<u32>: small, |number| Ok(number.checked_sub(1)),
        |value| value.map_or(0, |value| value.wrapping_add(1));
}

impl DriverMemoryAction {
    /// In the order of their numbers.
    const ALL: [Self; 5] = [Self::Allocated, Self::Freed, Self::Imported, Self::Unimported, Self::Failed];
}

impl ForeignField for ForeignRequirements {
    fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
        let mut requirements = Self {
            plane: ForeignField::read(take)?,
            size: take.number()?,
            alignment: take.number()?,
            memory_type_bits: take.small()?,
            ..Self::default()
        };
        let dedicated = take.number()?;
        requirements.prefers_dedicated = dedicated & 1 != 0;
        requirements.requires_dedicated = dedicated & 2 != 0;
        Ok(requirements)
    }

    fn put(&self, put: &mut Vec<u8>) {
        self.plane.put(put);
        put.number(self.size);
        put.number(self.alignment);
        put.number(self.memory_type_bits.into());
        put.number(u64::from(self.prefers_dedicated) | u64::from(self.requires_dedicated) << 1);
    }
}

impl ForeignField for ForeignObject {
    fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
        match take.number()? {
            0 => Ok(Self::Memory(MemoryNumber(take.number()?))),
            1 => Ok(Self::Resource(ResourceNumber(take.number()?))),
            _ => Err(Wrong::Number),
        }
    }

    fn put(&self, put: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Memory(memory) => (0, memory.0),
            Self::Resource(resource) => (1, resource.0),
        };
        put.number(kind);
        put.number(number);
    }
}

impl ForeignField for Box<str> {
    fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
        take.text().map(Self::from)
    }

    fn put(&self, put: &mut Vec<u8>) {
        put.text(self);
    }
}

impl<F: ForeignField> ForeignField for Box<F> {
    fn read(take: &mut Take<'_>) -> Result<Self, Wrong> {
        F::read(take).map(Self::new)
    }

    fn put(&self, put: &mut Vec<u8>) {
        F::put(self, put);
    }
}

macro_rules! foreign_events {
    (
        { $($other:tt)* }
        { $($own:tt)* }
        { $(
            $(#[$doc:meta])* $name:ident $code:literal $word:literal
            $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?;
        )* }
    ) => {
        /// Reads the fields of a foreign event; `None` for an operation of this library.
        pub(super) fn read_fields(operation: Operation, take: &mut Take<'_>) -> Result<Option<Event>, Wrong> {
            Ok(Some(match operation {
                $(Operation::$name => Event::$name $({ $($field: <$type>::read(take)?),* })?,)*
                _ => return Ok(None),
            }))
        }

        /// Writes the fields of a foreign event, and nothing for others.
        pub(super) fn put_fields(event: &Event, put: &mut Vec<u8>) {
            match event {
                $(Event::$name $({ $($field),* })? => { $($($field.put(put);)*)? })*
                _ => {}
            }
        }
    };
}
operations!(foreign_events);
