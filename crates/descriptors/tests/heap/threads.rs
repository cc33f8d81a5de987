//! One heap, several threads.

use sublet_descriptors::{DescriptorRange, HeapCreateInfo, HeapError, SlotState};

use crate::common::Fixture;

#[test]
fn threads_never_get_the_same_slot() {
    const THREADS: usize = 4;
    let fixture = Fixture::new("nvidia-h200");
    let info = HeapCreateInfo { slots: 512, ..HeapCreateInfo::default() };
    let heap = fixture.set_heap(&info);
    let owners: Vec<_> = (0..512).map(|_| std::sync::atomic::AtomicU32::new(0)).collect();
    let claim = |range: &DescriptorRange, from, to| {
        for index in range.indices() {
            let owner = &owners[usize::try_from(index).unwrap()];
            let was = owner.swap(to, std::sync::atomic::Ordering::SeqCst);
            assert_eq!(was, from, "slot {index} has another owner");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (heap, fixture, claim) = (&heap, &fixture, &claim);
            scope.spawn(move || {
                let own = u32::try_from(thread).unwrap() + 1;
                let mut random = fastrand::Rng::with_seed(own.into());
                let mut held = Vec::new();
                for _ in 0..2_000 {
                    match heap.allocate(random.u32(1..20)) {
                        Ok(range) => {
                            claim(&range, 0, own);
                            unsafe { heap.write(range.id(), 0, &fixture.storage(1)) }.unwrap();
                            held.push(range);
                        }
                        Err(HeapError::Full { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                    while held.len() > 8 {
                        let range = held.swap_remove(random.usize(..held.len()));
                        claim(&range, own, 0);
                        unsafe { heap.retire(fixture.done(), range) }.unwrap();
                    }
                    heap.collect(&fixture.clock).unwrap();
                }
                for range in held {
                    claim(&range, own, 0);
                    unsafe { heap.retire(fixture.done(), range) }.unwrap();
                }
            });
        }
    });
    heap.collect(&fixture.clock).unwrap();
    assert_eq!((heap.statistics().free, heap.largest_free()), (512, 512));
    heap.walk(|run| assert_eq!(run.state, SlotState::Free));
}
