//! Numbers and choices of a program.

use arbitrary::{Arbitrary, Result, Unstructured};

/// Longer programs find no more.
const MOST_CALLS: usize = 300;

/// A number of any magnitude. Each bit length is equally likely.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub u64);

impl<'a> Arbitrary<'a> for Number {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let bits = input.int_in_range(0..=64_u32)?;
        Ok(Self(input.arbitrary::<u64>()?.checked_shr(64 - bits).unwrap_or(0)))
    }
}

/// A power of two up to 2^19, or 0.
#[derive(Clone, Copy, Debug)]
pub struct Alignment(pub u64);

impl<'a> Arbitrary<'a> for Alignment {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let bits = input.int_in_range(0..=20_u32)?;
        Ok(Self((1 << bits) >> 1))
    }
}

/// Selects an element of a list.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Choice(u8);

impl Choice {
    /// Returns an index into a list of `len` elements; `None` if it is empty.
    #[must_use]
    pub fn at(self, len: usize) -> Option<usize> {
        usize::from(self.0).checked_rem(len)
    }

    /// Returns an element of the list; `None` if it is empty.
    #[must_use]
    pub fn of<T>(self, list: &[T]) -> Option<&T> {
        list.get(self.at(list.len())?)
    }

    /// Returns an element of a list that is not empty.
    ///
    /// # Panics
    /// If the list is empty.
    #[must_use]
    pub fn one<T: Copy>(self, list: &[T]) -> T {
        *self.of(list).expect("the list is not empty")
    }
}

/// The calls of a program. All bytes that are left become calls, so that a mutation hardly ever ends the program.
#[derive(Debug)]
pub struct Calls<T>(pub Vec<T>);

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for Calls<T> {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let mut calls = Vec::new();
        while !input.is_empty() && calls.len() < MOST_CALLS {
            calls.push(input.arbitrary()?);
        }
        Ok(Self(calls))
    }
}
