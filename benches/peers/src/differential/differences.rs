//! Intended differences between Sublet and VMA. Each has a reason, and some program shows it.
//!
//! `explain.rs` has the conditions for each. The guide's chapter "Differences from VMA" describes them for users.

macro_rules! differences {
    ($( $name:ident $id:literal $reason:literal; )*) => {
        /// An intended difference.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(super) enum Difference { $( $name, )* }

        impl Difference {
            pub(super) const ALL: &[Self] = &[ $( Self::$name, )* ];

            /// Returns its name in reports.
            pub(super) fn id(self) -> &'static str {
                match self { $( Self::$name => $id, )* }
            }

            /// Returns its reason.
            pub(super) fn reason(self) -> &'static str {
                match self { $( Self::$name => $reason, )* }
            }
        }
    };
}

differences! {
    Contradiction "contradiction"
        "flags that exclude each other are a typed error in every build; VMA asserts, and its release build takes one of the two";
    UpperAddress "upper-address"
        "UPPER_ADDRESS is the upper end of a linear pool with one block, or an error; VMA also makes dedicated allocations of it";
    WithinBudget "within-budget"
        "WITHIN_BUDGET holds wherever the driver would be asked for memory; VMA honours it with DEDICATED_MEMORY only";
    OverBudget "over-budget"
        "where the budget has no room for a whole block small allocations share a smaller one; in VMA each becomes a driver call";
    DriverError "driver-error"
        "the driver's own error is kept; VMA's default pools turn all into OUT_OF_DEVICE_MEMORY";
    LostDevice "lost-device"
        "an error that is no shortage of memory ends the attempt; VMA goes on to the next place";
    FailedMapping "failed-mapping"
        "a mapping that fails is reported as such and leaves no empty block; VMA takes it for a lack of room and tries other blocks";
    PoolMemoryType "pool-memory-type"
        "a pool whose memory type the resource cannot be in is refused; VMA allocates, and binding is then invalid use";
    PoolBlockSize "pool-block-size"
        "a pool whose blocks are larger than the heap is refused; VMA makes a pool in which nothing can be allocated";
    LargeBlocks "large-blocks"
        "the preferred block size is at most the heap's and maxMemoryAllocationSize; VMA asks for blocks that cannot be had";
    PoolLimit "pool-limit"
        "a pool's limit counts dedicated memory that nobody asked for; in VMA what finds no room in its blocks becomes dedicated";
    FullSized "full-sized"
        "a linear pool without a block size takes full-sized blocks; in VMA the first ones are small";
    EmptyBlock "empty-block"
        "an empty block goes back with one of the next frees in other blocks; in VMA it has to come to the end of a list before";
    GivesBack "gives-back"
        "before an allocation fails, what is empty in its heap goes back and the driver is asked again; VMA fails with it in its hands";
    NewerRule "newer-rule"
        "HOST_ACCESS_ALLOW_TRANSFER_INSTEAD follows VMA 3.4, which asks for host-visible memory as a preference there";
    Packed "packed"
        "one index over all blocks found room, where VMA needed another block";
    OtherPlaces "other-places"
        "free ranges are chosen otherwise, and not filled to the last byte: now and then VMA finds room where Sublet takes another block";
    RingOfOneBlock "ring-of-one-block"
        "a linear pool wraps around if it has one block at most; VMA wraps around in the last of several, which its documentation leaves undefined";
    HostAccess "host-access"
        "mapping memory that the host cannot see, or may not by its flags, is an error; VMA hands it to the driver";
    LazyInPool "lazy-in-pool"
        "the usage does not count in a pool, as VMA's documentation says; its code makes GPU_LAZILY_ALLOCATED dedicated there";
    WholePages "whole-pages"
        "what may be an optimal resource gets whole granularity pages, so that no two kinds share one; VMA keeps a table of pages, or rounds later";
    NotMapped "not-mapped"
        "flushing what is not mapped is an error; VMA hands it to the driver";
}
