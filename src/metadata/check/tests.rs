#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::metadata::{
    AllocateError, Buddy, Chunk, Counted, CountedCapacity, CountedRequest, Linear, RegionError, Regions,
    Span, Tlsf,
};

#[test]
fn our_engines_pass() {
    let capacities = [1, 7, 64, 100, 1000, 4096];
    ranges(|| Tlsf::new(4096), &capacities, 12);
    ranges(|| Tlsf::exact(1 << 20), &capacities, 12);
    // Small sizes become slots, so that behind a closed region there may be free ones.
    ranges(|| Tlsf::with_slabs(1 << 22), &[1 << 16, 1 << 20, 1 << 22], 12);
    ranges(|| Linear::new(4096, Regions::Many), &capacities, 12);
    ranges(|| Linear::new(4096, Regions::Single), &capacities, 12);
    ranges(|| Buddy::new(4096, 1), &capacities, 12);
    let capacities = [(1, [5, 0]), (8, [8, 20]), (100, [300, 3])];
    let capacities = capacities.map(|(grants, counts)| CountedCapacity { grants, counts });
    let requests = [[0, 0], [1, 2], [3, 1], [400, 1]].map(CountedRequest::new);
    any(Counted::new, &capacities, &requests, 40);
}

/// A [`Tlsf`] with a fault.
#[derive(Debug)]
struct Wrong(Tlsf, Fault);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Spans begin one unit too low.
    Shifted,
    /// Bad keys free nothing, and nobody is told.
    Silent,
    /// No region is ever said to be empty.
    NeverEmpty,
    /// Used chunks are not shown.
    Hidden,
    /// A reset does nothing.
    NoReset,
    /// One chunk too many.
    Miscounted,
    /// What was granted in a closed region stays granted.
    Phantom,
}

impl Metadata for Wrong {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = Chunk;

    fn add_region(&mut self, capacity: &u64) -> Result<RegionId, RegionError> {
        self.0.add_region(capacity)
    }
    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        self.0.remove_region(region)
    }
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        let (key, mut span) = self.0.allocate(request)?;
        if self.1 == Fault::Shifted {
            span.offset = span.offset.saturating_sub(1);
        }
        Ok((key, span))
    }
    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        if self.1 != Fault::Phantom {
            return self.0.allocate_outside(request, is_closed);
        }
        loop {
            match self.0.allocate(request) {
                Ok((_, span)) if is_closed(span.region) => {}
                result => return result,
            }
        }
    }
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        let freed = self.0.free(key);
        let region_empty = freed.is_ok_and(|freed| freed.region_empty) && self.1 != Fault::NeverEmpty;
        match freed {
            Err(BadKey) if self.1 == Fault::Silent => {
                Ok(Freed { span: Span { region: RegionId(0), offset: 0, size: 1 }, region_empty })
            }
            freed => freed.map(|freed| Freed { region_empty, ..freed }),
        }
    }
    fn reset(&mut self, region: RegionId) {
        if self.1 != Fault::NoReset {
            self.0.reset(region);
        }
    }
    fn span(&self, key: Key) -> Result<Span, BadKey> {
        self.0.span(key)
    }
    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        self.0.tag(key)
    }
    fn region_usage(&self, region: RegionId) -> Usage {
        let usage = self.0.region_usage(region);
        Usage { used_chunks: usage.used_chunks + u64::from(self.1 == Fault::Miscounted), ..usage }
    }
    fn usage(&self) -> Usage {
        self.0.usage()
    }
    fn largest_free(&self) -> u64 {
        self.0.largest_free()
    }
    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
        self.0.walk(region, &mut |chunk| {
            let used = chunk.used.filter(|_| self.1 != Fault::Hidden);
            visit(Chunk { used, ..chunk });
        });
    }
    fn validate(&self) {
        self.0.validate();
    }
}

/// What says in what way the engine is wrong.
#[test]
fn wrong_engines_do_not() {
    for (fault, said) in [
        (Fault::Shifted, "aligned"),
        (Fault::Silent, "not live"),
        (Fault::NeverEmpty, "whether the region is empty"),
        (Fault::Hidden, "is not shown"),
        (Fault::NoReset, "used chunks"),
        (Fault::Miscounted, "used chunks"),
        (Fault::Phantom, "used chunks"),
    ] {
        let played = std::panic::catch_unwind(|| ranges(|| Wrong(Tlsf::exact(256), fault), &[64, 256], 12));
        let panic = played.expect_err("the engine is wrong");
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains(said) || text.contains("Usage") || text.contains("Span"), "{fault:?}: {text}");
    }
}
