//! Each call of the block source fails, or refuses, in turn.

use super::*;

#[test]
fn a_block_that_is_not_made_leaves_nothing() {
    let (desk, mut vector) = vector(Policy::default());
    desk.creates.set(Some(0));
    assert_eq!(vector.allocate(&units(8)), Err(VectorError::Create(Fault("create"))));
    assert_eq!((desk.blocks(), desk.items(), vector.statistics()), (0, 0, VectorStatistics::default()));
    vector.validate();
}

#[test]
fn first_blocks_are_made_all_or_none() {
    let desk = Rc::new(Desk::default());
    desk.creates.set(Some(2));
    let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let made: Result<Vector, _> =
        BlockVector::new(numbers, Tlsf::exact(64), Policy { min_blocks: 3, ..Policy::default() });
    assert_eq!(made.err(), Some(VectorError::Create(Fault("create"))));
    assert_eq!(desk.blocks(), 0);
}

#[test]
fn an_item_that_is_not_made_gives_its_place_back() {
    let (desk, mut vector) = vector(Policy::default());
    desk.realizes.set(Some(0));
    assert_eq!(vector.allocate(&units(64)), Err(VectorError::Realize(Fault("realize"))));
    assert_eq!((desk.blocks(), vector.statistics().live), (0, 0), "the block was made for it");
    let kept = vector.allocate(&units(8)).unwrap();
    desk.realizes.set(Some(0));
    assert_eq!(vector.allocate(&units(56)), Err(VectorError::Realize(Fault("realize"))));
    vector.validate();
    let rest = vector.allocate(&units(56)).unwrap();
    assert_eq!(desk.blocks(), 1);
    vector.free(rest).unwrap();
    vector.free(kept).unwrap();
}

#[test]
fn an_engine_that_takes_no_more_regions_is_told() {
    let desk = Rc::new(Desk::default());
    let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let mut vector: Vector = BlockVector::new(numbers, Tlsf::exact(32), Policy::default()).unwrap();
    assert!(matches!(vector.allocate(&units(8)), Err(VectorError::Region(_))));
    assert_eq!(desk.blocks(), 0);
    vector.validate();
}

#[test]
fn a_landlord_that_proposes_too_little_is_told() {
    struct Small(Numbers);
    impl Backing<Tlsf> for Small {
        type Block = u32;
        type Item = u32;
        type Error = Fault;
        fn capacity_for(&self, _: Option<&Request>, _: &GrowthLimits) -> Option<NextBlock<u64>> {
            Some(NextBlock { capacity: 4, units: 4, own: false })
        }
        fn create(&self, capacity: &u64) -> Result<u32, Fault> {
            Backing::<Tlsf>::create(&self.0, capacity)
        }
        fn destroy(&self, block: u32) {
            Backing::<Tlsf>::destroy(&self.0, block);
        }
        fn realize(&self, block: &mut u32, span: &Span) -> Result<u32, Refusal<Fault>> {
            Backing::<Tlsf>::realize(&self.0, block, span)
        }
    }
    let desk = Rc::new(Desk::default());
    let small = Small(Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) });
    let mut vector = BlockVector::new(small, Tlsf::exact(64), Policy::default()).unwrap();
    assert_eq!(vector.allocate(&units(8)), Err(VectorError::TooLarge));
    assert_eq!((desk.blocks(), vector.statistics().blocks), (0, 0));
}

#[test]
fn a_shortage_makes_what_is_empty_go_first() {
    let (desk, mut vector) = vector(Policy::default());
    let granted = vector.allocate(&units(8)).unwrap();
    vector.free(granted).unwrap();
    desk.creates.set(Some(0));
    assert_eq!(vector.allocate(&units(100)), Err(VectorError::Create(Fault("create"))));
    assert_eq!(desk.blocks(), 1, "it is no shortage");
    desk.shortage.set(true);
    desk.creates.set(Some(0));
    let large = vector.allocate(&units(100)).unwrap();
    assert_eq!(desk.blocks(), 1);
    desk.creates.set(Some(0));
    assert_eq!(vector.allocate(&units(8)), Err(VectorError::Create(Fault("create"))), "nothing is empty");
    vector.free(large).unwrap();
    vector.validate();
}

/// After a refusal, only live grants are left in the closed block, even if the engine cannot close regions. Sums and
/// visits show this.
#[test]
fn a_block_that_refuses_is_sealed_and_the_next_is_tried() {
    let (desk, mut vector) = vector(Policy::default());
    let first = vector.allocate(&units(8)).unwrap();
    desk.exhausted.borrow_mut().extend(desk.blocks.borrow().iter().copied());
    let second = vector.allocate(&units(8)).unwrap();
    assert_ne!(first.span().region, second.span().region);
    assert_eq!((vector.statistics().sealed_blocks, desk.blocks()), (1, 2));
    let others: Vec<_> = (0..7).map(|_| vector.allocate(&units(8)).unwrap()).collect();
    assert_eq!(desk.blocks(), 2);
    vector.validate();
    let sealed = first.span().region;
    assert_eq!((vector.statistics().live, vector.statistics().used_units), (9, 72));
    let mut used = Vec::new();
    vector.walk(|block, chunk| {
        if block.region == sealed && chunk.used.is_some() {
            used.push((chunk.offset, chunk.size));
        }
    });
    assert_eq!(used, [(first.span().offset, 8)], "the rest of the block is free");
    vector.free(first).unwrap();
    vector.validate();
    assert_eq!((vector.statistics().sealed_blocks, vector.statistics().live), (0, 8));
    let again = vector.allocate(&units(64)).unwrap();
    assert_eq!(again.span().region, sealed, "it was reset, and is as good as new");
    others.into_iter().chain([second, again]).for_each(|granted| vector.free(granted).unwrap());
    assert_eq!(desk.items(), 0);
}

#[test]
fn blocks_that_all_refuse_are_an_error_and_not_a_loop() {
    let (desk, mut vector) = vector(Policy::default());
    desk.all_exhausted.set(true);
    assert_eq!(vector.allocate(&units(8)), Err(VectorError::Exhausted { tried: 1 }));
    assert_eq!((desk.blocks(), vector.statistics().blocks), (0, 0));
    desk.all_exhausted.set(false);
    let kept = vector.allocate(&units(8)).unwrap();
    desk.all_exhausted.set(true);
    desk.exhausted.borrow_mut().extend(desk.blocks.borrow().iter().copied());
    assert_eq!(vector.allocate(&units(8)), Err(VectorError::Exhausted { tried: 2 }));
    vector.validate();
    vector.free(kept).unwrap();
}

#[test]
fn a_block_that_cannot_be_emptied_goes() {
    let (desk, mut vector) = vector(Policy::default());
    let granted = vector.allocate(&units(8)).unwrap();
    desk.resets_fail.set(true);
    vector.free(granted).unwrap();
    assert_eq!((desk.blocks(), vector.statistics().blocks), (0, 0));
    vector.validate();
}
