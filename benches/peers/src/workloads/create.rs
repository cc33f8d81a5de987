//! A buffer with its memory, created and destroyed.

use super::Scale;
use crate::case::{Participant, Workload};
use crate::peers::{PeerKind, PeerMode};
use crate::script::{PeerRequest, PeerRequestKind, Phase};

/// The driver alone, and each allocator on top of it.
pub(crate) fn create(scale: &Scale) -> Vec<Workload> {
    const PEERS: [PeerKind; 5] =
        [PeerKind::Driver, PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc];
    let pairs = scale.pairs / 4;
    let buffer = PeerRequest { size: 4096, alignment: 1, kind: PeerRequestKind::Buffer };
    let workload = |id: &str, title: &str, others| Workload {
        id: id.to_owned(),
        title: title.to_owned(),
        peers: PEERS.map(|kind| Participant { kind, shape: PeerMode::Created, share: 1 }).into(),
        granularity: 1,
        slots: 2,
        before: vec![Phase::Allocate((0..=others).map(|slot| (slot, buffer)).collect())],
        warm_up: None,
        fewer_rounds: 1,
        round: Box::new(move |_| vec![Phase::Replace(vec![(others, buffer); pairs])]),
        thorough: false,
        reserves: false,
    };
    vec![
        // One buffer stays, so that the block is never empty.
        workload("create", "create and destroy a buffer", 1),
        workload("create-alone", "create and destroy the only buffer", 0),
    ]
}
