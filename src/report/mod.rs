//! Reports as text: what an allocator or a virtual block holds, as the JSON that VMA's tools read.
#![forbid(unsafe_code)]

mod stats_string;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod writer;
