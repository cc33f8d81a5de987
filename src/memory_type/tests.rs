//! Two checks: a slow oracle derived directly from the rule, over all cases, and a table of hand-computed choices,
//! because an oracle shares its author's misunderstandings.

use super::*;

const DL: u32 = Properties::DEVICE_LOCAL.as_raw();
const HV: u32 = Properties::HOST_VISIBLE.as_raw();
const HC: u32 = Properties::HOST_COHERENT.as_raw();
const CA: u32 = Properties::HOST_CACHED.as_raw();
const LAZY: u32 = Properties::LAZILY_ALLOCATED.as_raw();
const PROT: u32 = Properties::PROTECTED.as_raw();
const AMD_COHERENT: u32 = Properties::DEVICE_COHERENT_AMD.as_raw();
const AMD_UNCACHED: u32 = Properties::DEVICE_UNCACHED_AMD.as_raw();
const AMD: u32 = AMD_COHERENT | AMD_UNCACHED;

const DISCRETE: vk::PhysicalDeviceType = vk::PhysicalDeviceType::DISCRETE_GPU;
const INTEGRATED: vk::PhysicalDeviceType = vk::PhysicalDeviceType::INTEGRATED_GPU;

const RANDOM: AllocationCreateFlags = AllocationCreateFlags::HOST_ACCESS_RANDOM;
const WRITE: AllocationCreateFlags = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE;
const TRANSFER: AllocationCreateFlags = AllocationCreateFlags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD;
const NONE: AllocationCreateFlags = AllocationCreateFlags::empty();

/// Memory types as drivers list them; heaps do not matter here.
#[derive(Debug)]
struct Layout {
    name: String,
    device_type: vk::PhysicalDeviceType,
    types: Vec<u32>,
}

/// Layouts like those of the vendors' drivers. `synthetic` ones have features of no existing driver.
fn layouts() -> Vec<Layout> {
    let layout = |name: &str, device_type, types: &[u32]| Layout {
        name: name.to_owned(),
        device_type,
        types: types.to_vec(),
    };
    #[rustfmt::skip]
    let mut layouts = vec![
        layout("nvidia", DISCRETE, &[0, DL, HV | HC, HV | HC | CA, DL | HV | HC]),
        layout("nvidia without bar", DISCRETE, &[0, DL, HV | HC, HV | HC | CA]),
        layout("nvidia, older driver", DISCRETE, &[0, 0, 0, 0, 0, 0, 0, DL, DL, HV | HC, HV | HC | CA]),
        layout("amd", DISCRETE, &[DL, DL | HV | HC, HV | HC, HV | HC | CA,
            DL | AMD, DL | HV | HC | AMD, HV | HC | AMD, HV | HC | CA | AMD]),
        layout("radv", DISCRETE, &[DL, DL, HV | HC, DL | HV | HC, DL | HV | HC, HV | HC | CA, HV | HC | CA,
            DL | AMD, HV | HC | AMD, DL | HV | HC | AMD, HV | HC | CA | AMD]),
        layout("amd, integrated", INTEGRATED, &[DL, DL | HV | HC, HV | HC, HV | HC | CA,
            DL | AMD, DL | HV | HC | AMD, HV | HC | AMD, HV | HC | CA | AMD]),
        layout("intel arc", DISCRETE, &[DL, HV | HC | CA, DL | HV | HC]),
        layout("intel, integrated", INTEGRATED, &[DL, DL | HV | HC, DL | HV | HC | CA, DL | PROT]),
        layout("intel, integrated, one type", INTEGRATED, &[DL | HV | HC | CA]),
        layout("apple", INTEGRATED, &[DL, DL | HV | HC | CA, DL | HV | CA, DL | LAZY]),
        layout("adreno", INTEGRATED, &[DL, DL | HV | HC, DL | HV | CA, DL | HV | HC | CA, DL | LAZY, DL | PROT]),
        layout("mali", INTEGRATED, &[DL | HV | HC, DL | HV | HC | CA, DL | HV | CA, DL | LAZY, DL | PROT]),
        layout("raspberry pi", INTEGRATED, &[DL | HV | HC]),
        layout("lavapipe", vk::PhysicalDeviceType::CPU, &[DL | HV | HC | CA]),
        layout("cpu with two types", vk::PhysicalDeviceType::CPU, &[HV | HC | CA, DL | HV | HC]),
        layout("virtual", vk::PhysicalDeviceType::VIRTUAL_GPU, &[HV | HC | CA, DL, HV | CA, DL | HV | HC | CA]),
        layout("synthetic: no type", DISCRETE, &[]),
        layout("synthetic: unknown property bits", DISCRETE, &[DL | 1 << 31, HV | HC | 1 << 30, 1 << 20 | DL | HV, 0]),
    ];
    // All 32 types: nothing may assume that a shift by the count fits 32 bits.
    let everything = (0..32).map(|bits| bits & 0xf | (bits & 0x10) << 3).collect::<Vec<_>>();
    layouts.push(layout("synthetic: 32 types", DISCRETE, &everything));
    layouts.push(layout("synthetic: 32 types, integrated", INTEGRATED, &everything));
    layouts
}

/// The layouts of the simulated device, which come from real drivers.
fn simulated() -> impl Iterator<Item = Layout> {
    sublet_sim::profiles::ALL.iter().map(|profile| Layout {
        name: format!("profile {}", profile.name),
        device_type: profile.device_type,
        types: profile.types.iter().map(|memory_type| memory_type.flags.as_raw()).collect(),
    })
}

fn memory(types: &[u32]) -> vk::PhysicalDeviceMemoryProperties {
    let mut memory = vk::PhysicalDeviceMemoryProperties {
        memory_type_count: u32::try_from(types.len()).unwrap(),
        ..Default::default()
    };
    for (memory_type, &flags) in memory.memory_types.iter_mut().zip(types) {
        memory_type.property_flags = Properties::from_raw(flags);
    }
    memory
}

fn table(layout: &Layout, flags: AllocatorCreateFlags) -> MemoryTypeTable {
    let memory = memory(&layout.types);
    MemoryTypeTable::new(&memory, layout.device_type, global_mask(&memory, flags))
}

fn wish(usage: MemoryUsage, flags: AllocationCreateFlags) -> Wish {
    Wish {
        usage,
        flags,
        required: Properties::empty(),
        preferred: Properties::empty(),
        memory_type_bits: u32::MAX,
        device_access: Some(true),
    }
}

/// The rule, word by word and unoptimized: required, preferred and not preferred properties.
fn oracle_sets(device_type: vk::PhysicalDeviceType, wish: &Wish) -> Option<(u32, u32, u32)> {
    let (user_required, user_preferred) = (wish.required.as_raw(), wish.preferred.as_raw());
    let integrated = device_type == INTEGRATED;
    let unless_host = if integrated && user_preferred & HV != 0 { 0 } else { DL };
    let random = wish.flags.contains(RANDOM);
    let write = wish.flags.contains(WRITE) && !random;
    let transfer = wish.flags.contains(TRANSFER);
    let host = wish.usage == MemoryUsage::AutoPreferHost;
    let device = wish.usage == MemoryUsage::AutoPreferDevice;

    let (required, preferred, mut not_preferred) = match wish.usage {
        MemoryUsage::Unknown => (0, 0, 0),
        MemoryUsage::GpuOnly => (0, unless_host, 0),
        MemoryUsage::CpuOnly => (HV | HC, 0, 0),
        MemoryUsage::CpuToGpu => (HV, unless_host, 0),
        MemoryUsage::GpuToCpu => (HV, CA, 0),
        MemoryUsage::CpuCopy => (0, 0, DL),
        MemoryUsage::GpuLazilyAllocated => (LAZY, 0, 0),
        MemoryUsage::Auto | MemoryUsage::AutoPreferDevice | MemoryUsage::AutoPreferHost => {
            let access = wish.device_access?;
            match (random, write, transfer, access) {
                (true, _, true, true) if !integrated && !host => (0, CA | DL, 0),
                (true, _, true, _) => (0, CA | HV, 0),
                (true, _, false, _) => (HV, CA, 0),
                (_, true, true, true) if !integrated && !host => (0, DL | HV, CA),
                (_, true, true, true) if host => (0, HV, CA | DL),
                (_, true, true, true) => (0, HV | DL, CA),
                (_, true, false, true) if host => (HV, 0, CA | DL),
                (_, true, false, true) => (HV, DL, CA),
                (_, true, true, false) if device => (0, HV | DL, CA),
                (_, true, true, false) => (0, HV, CA | DL),
                (_, true, false, false) if device => (HV, DL, CA),
                (_, true, false, false) => (HV, 0, CA | DL),
                (false, false, _, _) if host => (0, 0, DL),
                (false, false, _, _) => (0, DL, 0),
            }
        }
    };
    if (user_required | user_preferred) & AMD == 0 {
        not_preferred |= AMD_UNCACHED;
    }
    Some((user_required | required, user_preferred | preferred, not_preferred))
}

/// The types in order: finds the best one, removes it, and repeats. `None` if the resource must be known.
fn oracle(layout: &Layout, allowed: u32, wish: &Wish) -> Option<Vec<u32>> {
    let (required, preferred, not_preferred) = oracle_sets(layout.device_type, wish)?;
    let mut left = wish.memory_type_bits & allowed;
    let mut order = Vec::new();
    loop {
        let mut best: Option<(u32, u32)> = None;
        for (type_index, &flags) in (0..).zip(&layout.types) {
            if left >> type_index & 1 == 0 || flags & required != required {
                continue;
            }
            let cost = (preferred & !flags).count_ones() + (flags & not_preferred).count_ones();
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, type_index));
            }
        }
        let Some((_, type_index)) = best else {
            return Some(order);
        };
        order.push(type_index);
        left &= !(1 << type_index);
    }
}

/// A deterministic generator, so that the subsets are the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 >> 32).unwrap()
    }
}

/// All subsets of a few types. For many types: all of them, none, a few alone, all but a few, and random ones.
fn subsets(count: usize, random: &mut Random) -> Vec<u32> {
    if count <= 4 {
        return (0..1 << count).collect();
    }
    let some = (0..count).step_by(count.div_ceil(4));
    let singles = some.clone().map(|bit| 1 << bit);
    let without = some.map(|bit| !(1 << bit));
    let mut subsets: Vec<u32> = singles.chain(without).chain([0, u32::MAX]).collect();
    subsets.extend((0..4).map(|_| random.next()));
    subsets
}

/// Combinations of explicit properties, so that the slow path meets the same cases as the fast one.
const EXPLICIT: [(u32, u32); 16] = [
    (0, 0),
    (DL, 0),
    (HV, 0),
    (HC, 0),
    (CA | HV, 0),
    (DL | HV, 0),
    (LAZY, 0),
    (AMD_COHERENT, 0),
    (0, DL),
    (0, HV),
    (0, CA),
    (0, HV | HC | CA),
    (0, AMD_UNCACHED),
    (0, AMD_COHERENT | DL),
    (HV, CA | LAZY | PROT),
    (1 << 31, 1 << 30 | DL),
];

#[test]
fn every_choice_is_the_oracles() {
    let mut random = Random(0x5eed);
    let mut compared = 0_u64;
    let mut several = 0_u64;
    for layout in layouts().into_iter().chain(simulated()) {
        for create_flags in [AllocatorCreateFlags::empty(), AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY]
        {
            let memory = memory(&layout.types);
            let allowed = global_mask(&memory, create_flags);
            let table = MemoryTypeTable::new(&memory, layout.device_type, allowed);
            for memory_type_bits in subsets(layout.types.len(), &mut random) {
                for &usage in MemoryUsage::ALL {
                    for host in [NONE, WRITE, RANDOM, WRITE | RANDOM] {
                        for transfer in [NONE, TRANSFER] {
                            for device_access in [None, Some(false), Some(true)] {
                                for (required, preferred) in EXPLICIT {
                                    // The flags that do not concern memory types must not matter.
                                    let noise =
                                        AllocationCreateFlags::from_bits_retain(random.next() & !0x1c00);
                                    let wish = Wish {
                                        usage,
                                        flags: host | transfer | noise,
                                        required: Properties::from_raw(required),
                                        preferred: Properties::from_raw(preferred),
                                        memory_type_bits,
                                        device_access,
                                    };
                                    let expected = oracle(&layout, allowed, &wish);
                                    several +=
                                        u64::from(expected.as_ref().is_some_and(|types| types.len() > 1));
                                    let best = expected.as_ref().and_then(|types| types.first().copied());
                                    assert_eq!(
                                        table.choose(&wish).ok().map(|(best, _)| best),
                                        best,
                                        "{wish:?}"
                                    );
                                    check(&layout, &table, &wish, expected);
                                    compared += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // Checks that the loops ran and had something to order.
    assert!(compared > 1_000_000 && several > 100_000, "{compared} compared, {several} with a choice");
}

impl MemoryTypeTable {
    /// The best type, followed by the others.
    fn choose_all(&self, wish: &Wish) -> Result<Candidates<'_>, NoMemoryType> {
        self.choose(wish)?;
        self.candidates(wish)
    }
}

fn check(layout: &Layout, table: &MemoryTypeTable, wish: &Wish, expected: Option<Vec<u32>>) {
    let name = &layout.name;
    match (table.choose_all(wish), expected) {
        (Ok(candidates), Some(expected)) => {
            assert_eq!(candidates.len(), expected.len(), "{name}: {wish:?}");
            assert!(
                candidates.eq(expected.iter().copied()),
                "{name}: {wish:?}: {candidates:?}, not {expected:?}"
            );
        }
        (Err(NoMemoryType::NoneFits { usage, required, memory_type_bits }), Some(expected)) => {
            assert!(expected.is_empty(), "{name}: {wish:?}: nothing, not {expected:?}");
            let sets = oracle_sets(layout.device_type, wish).unwrap();
            assert_eq!((usage, required.as_raw()), (wish.usage, sets.0), "{name}: {wish:?}");
            assert_eq!(memory_type_bits, wish.memory_type_bits & table.allowed, "{name}: {wish:?}");
        }
        (Err(NoMemoryType::AutoWithoutResource { usage }), None) => assert_eq!(usage, wish.usage),
        (got, expected) => panic!("{name}: {wish:?}: {got:?}, not {expected:?}"),
    }
}

/// A row of the table below. Resources are `Some(true)` for a buffer or image that the device works on, `Some(false)`
/// for one that is only copied from or to.
type Row = (&'static str, MemoryUsage, AllocationCreateFlags, Option<bool>, &'static [u32]);

#[rustfmt::skip]
const BY_HAND: &[Row] = {
    use MemoryUsage::{Auto, AutoPreferDevice, AutoPreferHost, CpuCopy, CpuOnly, CpuToGpu, GpuLazilyAllocated, GpuOnly, GpuToCpu, Unknown};
    const WORK: Option<bool> = Some(true);
    const COPY: Option<bool> = Some(false);
    &[
        // Lazily allocated attachments: only if such memory exists, and never by accident.
        ("mali",   GpuLazilyAllocated, NONE, WORK, &[3]),
        ("adreno", GpuLazilyAllocated, NONE, WORK, &[4]),
        ("apple",  GpuLazilyAllocated, NONE, None, &[3]),
        ("nvidia", GpuLazilyAllocated, NONE, WORK, &[]),
        ("adreno", Auto,               NONE, WORK, &[0, 1, 2, 3, 4, 5]),

        // Readback: cached types, coherent or not. The index decides between them.
        ("nvidia",       Auto,     RANDOM, COPY, &[3, 2, 4]),
        ("adreno",       Auto,     RANDOM, COPY, &[2, 3, 1]),
        ("mali",         Auto,     RANDOM, COPY, &[1, 2, 0]),
        ("apple",        Auto,     RANDOM, COPY, &[1, 2]),
        ("apple",        GpuToCpu, NONE,   None, &[1, 2]),
        ("virtual",      GpuToCpu, NONE,   None, &[0, 2, 3]),
        ("intel arc",    GpuToCpu, NONE,   None, &[1, 2]),
        ("raspberry pi", Auto,     RANDOM, COPY, &[0]),

        // Random access with a transfer allowed: device memory and cached memory weigh the same, so the index decides.
        // If the caller prefers host memory, or if the device only copies, only host properties count.
        ("nvidia", Auto,           RANDOM.union(TRANSFER), WORK, &[1, 3, 4, 0, 2]),
        ("nvidia", AutoPreferHost, RANDOM.union(TRANSFER), WORK, &[3, 2, 4, 0, 1]),
        ("nvidia", Auto,           RANDOM.union(TRANSFER), COPY, &[3, 2, 4, 0, 1]),
        ("mali",   Auto,           RANDOM.union(TRANSFER), WORK, &[1, 2, 0, 3, 4]),

        // Staging: plain host memory, with and without host-visible device memory.
        ("nvidia",             Auto,    WRITE, COPY, &[2, 3, 4]),
        ("nvidia without bar", Auto,    WRITE, COPY, &[2, 3]),
        ("nvidia without bar", CpuOnly, NONE,  None, &[2, 3]),
        ("amd",                Auto,    WRITE, COPY, &[2, 1, 3]),
        ("intel arc",          Auto,    WRITE, COPY, &[1, 2]),
        ("nvidia", AutoPreferDevice,    WRITE, COPY, &[4, 2, 3]),

        // Data that the host writes and the device reads: host-visible device memory, if there is any.
        ("nvidia",             Auto,           WRITE, WORK, &[4, 2, 3]),
        ("nvidia without bar", Auto,           WRITE, WORK, &[2, 3]),
        ("nvidia",             AutoPreferHost, WRITE, WORK, &[2, 3, 4]),
        ("nvidia",             CpuToGpu,       NONE,  None, &[4, 2, 3]),
        ("nvidia",             Auto, WRITE.union(TRANSFER), WORK, &[4, 1, 2, 0, 3]),
        ("nvidia without bar", Auto, WRITE.union(TRANSFER), WORK, &[1, 2, 0, 3]),

        // Device memory, then the driver's types in host memory.
        ("nvidia",   Auto,             NONE, WORK, &[1, 4, 0, 2, 3]),
        ("nvidia",   GpuOnly,          NONE, None, &[1, 4, 0, 2, 3]),
        ("nvidia",   AutoPreferHost,   NONE, WORK, &[0, 2, 3, 1, 4]),
        ("nvidia",   CpuCopy,          NONE, None, &[0, 2, 3, 1, 4]),
        ("nvidia, older driver", AutoPreferDevice, NONE, WORK, &[7, 8, 0, 1, 2, 3, 4, 5, 6, 9, 10]),
        ("nvidia",   Unknown,          NONE, None, &[0, 1, 2, 3, 4]),

        // Without the allocator's flag, AMD's device-coherent types are excluded.
        ("amd",  Auto,    NONE,   WORK, &[0, 1, 2, 3]),
        ("amd",  Auto,    RANDOM, COPY, &[3, 1, 2]),
        ("radv", Auto,    WRITE,  WORK, &[3, 4, 2, 5, 6]),
        ("radv", GpuOnly, NONE,   None, &[0, 1, 3, 4, 2, 5, 6]),

        // An integrated GPU: a transfer gains nothing.
        ("intel, integrated", Auto, WRITE,                 WORK, &[1, 2]),
        ("intel, integrated", Auto, WRITE.union(TRANSFER), WORK, &[1, 0, 2, 3]),
        ("intel, integrated", Auto, RANDOM,                WORK, &[2, 1]),
        ("amd, integrated",   Auto, WRITE,                 COPY, &[2, 1, 3]),
        ("amd, integrated",   Auto, RANDOM.union(TRANSFER), WORK, &[3, 1, 2, 0]),
        ("intel, integrated, one type", Auto, RANDOM, WORK, &[0]),

        // A CPU counts as discrete: with a transfer allowed, device-local wins over cached by index only.
        ("lavapipe",           Auto, RANDOM, WORK, &[0]),
        ("lavapipe",           AutoPreferHost, WRITE, COPY, &[0]),
        ("cpu with two types", Auto, RANDOM.union(TRANSFER), WORK, &[0, 1]),
        ("cpu with two types", Auto, WRITE.union(TRANSFER),  WORK, &[1, 0]),
        ("cpu with two types", Auto, WRITE,                  COPY, &[0, 1]),

        // The same on the layouts of real drivers.
        ("profile qualcomm-adreno-620", GpuLazilyAllocated, NONE,   WORK, &[4]),
        ("profile qualcomm-adreno-620", Auto,               RANDOM, COPY, &[1, 2, 3]),
        ("profile arm-mali-g52",        GpuLazilyAllocated, NONE,   WORK, &[2]),
        ("profile arm-mali-g52",        Auto,               RANDOM, COPY, &[1, 0]),
        ("profile apple-m1",            Auto,               WRITE,  WORK, &[1, 2]),
        ("profile nvidia-gtx-1060",     Auto,               WRITE,  WORK, &[10, 8, 9]),
        ("profile nvidia-h200",         Auto,               WRITE,  COPY, &[2, 3, 4]),
        ("profile amd-rx-6700-xt",      Auto,               WRITE,  WORK, &[3, 4, 2, 5, 6]),
        ("profile lavapipe",            AutoPreferHost,     RANDOM, COPY, &[0]),

        // No memory at all.
        ("synthetic: no type", Unknown, NONE, None, &[]),
    ]
};

fn by_name(name: &str) -> Layout {
    layouts().into_iter().chain(simulated()).find(|layout| layout.name == name).unwrap()
}

#[test]
fn the_choices_that_were_worked_out_by_hand() {
    for &(name, usage, flags, device_access, expected) in BY_HAND {
        let layout = by_name(name);
        let wish = Wish { device_access, ..wish(usage, flags) };
        let types: Vec<u32> = table(&layout, AllocatorCreateFlags::empty())
            .choose_all(&wish)
            .map_or_else(|_| Vec::new(), Iterator::collect);
        assert_eq!(types, expected, "{name}: {usage:?} {flags:?} {device_access:?}");
    }
}

#[test]
fn amd_types_come_last_unless_named() {
    let amd = by_name("amd");
    let table = table(&amd, AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY);
    let choose = |wish: &Wish| table.choose_all(wish).unwrap().collect::<Vec<_>>();

    // Uncached costs as much as not device-local.
    let plain = wish(MemoryUsage::Auto, NONE);
    assert_eq!(choose(&plain), [0, 1, 2, 3, 4, 5, 6, 7]);
    let upload = wish(MemoryUsage::Auto, WRITE);
    assert_eq!(choose(&upload), [1, 2, 5, 3, 6, 7]);
    let named = Wish { required: Properties::DEVICE_COHERENT_AMD, ..plain };
    assert_eq!(choose(&named), [4, 5, 6, 7]);
    let preferred = Wish { preferred: Properties::DEVICE_UNCACHED_AMD, ..upload };
    assert_eq!(choose(&preferred), [5, 1, 6, 2, 7, 3]);

    // Without the allocator's flag, even a caller that requires them does not get them.
    let without = super::tests::table(&amd, AllocatorCreateFlags::empty());
    assert_eq!(
        without.choose_all(&named).unwrap_err(),
        NoMemoryType::NoneFits {
            usage: MemoryUsage::Auto,
            required: Properties::DEVICE_COHERENT_AMD,
            memory_type_bits: 0b1111
        }
    );
}

#[test]
fn a_preferred_and_disfavoured_property_weighs_nothing() {
    // The caller prefers device-local, the usage disfavours it: cached decides, then the index.
    let wish = Wish { preferred: Properties::DEVICE_LOCAL, ..wish(MemoryUsage::AutoPreferHost, WRITE) };
    let table = table(&by_name("nvidia"), AllocatorCreateFlags::empty());
    assert_eq!(table.choose_all(&wish).unwrap().collect::<Vec<_>>(), [2, 4, 3]);
}

#[test]
fn a_host_visible_wish_counts_more_than_device_local_on_an_integrated_gpu() {
    let wish = Wish { preferred: Properties::HOST_VISIBLE, ..wish(MemoryUsage::GpuOnly, NONE) };
    let choose = |name| {
        let table = table(&by_name(name), AllocatorCreateFlags::empty());
        table.choose_all(&wish).unwrap().collect::<Vec<_>>()
    };
    assert_eq!(choose("amd, integrated"), [1, 2, 3, 0]);
    assert_eq!(choose("amd"), [1, 0, 2, 3]);
}

#[test]
fn the_next_type_follows_when_one_fails() {
    let table = table(&by_name("nvidia"), AllocatorCreateFlags::empty());
    let mut candidates = table.choose_all(&wish(MemoryUsage::Auto, WRITE)).unwrap();
    assert_eq!(candidates.len(), 3);
    assert_eq!(candidates.next(), Some(4));
    let copy = candidates;
    assert_eq!(candidates.next(), Some(2));
    assert_eq!(candidates.next(), Some(3));
    assert_eq!(candidates.next(), None);
    assert_eq!(candidates.next(), None);
    assert_eq!(copy.collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn an_auto_usage_needs_a_resource() {
    let table = table(&by_name("nvidia"), AllocatorCreateFlags::empty());
    for &usage in MemoryUsage::ALL {
        let unknown = Wish { device_access: None, required: Properties::HOST_VISIBLE, ..wish(usage, WRITE) };
        let result = table.choose_all(&unknown).map(|_| ());
        if usage.is_auto() {
            assert_eq!(result, Err(NoMemoryType::AutoWithoutResource { usage }));
        } else if usage != MemoryUsage::GpuLazilyAllocated {
            assert_eq!(result, Ok(()));
        }
    }
}

#[test]
fn errors_say_what_was_asked() {
    let table = table(&by_name("nvidia"), AllocatorCreateFlags::empty());
    let impossible = Wish { memory_type_bits: !0b11101, ..wish(MemoryUsage::CpuOnly, NONE) };
    let error = table.choose_all(&impossible).unwrap_err();
    assert_eq!(
        error.to_string(),
        "none of the allowed memory types (bits 0x2) has the properties [HOST_VISIBLE | HOST_COHERENT] that the \
         allocation (usage CpuOnly) requires"
    );
    let unknown = Wish { device_access: None, ..wish(MemoryUsage::Auto, NONE) };
    assert_eq!(
        table.choose_all(&unknown).unwrap_err().to_string(),
        "the usage Auto needs to know the usage of the buffer or image"
    );
}

#[test]
fn the_mask_knows_only_types_that_exist() {
    let amd = memory(&by_name("amd").types);
    assert_eq!(global_mask(&amd, AllocatorCreateFlags::empty()), 0b1111);
    assert_eq!(global_mask(&amd, AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY), 0xff);
    let all = memory(&by_name("synthetic: 32 types").types);
    assert_eq!(global_mask(&all, AllocatorCreateFlags::empty()), u32::MAX);
    assert_eq!(global_mask(&memory(&[]), AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY), 0);

    // Uncached alone does not need the feature.
    let odd = memory(&[DL | AMD_UNCACHED, DL | AMD_COHERENT, DL]);
    assert_eq!(global_mask(&odd, AllocatorCreateFlags::empty()), 0b101);

    // A driver that reports more types than Vulkan allows.
    let mut liar = memory(&[DL]);
    liar.memory_type_count = 1000;
    assert_eq!(global_mask(&liar, AllocatorCreateFlags::empty()), u32::MAX);
    let table = MemoryTypeTable::new(&liar, DISCRETE, u32::MAX);
    assert_eq!(table.choose_all(&wish(MemoryUsage::GpuOnly, NONE)).unwrap().count(), 32);
}

#[test]
fn a_mask_beyond_the_types_is_cut() {
    let table = MemoryTypeTable::new(&memory(&[DL, HV | HC]), DISCRETE, u32::MAX);
    assert_eq!(table.choose_all(&wish(MemoryUsage::Unknown, NONE)).unwrap().collect::<Vec<_>>(), [0, 1]);
    let exact = Wish { preferred: Properties::HOST_CACHED, ..wish(MemoryUsage::Unknown, NONE) };
    assert_eq!(table.choose_all(&exact).unwrap().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn device_access_is_any_usage_but_copies() {
    use vk::{BufferUsageFlags2KHR as Buffer, ImageUsageFlags as Image};
    assert_eq!(device_access(Buffer::empty().as_raw()), None);
    assert_eq!(device_access(Buffer::TRANSFER_SRC.as_raw()), Some(false));
    assert_eq!(device_access((Buffer::TRANSFER_SRC | Buffer::TRANSFER_DST).as_raw()), Some(false));
    assert_eq!(device_access((Buffer::TRANSFER_DST | Buffer::UNIFORM_BUFFER).as_raw()), Some(true));
    // Beyond 32 bits, the reason for the 64-bit usage.
    assert_eq!(device_access(Buffer::from_raw(1 << 33).as_raw()), Some(true));
    assert_eq!(device_access(u64::from(Image::empty().as_raw())), None);
    assert_eq!(device_access(u64::from(Image::TRANSFER_DST.as_raw())), Some(false));
    assert_eq!(device_access(u64::from(Image::SAMPLED.as_raw())), Some(true));
    assert_eq!(device_access(u64::from((Image::TRANSFER_DST | Image::SAMPLED).as_raw())), Some(true));
}
