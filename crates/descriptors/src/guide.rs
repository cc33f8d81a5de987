#![doc = include_str!("guide.md")]

// The names by which the page links to items.
#[cfg(doc)]
use crate::*;
