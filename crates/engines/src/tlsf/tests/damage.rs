//! Damages every invariant: `validate` must panic and name it.

use super::*;

/// Damages an engine of two regions. The first has: used 100, free 200, used 100, free. The second is empty.
fn damaged(damage: impl FnOnce(&mut Tlsf, u32)) {
    let mut tlsf = Tlsf::new(1000);
    tlsf.add_region(&1000).unwrap();
    tlsf.add_region(&1000).unwrap();
    let keys = [100, 200, 100].map(|size| tlsf.allocate(&request(size, 1, Strategy::MinOffset)).unwrap().0);
    tlsf.free(keys[1]).unwrap();
    tlsf.validate();
    let hole = tlsf.bins.head(class_of(200));
    assert_eq!(tlsf.chunks.extent(hole), (100, 200));
    damage(&mut tlsf, hole);
    tlsf.validate();
}

#[test]
#[should_panic(expected = "I1")]
fn damage_i1() {
    damaged(|tlsf, hole| {
        tlsf.chunks.cut_front(hole, 50);
    });
}

#[test]
#[should_panic(expected = "I2: a free chunk is in no list")]
fn damage_i2() {
    damaged(|tlsf, hole| {
        tlsf.bins.pop(tlsf.chunks.parts_mut().0, hole, class_of(200));
    });
}

#[test]
#[should_panic(expected = "I2: chunk")]
fn damage_i2_class() {
    damaged(|tlsf, hole| {
        tlsf.bins.pop(tlsf.chunks.parts_mut().0, hole, class_of(200));
        tlsf.bins.insert(tlsf.chunks.parts_mut().0, hole, class_of(300));
    });
}

#[test]
#[should_panic(expected = "part of a region or the only one")]
fn damage_i2_empties() {
    damaged(|tlsf, hole| {
        tlsf.bins.pop(tlsf.chunks.parts_mut().0, hole, class_of(200));
        tlsf.empties.insert(&mut tlsf.chunks, hole);
    });
}

#[test]
#[should_panic(expected = "a whole region, is in a bin")]
fn damage_i2_bins() {
    damaged(|tlsf, _| {
        let whole = tlsf.chunks.first(RegionId(1));
        tlsf.open_region(whole);
    });
}

#[test]
#[should_panic(expected = "I3")]
fn damage_i3() {
    damaged(|tlsf, _| tlsf.bins.flip_second(class_of(200) + 1));
}

#[test]
#[should_panic(expected = "I4")]
fn damage_i4() {
    damaged(|tlsf, _| tlsf.bins.flip_first(0));
}

#[test]
#[should_panic(expected = "I5")]
fn damage_i5() {
    damaged(|tlsf, _| tlsf.empties.flip(3));
}

#[test]
#[should_panic(expected = "I6")]
fn damage_i6() {
    damaged(|tlsf, hole| {
        let Tlsf { chunks, index: Some(index), .. } = tlsf else { unreachable!() };
        index.remove(chunks, hole);
    });
}

#[test]
#[should_panic(expected = "I6: the largest")]
fn damage_i6_largest() {
    damaged(|tlsf, hole| {
        let Tlsf { index: Some(index), .. } = tlsf else { unreachable!() };
        index.forget_largest(hole);
    });
}
