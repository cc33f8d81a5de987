//! Selection and order of the memory types for an allocation.
//!
//! The rule is VMA's. Usage and flags become three sets of properties: required, preferred and not preferred. A type
//! that lacks a required property is excluded. The cost of a type is the number of preferred properties that it lacks
//! plus the number of not preferred ones that it has. Types are ordered by cost, then by index.
//!
//! Usually there are no explicit `required_flags` and `preferred_flags`. Then the sets depend only on usage,
//! host-access flags and the device's access to the resource. That makes 55 cases for one GPU. They are ranked once, so
//! that a choice is an index computation and a few bit operations:
//!
//! ```text
//! case (usage, host access, device access)  ->  levels[0]  types of cost 0   0b0000_0010
//!                                               levels[1]  types of cost 1   0b0000_1001
//!                                               levels[2]  types of cost 2   0b0000_0100    and so on
//! ```
//!
//! Masking a level keeps its order, because within a level the order is that of the bits.

use ash::vk;
use ash::vk::MemoryPropertyFlags as Properties;

use crate::create_info::{AllocationCreateFlags, AllocatorCreateFlags, MemoryUsage};
use sublet_engines::cast::index;

#[cfg(test)]
mod tests;

/// The request of one allocation for a memory type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) usage: MemoryUsage,
    /// Only the host-access flags matter.
    pub(crate) flags: AllocationCreateFlags,
    pub(crate) required: vk::MemoryPropertyFlags,
    pub(crate) preferred: vk::MemoryPropertyFlags,
    /// The types that the resource and the caller both allow; 0 allows none.
    pub(crate) memory_type_bits: u32,
    /// True if the device does more with the resource than copy it; `None` if the resource is unknown.
    pub(crate) device_access: Option<bool>,
}

/// No memory type can serve an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoMemoryType {
    /// Every allowed type lacks a required property. Remedy: require less, or allow more types.
    NoneFits {
        /// The requested usage.
        usage: MemoryUsage,
        /// The properties that the caller or the usage requires.
        required: vk::MemoryPropertyFlags,
        /// A bit for each type that the resource, the caller and the allocator all allow.
        memory_type_bits: u32,
    },
    /// The three `Auto` usages depend on the usage of the buffer or image, which is not known. Remedy: another
    /// usage, or a method that takes the resource's create-info.
    AutoWithoutResource {
        /// The requested usage.
        usage: MemoryUsage,
    },
}

sublet_engines::errors! { NoMemoryType:
    NoneFits { memory_type_bits: 0, .. } =>
        "no memory type is allowed by the resource, the caller and the allocator alike";
    NoneFits { usage, required, memory_type_bits } =>
        "none of the allowed memory types (bits {memory_type_bits:#x}) has the properties [{required:?}] that the \
         allocation (usage {usage:?}) requires";
    AutoWithoutResource { usage } => "the usage {usage:?} needs to know the usage of the buffer or image";
}

/// The memory types of one GPU, ranked for every usage.
#[derive(Clone, Debug)]
pub(crate) struct MemoryTypeTable {
    cases: [Ranking; CASES],
    /// Properties by type; empty beyond the last type.
    properties: [vk::MemoryPropertyFlags; vk::MAX_MEMORY_TYPES],
    /// The types that exist and that the allocator may use.
    allowed: u32,
    integrated: bool,
}

/// The types that fit one case, by cost: I1, the levels share no bit; I2, `fitting` is their union.
#[derive(Clone, Copy, Debug, Default)]
struct Ranking {
    fitting: u32,
    levels: [u32; LEVELS],
}

/// Costs range from 0 to 4: no usage has more than four preferred and not preferred properties together.
const LEVELS: usize = 5;
/// Usages before the first `Auto` one.
const PLAIN_USAGES: usize = 7;
/// Host access as three bits (see [`HOST_ACCESS_SHIFT`]), and one bit for device access.
const AUTO_CASES: usize = 16;
const CASES: usize = PLAIN_USAGES + 3 * AUTO_CASES;

impl MemoryTypeTable {
    /// Ranks the types of `memory` whose bits are set in `allowed`, see [`global_mask`].
    ///
    /// # Complexity
    /// O(types), and 55 rankings of all of them at once. Meant to be called once per allocator.
    pub(crate) fn new(
        memory: &vk::PhysicalDeviceMemoryProperties,
        device_type: vk::PhysicalDeviceType,
        allowed: u32,
    ) -> Self {
        let mut table = Self {
            cases: [Ranking::default(); CASES],
            properties: [Properties::empty(); vk::MAX_MEMORY_TYPES],
            allowed: allowed & existing(memory),
            // A CPU counts as discrete, as in VMA: its memory types do not differ.
            integrated: device_type == vk::PhysicalDeviceType::INTEGRATED_GPU,
        };
        for (properties, memory_type) in table.properties.iter_mut().zip(types(memory)) {
            *properties = memory_type.property_flags;
        }
        // By property: the types that have it.
        let mut having = [0; 32];
        for type_index in bits(table.allowed) {
            for property in bits(table.properties[index(type_index)].as_raw()) {
                having[index(property)] |= 1 << type_index;
            }
        }
        for &usage in MemoryUsage::ALL {
            // A plain usage is one case, for any flags and resource.
            for access in 0..if usage.is_auto() { 16 } else { 1 } {
                let flags = AllocationCreateFlags::from_bits_retain(access >> 1 << HOST_ACCESS_SHIFT);
                let wish = Wish {
                    usage,
                    flags,
                    required: Properties::empty(),
                    preferred: Properties::empty(),
                    memory_type_bits: table.allowed,
                    device_access: Some(access & 1 != 0),
                };
                if let Some(case) = case(&wish) {
                    table.cases[case] = table.rank(&wish, &having);
                }
            }
        }
        table
    }

    /// Returns the types in the order of preference: the best, and the others.
    ///
    /// # Errors
    /// Fails if no allowed type has the required properties, or if an `Auto` usage meets an unknown resource.
    ///
    /// # Complexity
    /// O(1); the first candidate costs O(1) too. With explicit `required` or `preferred` properties both are O(types).
    #[inline]
    pub(crate) fn choose(&self, wish: &Wish) -> Result<(u32, Candidates<'_>), NoMemoryType> {
        let mut others = self.candidates(wish)?;
        let best = others.next().ok_or_else(|| self.none_fits(wish))?;
        Ok((best, others))
    }

    #[inline]
    fn candidates(&self, wish: &Wish) -> Result<Candidates<'_>, NoMemoryType> {
        let Some(case) = case(wish) else {
            return Err(NoMemoryType::AutoWithoutResource { usage: wish.usage });
        };
        let (remaining, order) = if (wish.required | wish.preferred).is_empty() {
            let ranking = &self.cases[case];
            (ranking.fitting & wish.memory_type_bits, TypeOrder::Ranked(&ranking.levels))
        } else {
            self.choose_exactly(wish)
        };
        Ok(Candidates { remaining, order })
    }

    /// The best type of [`Self::choose`]; `None` if there are explicit properties, or no type fits.
    #[inline]
    pub(crate) fn best(&self, wish: &Wish) -> Option<u32> {
        if !(wish.required | wish.preferred).is_empty() {
            return None;
        }
        let ranking = &self.cases[case(wish)?];
        // Only the first level that is not empty counts: its lowest bit is the lowest cost and the lowest index.
        let mut levels = ranking.levels.iter().map(|level| level & wish.memory_type_bits);
        levels.find(|&level| level != 0).map(u32::trailing_zeros)
    }

    #[inline(never)]
    fn choose_exactly(&self, wish: &Wish) -> (u32, TypeOrder<'_>) {
        let preferences = Preferences::new(wish, self.integrated);
        let fitting = bits(self.allowed & wish.memory_type_bits)
            .filter(|&type_index| self.properties[index(type_index)].contains(preferences.required))
            .fold(0, |fitting, type_index| fitting | 1 << type_index);
        (fitting, TypeOrder::Exact { properties: &self.properties, preferences })
    }

    #[cold]
    fn none_fits(&self, wish: &Wish) -> NoMemoryType {
        NoMemoryType::NoneFits {
            usage: wish.usage,
            required: Preferences::new(wish, self.integrated).required,
            memory_type_bits: wish.memory_type_bits & self.allowed,
        }
    }

    /// Ranks all types at once: each property moves the types that lack it, or that have it, to the next level.
    fn rank(&self, wish: &Wish, having: &[u32; 32]) -> Ranking {
        let Preferences { required, preferred, not_preferred } = Preferences::new(wish, self.integrated);
        let of = |properties: Properties| bits(properties.as_raw()).map(|property| having[index(property)]);
        let fitting = of(required).fold(self.allowed, |fitting, types| fitting & types);
        let mut levels = [0; LEVELS];
        levels[0] = fitting;
        let worse = of(preferred).map(|types| !types).chain(of(not_preferred));
        for worse in worse.filter(|worse| worse & fitting != 0) {
            let mut moved = 0;
            for level in &mut levels {
                (*level, moved) = (*level & !worse | moved, *level & worse);
            }
            debug_assert_eq!(moved, 0, "a cost is below {LEVELS}");
        }
        Ranking { fitting, levels }
    }
}

/// Memory types in the order of preference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates<'table> {
    remaining: u32,
    order: TypeOrder<'table>,
}

#[derive(Clone, Copy, Debug)]
enum TypeOrder<'table> {
    Ranked(&'table [u32; LEVELS]),
    Exact { properties: &'table [vk::MemoryPropertyFlags; vk::MAX_MEMORY_TYPES], preferences: Preferences },
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let best = match self.order {
            // Only the first level that is not empty counts: its lowest bit is the lowest cost and the lowest index.
            TypeOrder::Ranked(levels) => levels
                .iter()
                .map(|level| level & self.remaining)
                .find(|&level| level != 0)
                .map(u32::trailing_zeros),
            // `min_by_key` takes the first of equals, which is the lowest index.
            TypeOrder::Exact { properties, preferences } => {
                bits(self.remaining).min_by_key(|&type_index| preferences.cost(properties[index(type_index)]))
            }
        }?;
        self.remaining &= !(1 << best);
        Some(best)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = index(self.remaining.count_ones());
        (count, Some(count))
    }
}

impl ExactSizeIterator for Candidates<'_> {}
impl std::iter::FusedIterator for Candidates<'_> {}

/// The property sets of a wish on one GPU.
#[derive(Clone, Copy, Debug)]
struct Preferences {
    required: vk::MemoryPropertyFlags,
    preferred: vk::MemoryPropertyFlags,
    not_preferred: vk::MemoryPropertyFlags,
}

impl Preferences {
    /// An unknown resource counts as accessed by the device; [`case`] has rejected it where that matters.
    fn new(wish: &Wish, integrated: bool) -> Self {
        let mut sets =
            Self { required: wish.required, preferred: wish.preferred, not_preferred: Properties::empty() };
        // On an integrated GPU all memory is in effect device-local, so the caller's HOST_VISIBLE matters more.
        let keeps_host = integrated && wish.preferred.contains(Properties::HOST_VISIBLE);
        match wish.usage {
            MemoryUsage::Unknown => {}
            MemoryUsage::GpuOnly => sets.prefer_device_local_unless(keeps_host),
            MemoryUsage::CpuOnly => sets.required |= Properties::HOST_VISIBLE | Properties::HOST_COHERENT,
            MemoryUsage::CpuToGpu => {
                sets.required |= Properties::HOST_VISIBLE;
                sets.prefer_device_local_unless(keeps_host);
            }
            MemoryUsage::GpuToCpu => {
                sets.required |= Properties::HOST_VISIBLE;
                sets.preferred |= Properties::HOST_CACHED;
            }
            MemoryUsage::CpuCopy => sets.not_preferred |= Properties::DEVICE_LOCAL,
            MemoryUsage::GpuLazilyAllocated => sets.required |= Properties::LAZILY_ALLOCATED,
            MemoryUsage::Auto | MemoryUsage::AutoPreferDevice | MemoryUsage::AutoPreferHost => {
                sets.add_auto(wish, integrated);
            }
        }
        // AMD's uncached types are slow for the device, so only callers that name them get them.
        let amd = Properties::DEVICE_COHERENT_AMD | Properties::DEVICE_UNCACHED_AMD;
        if !(wish.required | wish.preferred).intersects(amd) {
            sets.not_preferred |= Properties::DEVICE_UNCACHED_AMD;
        }
        sets
    }

    fn add_auto(&mut self, wish: &Wish, integrated: bool) {
        let device_access = wish.device_access.unwrap_or(true);
        let transfer = wish.flags.contains(AllocationCreateFlags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD);
        let prefers_host = wish.usage == MemoryUsage::AutoPreferHost;
        // A copy is worthwhile only if it makes device memory possible, on a GPU with its own memory.
        let device_first = !integrated && device_access && transfer && !prefers_host;

        if wish.flags.contains(AllocationCreateFlags::HOST_ACCESS_RANDOM) {
            self.preferred |= Properties::HOST_CACHED;
            if device_first {
                // Without HOST_VISIBLE on purpose: a type with all three wins anyway, and a device-local type must not
                // lose to one that is only host-visible.
                self.preferred |= Properties::DEVICE_LOCAL;
            } else {
                self.want_host_visible(transfer);
            }
        } else if wish.flags.contains(AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE) {
            // Write-combined memory is better for writing in order.
            self.not_preferred |= Properties::HOST_CACHED;
            if device_first {
                self.preferred |= Properties::DEVICE_LOCAL | Properties::HOST_VISIBLE;
            } else {
                self.want_host_visible(transfer);
                // A resource that the device works on belongs in device memory; one that it only copies does not.
                self.weigh_device_local(match wish.usage {
                    MemoryUsage::AutoPreferHost => false,
                    MemoryUsage::AutoPreferDevice => true,
                    _ => device_access,
                });
            }
        } else {
            self.weigh_device_local(!prefers_host);
        }
    }

    /// `DEVICE_LOCAL` may end up both preferred and not preferred, if the caller prefers it and the usage does not.
    /// Then it does not change the cost.
    fn weigh_device_local(&mut self, wanted: bool) {
        if wanted {
            self.preferred |= Properties::DEVICE_LOCAL;
        } else {
            self.not_preferred |= Properties::DEVICE_LOCAL;
        }
    }

    fn prefer_device_local_unless(&mut self, exempt: bool) {
        if !exempt {
            self.preferred |= Properties::DEVICE_LOCAL;
        }
    }

    fn want_host_visible(&mut self, transfer: bool) {
        if transfer {
            self.preferred |= Properties::HOST_VISIBLE;
        } else {
            self.required |= Properties::HOST_VISIBLE;
        }
    }

    /// Cannot overflow: at most 32 properties are missing, and 32 others unwelcome.
    fn cost(self, properties: vk::MemoryPropertyFlags) -> u32 {
        let missing = self.preferred & !properties;
        let unwelcome = self.not_preferred & properties;
        missing.as_raw().count_ones() + unwelcome.as_raw().count_ones()
    }
}

/// The three flags that concern host access are neighbours; this is the lowest of them.
const HOST_ACCESS_SHIFT: u32 = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE.bits().trailing_zeros();
const _: () = assert!(
    AllocationCreateFlags::HOST_ACCESS_MASK
        .union(AllocationCreateFlags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD)
        .bits()
        == 0b111 << HOST_ACCESS_SHIFT
);

/// The index of a wish's case, below [`CASES`], ignoring explicit properties; `None` for `Auto` without a resource.
#[inline]
fn case(wish: &Wish) -> Option<usize> {
    let number = index(wish.usage.number());
    let Some(auto) = number.checked_sub(PLAIN_USAGES) else {
        return Some(number);
    };
    let host_access = index(wish.flags.bits() >> HOST_ACCESS_SHIFT & 0b111);
    let access = host_access << 1 | usize::from(wish.device_access?);
    Some(PLAIN_USAGES + auto * AUTO_CASES + access)
}

/// The memory types that a driver reports, at most as many as Vulkan allows.
fn types(memory: &vk::PhysicalDeviceMemoryProperties) -> impl Iterator<Item = &vk::MemoryType> {
    memory.memory_types.iter().take(index(memory.memory_type_count))
}

/// A bit for each memory type of the device.
fn existing(memory: &vk::PhysicalDeviceMemoryProperties) -> u32 {
    types(memory).fold(0, |bits, _| bits << 1 | 1)
}

/// The indices of the set bits, lowest first.
#[inline]
fn bits(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(lowest)
    })
}

/// A bit for each memory type that an allocator with `flags` may use: all except AMD's device-coherent types, which
/// need an enabled feature.
///
/// Source: VUID-vkAllocateMemory-deviceCoherentMemory-02790.
pub(crate) fn global_mask(memory: &vk::PhysicalDeviceMemoryProperties, flags: AllocatorCreateFlags) -> u32 {
    if flags.contains(AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY) {
        return existing(memory);
    }
    bits(existing(memory))
        .filter(|&type_index| {
            let properties = memory.memory_types[index(type_index)].property_flags;
            !properties.contains(Properties::DEVICE_COHERENT_AMD)
        })
        .fold(0, |mask, type_index| mask | 1 << type_index)
}

const TRANSFERS: u64 = 0b11;
// The bits of a transfer are the same for buffers and for images.
const _: () = assert!(
    vk::BufferUsageFlags2KHR::TRANSFER_SRC.as_raw() == 1
        && vk::BufferUsageFlags2KHR::TRANSFER_DST.as_raw() == 2
        && vk::ImageUsageFlags::TRANSFER_SRC.as_raw() == 1
        && vk::ImageUsageFlags::TRANSFER_DST.as_raw() == 2
);

/// Returns true if the device does more with a buffer or image of this usage than copy it; `None` if the usage is
/// empty, that is, unknown.
///
/// The usage of a buffer has the 64 bits of VK_KHR_maintenance5, whose lower half is the older `VkBufferUsageFlags`.
#[inline]
pub(crate) fn device_access(usage: u64) -> Option<bool> {
    (usage != 0).then_some(usage & !TRANSFERS != 0)
}
