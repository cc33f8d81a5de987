//! Faults of drivers.

use super::*;

fn fixture(quirks: DescriptorQuirk) -> DescriptorFixture {
    let builder = Gpu::builder(profile("intel-arc-a770")).descriptor_quirks(quirks);
    DescriptorFixture::new(builder.descriptor_pools(DescriptorPoolPolicy::Strict))
}

const FREE: vk::DescriptorPoolCreateFlags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
const NONE: vk::DescriptorPoolCreateFlags = vk::DescriptorPoolCreateFlags::empty();

#[test]
fn a_count_of_sets_that_survives_a_reset_ends_the_pool() {
    for (quirks, flags, expected) in [
        (DescriptorQuirk::SET_COUNT_SURVIVES_RESET, NONE, Err(FULL)),
        (DescriptorQuirk::SET_COUNT_SURVIVES_RESET, FREE, Ok(())),
        (DescriptorQuirk::empty(), NONE, Ok(())),
    ] {
        let fixture = fixture(quirks);
        let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
        let pool = fixture.pool_with(4, &[(Type::UNIFORM_BUFFER, 4)], flags);
        fixture.sets(pool, &[layout; 3]).unwrap();
        fixture.reset(pool).unwrap();
        assert_eq!(fixture.sets(pool, &[layout; 2]).map(drop), expected, "{quirks:?} {flags:?}");
        // The descriptors are back in any case.
        fixture.set(pool, layout).unwrap();
    }
}

#[test]
fn a_pool_that_fragments_refuses_with_room_left() {
    for (quirks, frees, expected) in [
        (DescriptorQuirk::FRAGMENTS, true, Err(vk::Result::ERROR_FRAGMENTED_POOL)),
        (DescriptorQuirk::FRAGMENTS, false, Ok(())),
        (DescriptorQuirk::empty(), true, Ok(())),
    ] {
        let fixture = fixture(quirks);
        let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
        let pool = fixture.pool_with(256, &[(Type::UNIFORM_BUFFER, 256)], FREE);
        for _ in 0..128 {
            let set = fixture.set(pool, layout).unwrap();
            if frees {
                fixture.free(pool, set).unwrap();
            }
        }
        assert_eq!(fixture.set(pool, layout).map(drop), expected);
        // It counts anew after a reset.
        fixture.reset(pool).unwrap();
        let set = fixture.set(pool, layout).unwrap();
        fixture.free(pool, set).unwrap();
        fixture.set(pool, layout).unwrap();
        fixture.reset(pool).unwrap();
        fixture.sets(pool, &[layout; 200]).unwrap();
        fixture.set(pool, layout).unwrap();
    }
}

#[test]
fn a_reset_that_leaks_loses_the_sets_of_its_time() {
    let fixture = fixture(DescriptorQuirk::RESET_LEAKS);
    let layout = fixture.layout(&[at(0, Type::UNIFORM_BUFFER)]);
    let pool = fixture.pool_with(8, &[(Type::UNIFORM_BUFFER, 8)], FREE);
    let sets = fixture.sets(pool, &[layout; 5]).unwrap();
    fixture.free(pool, sets[0]).unwrap();
    assert_eq!(fixture.gpu.leaked_descriptor_sets(), 0);
    fixture.reset(pool).unwrap();
    fixture.reset(pool).unwrap();
    assert_eq!(fixture.gpu.leaked_descriptor_sets(), 4);
    fixture.destroy_pool(pool);
    assert_eq!(fixture.gpu.leaked_descriptor_sets(), 0);
}
