//! Which family of queues owns what, of the resources that one family owns at a time.

use std::collections::BTreeMap;
use std::ops::Range;

use ash::vk;

use super::AccessRange;
use super::spaces::Space;

/// The fields that both barriers of an ownership transfer must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnershipTransfer {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) layouts: (vk::ImageLayout, vk::ImageLayout),
}

/// Returns true for a family that stands for another API or device, whose accesses are unknown.
pub(crate) fn is_outside(family: u32) -> bool {
    [vk::QUEUE_FAMILY_EXTERNAL, vk::QUEUE_FAMILY_FOREIGN_EXT].contains(&family)
}

/// A barrier of a change of owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Release(OwnershipTransfer),
    Acquire(OwnershipTransfer),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FamilyOwnership {
    /// The first family that uses it becomes the owner.
    #[default]
    Nobody,
    Family(u32),
    Released(OwnershipTransfer),
}

/// An operation of a family on bytes or subresources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Needs what is there.
    Use,
    /// Writes, whatever was there: takes it from whoever had it.
    Overwrite,
    Discard,
    Half(Half),
}

/// A family does what only another one may do.
#[derive(Debug)]
pub(crate) struct Misowned {
    pub(crate) place: AccessRange,
    pub(crate) range: Range<u64>,
    pub(crate) owner: FamilyOwnership,
    pub(crate) family: u32,
    pub(crate) act: Act,
}

/// The owners of bytes and subresources, by the handle of the resource.
#[derive(Debug, Default)]
pub(crate) struct Owners(BTreeMap<u64, Space<FamilyOwnership>>);

impl Owners {
    pub(crate) fn act(&mut self, family: u32, place: &AccessRange, act: Act) -> Option<Misowned> {
        if !place.exclusive {
            return None;
        }
        let allowed = |owner: FamilyOwnership| match (act, owner) {
            (Act::Overwrite | Act::Discard, _) => true,
            (Act::Use | Act::Half(Half::Release(_)), owner) => {
                matches!(owner, FamilyOwnership::Nobody) || owner == FamilyOwnership::Family(family)
            }
            // A resource from outside was released there, unseen. It came from this device before, or is new.
            (Act::Half(Half::Acquire(own)), owner) if is_outside(own.from) => match owner {
                FamilyOwnership::Nobody => true,
                FamilyOwnership::Released(away) => away.to == own.from,
                FamilyOwnership::Family(_) => false,
            },
            (Act::Half(Half::Acquire(own)), owner) => owner == FamilyOwnership::Released(own),
        };
        let next = match act {
            Act::Use | Act::Overwrite | Act::Half(Half::Acquire(_)) => FamilyOwnership::Family(family),
            Act::Discard => FamilyOwnership::Nobody,
            Act::Half(Half::Release(transfer)) => FamilyOwnership::Released(transfer),
        };
        let space = self.0.entry(place.of.raw()).or_default();
        let mut found = None;
        for range in &place.ranges {
            // To what nobody has touched, only an acquire objects: then it becomes an interval too.
            space.change(range, |_| ());
            found = found.or_else(|| {
                let (range, owner) = space.overlapping(range).find(|(_, owner)| !allowed(**owner))?;
                Some(Misowned { place: place.clone(), range, owner: *owner, family, act })
            });
            space.change(range, |owner| *owner = next);
        }
        found
    }

    /// Forgets resources that are gone.
    pub(crate) fn retain(&mut self, exists: impl Fn(u64) -> bool) {
        self.0.retain(|handle, _| exists(*handle));
    }
}
