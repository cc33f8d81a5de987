//! Programs: lists of operations that are valid for any engine in any state, so that proptest can shorten them freely.

use proptest::collection::vec;
use proptest::prelude::*;
use sublet_engines::{Strategy as Placement, Tag};

/// The parameters of an engine, and the operations to run on it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) setup: Setup,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) max_capacity: u64,
    /// The capacity of the first region.
    pub(crate) capacity: u64,
    /// The smallest chunk of a buddy engine; the other engines ignore it.
    pub(crate) smallest: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    AddRegion(u64),
    RemoveRegion(u8),
    Reset(u8),
    Allocate {
        size: Size,
        alignment: WantedAlignment,
        strategy: Placement,
        upper: bool,
        tag: Tag,
    },
    /// Allocates in gap number `gap`. Skips `skipped` 255ths of the gap and takes `size` 255ths of the rest, plus
    /// `plus` units. Passes the key before the gap that is `behind` gaps further on: a wrong key unless `behind` is 0.
    AllocateAt {
        gap: u8,
        skipped: u8,
        size: u8,
        plus: i8,
        behind: i8,
        tag: Tag,
    },
    /// Allocates while one region is closed.
    AllocateOutside {
        closed: u8,
        size: Size,
        alignment: WantedAlignment,
        strategy: Placement,
    },
    Free(Pick),
    /// Frees a key that is not live.
    Bad(BadKind),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Units(u64),
    /// A region's capacity, halved `halvings` times, plus `plus`.
    Part {
        region: u8,
        halvings: u8,
        plus: i8,
    },
    /// The size of a gap between used chunks, plus `plus`.
    Gap {
        gap: u8,
        plus: i8,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum WantedAlignment {
    One,
    /// 2^(n mod k). `k` is chosen so that the alignment is at most twice the largest capacity.
    Usual(u8),
    /// 2^n.
    Any(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    Oldest,
    Newest,
    Any(u8),
    /// This many, the oldest first.
    Many(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum BadKind {
    Freed(u8),
    OfTwin(u8),
    Bits(u64),
    Flipped { key: u8, bit: u8 },
}

/// Primes, powers of two and their neighbours, and extremes.
const CAPACITIES: [u64; 26] = [
    1,
    2,
    3,
    5,
    8,
    13,
    16,
    31,
    61,
    64,
    100,
    127,
    128,
    251,
    1000,
    1024,
    4093,
    65_536,
    (1 << 20) - 3,
    (1 << 32) + 15,
    1 << 39,
    1 << 40,
    (1 << 40) + 1,
    (1 << 62) + 1,
    (1 << 63) - 25,
    1 << 63,
];

/// Capacities that an engine for regions of up to `max` units accepts.
fn good_capacity(max: u64) -> impl Strategy<Value = u64> {
    let fitting = CAPACITIES.iter().filter(|&&capacity| capacity <= max).count();
    prop_oneof![
        12 => (fitting.saturating_sub(6)..fitting).prop_map(|n| CAPACITIES[n]),
        3 => (0..fitting).prop_map(|n| CAPACITIES[n]),
        6 => 1..=max,
        3 => Just(max),
    ]
}

fn capacity(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        24 => good_capacity(max),
        1 => Just(0),
        1 => Just(max.saturating_add(1)),
        1 => any::<u64>(),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        8 => (0..=16_u64).prop_map(Size::Units),
        1 => (0..64_u32).prop_map(|log2| Size::Units(1 << log2)),
        6 => (any::<u8>(), 2..=6_u8, -2..=2_i8).prop_map(|(region, halvings, plus)| Size::Part { region, halvings, plus }),
        // Nearly equal sizes, to test the choice among several holes that fit.
        3 => (any::<u8>(), 4..=5_u8, 0..=12_i8).prop_map(|(region, halvings, plus)| Size::Part { region, halvings, plus }),
        1 => (any::<u8>(), 0..=1_u8, -1..=1_i8).prop_map(|(region, halvings, plus)| Size::Part { region, halvings, plus }),
        3 => (any::<u8>(), -1..=1_i8).prop_map(|(gap, plus)| Size::Gap { gap, plus }),
        1 => any::<u64>().prop_map(Size::Units),
    ]
}

fn alignment() -> impl Strategy<Value = WantedAlignment> {
    prop_oneof![
        6 => Just(WantedAlignment::One),
        2 => (0..=3_u8).prop_map(WantedAlignment::Any),
        3 => (0..64_u8).prop_map(WantedAlignment::Usual),
        1 => (0..64_u8).prop_map(WantedAlignment::Any),
    ]
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        Just(Placement::Balanced),
        Just(Placement::MinTime),
        Just(Placement::MinMemory),
        Just(Placement::MinOffset),
        Just(Placement::LastRegion),
    ]
}

/// The usage pattern of a program: weights of the upper side, and of the allocations that it frees.
#[derive(Clone, Copy, Debug)]
struct Style {
    upper: u32,
    oldest: u32,
    newest: u32,
    any: u32,
}

const STYLES: [Style; 6] = [
    Style { upper: 2, oldest: 3, newest: 3, any: 3 },
    // Ring buffer.
    Style { upper: 1, oldest: 12, newest: 0, any: 1 },
    // Stack, and double stack.
    Style { upper: 1, oldest: 0, newest: 10, any: 2 },
    Style { upper: 30, oldest: 1, newest: 8, any: 2 },
    // A ring whose newest end is a stack.
    Style { upper: 0, oldest: 6, newest: 5, any: 1 },
    // Frees at random, which leaves holes.
    Style { upper: 0, oldest: 0, newest: 0, any: 12 },
];

fn operation(style: Style, max: u64) -> impl Strategy<Value = Operation> {
    let upper = prop_oneof![40 => Just(false), style.upper.max(1) => Just(style.upper != 0)];
    let pick = prop_oneof![
        style.oldest.max(1) => Just(if style.oldest == 0 { Pick::Newest } else { Pick::Oldest }),
        style.newest.max(1) => Just(if style.newest == 0 { Pick::Oldest } else { Pick::Newest }),
        style.any => any::<u8>().prop_map(Pick::Any),
        1 => (2..6_u8).prop_map(Pick::Many),
    ];
    let tag = prop_oneof![Just(0), any::<u32>()].prop_map(Tag);
    let allocate =
        (size(), alignment(), placement(), upper, tag).prop_map(|(size, alignment, strategy, upper, tag)| {
            Operation::Allocate { size, alignment, strategy, upper, tag }
        });
    let skipped = prop_oneof![2 => Just(0), 2 => any::<u8>()];
    let part = prop_oneof![1 => Just(255), 3 => any::<u8>()];
    let plus = prop_oneof![8 => Just(0_i8), 1 => -1..=1_i8];
    let behind = prop_oneof![9 => Just(0_i8), 1 => 1..=2_i8];
    let at_tag = any::<u32>().prop_map(Tag);
    let at = (any::<u8>(), skipped, part, plus, behind, at_tag).prop_map(
        |(gap, skipped, size, plus, behind, tag)| Operation::AllocateAt {
            gap,
            skipped,
            size,
            plus,
            behind,
            tag,
        },
    );
    let bad = prop_oneof![
        any::<u8>().prop_map(BadKind::Freed),
        any::<u8>().prop_map(BadKind::OfTwin),
        any::<u64>().prop_map(BadKind::Bits),
        (any::<u8>(), 0..64_u8).prop_map(|(key, bit)| BadKind::Flipped { key, bit }),
    ];
    prop_oneof![
        30 => allocate,
        6 => at,
        3 => (any::<u8>(), size(), alignment(), placement()).prop_map(|(closed, size, alignment, strategy)| {
            Operation::AllocateOutside { closed, size, alignment, strategy }
        }),
        16 => pick.prop_map(Operation::Free),
        3 => bad.prop_map(Operation::Bad),
        3 => capacity(max).prop_map(Operation::AddRegion),
        1 => any::<u8>().prop_map(Operation::RemoveRegion),
        1 => any::<u8>().prop_map(Operation::Reset),
    ]
}

/// Programs of 1 to 60 operations, and a few long ones.
pub(crate) fn programs() -> impl Strategy<Value = Program> {
    let max = prop_oneof![
        4 => Just(64_u64),
        4 => Just(1024),
        2 => Just(1 << 20),
        2 => Just(1 << 24),
        1 => 1..=4096_u64,
        1 => Just((1 << 40) + 1),
        2 => Just(1 << 63),
    ];
    (max, 0..STYLES.len(), 0..=4_u32).prop_flat_map(|(max_capacity, style, smallest)| {
        let operation = operation(STYLES[style], max_capacity).boxed();
        let operations = prop_oneof![30 => vec(operation.clone(), 1..=60), 1 => vec(operation, 61..=250)];
        (good_capacity(max_capacity), operations).prop_map(move |(capacity, operations)| Program {
            setup: Setup { max_capacity, capacity, smallest: (1 << smallest) - u64::from(smallest > 2) },
            operations,
        })
    })
}
