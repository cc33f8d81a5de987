//! Tests of the allocator's public API on every simulated GPU. They check the messages of the simulated driver and the
//! allocator's own figures, and never access internals.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test that meets the unexpected is to fail, and its numbers are small"
)]

#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod common;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/held.rs"]
mod held;

mod address_space;
mod alias;
mod bad_input;
mod block_sizes;
mod breakages;
mod callbacks;
mod chains;
mod content;
mod debug;
mod dedicated;
mod defragment;
mod ending;
mod exact_blocks;
mod external;
mod fit;
mod flags;
mod following;
mod growth;
mod hysteresis;
mod limits;
mod maintain;
mod mapping;
mod memory_map;
mod memory_type;
mod placement;
mod policy;
mod pools;
mod priority;
mod reentry;
mod reserve;
mod rollback;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
mod scopes;
mod shards;
mod shortage;
mod sizes;
mod sparse;
mod statistics;
mod stats_string;
mod threads;
mod tracking;
mod versions;
