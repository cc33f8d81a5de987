//! A buffer with its memory, created and destroyed.
#![forbid(unsafe_code)]

use super::Scale;
use crate::case::{Entry, Workload};
use crate::peers::{PeerKind, Shape};
use crate::script::{Kind, Phase, Request};

/// The driver alone, and each allocator above it.
pub(crate) fn create(scale: &Scale) -> Vec<Workload> {
    const PEERS: [PeerKind; 7] = [
        PeerKind::Driver,
        PeerKind::Sublet,
        PeerKind::SubletLocal,
        PeerKind::SubletPrepared,
        PeerKind::Vma,
        PeerKind::GpuAllocator,
        PeerKind::GpuAlloc,
    ];
    let pairs = scale.pairs / 4;
    let buffer = Request { size: 4096, alignment: 1, kind: Kind::Buffer };
    vec![Workload {
        id: "create".to_owned(),
        title: "create and destroy a buffer".to_owned(),
        peers: PEERS.map(|kind| Entry { kind, shape: Shape::Created, share: 1 }).into(),
        granularity: 1,
        slots: 2,
        // One stays, so that no block comes and goes.
        before: vec![Phase::Allocate(vec![(0, buffer), (1, buffer)])],
        warm_up: None,
        fewer_rounds: 1,
        round: Box::new(move |_| vec![Phase::Replace(vec![(1, buffer); pairs])]),
        thorough: false,
        reserves: false,
    }]
}
