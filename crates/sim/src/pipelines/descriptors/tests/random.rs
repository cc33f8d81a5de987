//! Pools under random programs, beside a model that only counts.

use std::collections::BTreeMap;

use super::*;

const TYPES: [Type; 3] = [Type::UNIFORM_BUFFER, Type::STORAGE_BUFFER, Type::SAMPLED_IMAGE];

/// The capacity of a pool, and the used part.
#[derive(Clone, Copy, Default)]
struct Model {
    max: [u64; 4],
    used: [u64; 4],
}

impl Model {
    /// A set's needs, the set itself first.
    fn fits(&self, need: [u64; 4], policy: DescriptorPoolPolicy) -> bool {
        let fits = |at: usize| self.used[at] + need[at] <= self.max[at];
        match policy {
            DescriptorPoolPolicy::Strict => (0..4).all(fits),
            DescriptorPoolPolicy::CountsSets => fits(0),
            DescriptorPoolPolicy::NeverRefuses => true,
        }
    }
}

fn program(seed: u64, policy: DescriptorPoolPolicy) {
    let mut random = fastrand::Rng::with_seed(seed);
    let builder = Gpu::builder(profile("nvidia-h200")).descriptor_pools(policy);
    let fixture = DescriptorFixture::new(builder);
    let layouts: Vec<_> = (0..6)
        .map(|_| {
            let counts: [u32; 3] = std::array::from_fn(|_| random.u32(0..4));
            let bindings: Vec<_> =
                (0..).zip(TYPES).zip(counts).map(|((at, kind), count)| many(at, kind, count)).collect();
            (fixture.layout(&bindings), counts)
        })
        .collect();
    let free = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
    let pools: Vec<_> = (0..3)
        .map(|_| {
            let max: [u32; 4] = std::array::from_fn(|_| random.u32(4..20));
            let sizes: Vec<_> = TYPES.into_iter().zip(max[1..].iter().copied()).collect();
            (fixture.pool_with(max[0], &sizes, free), Model { max: max.map(u64::from), used: [0; 4] })
        })
        .collect();
    let mut pools = pools;
    // Which pool, and what it took of it: only as much as there was.
    let mut sets: BTreeMap<vk::DescriptorSet, (usize, [u64; 4])> = BTreeMap::new();
    let mut overruns = 0;
    for _ in 0..400 {
        let which = random.usize(..pools.len());
        let (pool, model) = &mut pools[which];
        match random.u32(..10) {
            0 => {
                fixture.reset(*pool).unwrap();
                model.used = [0; 4];
                sets.retain(|_, (of, _)| *of != which);
            }
            1..=3 => {
                let mine: Vec<_> = sets.iter().filter(|(_, (of, _))| *of == which).collect();
                if let Some(&(&set, &(_, taken))) = random.choice(&mine) {
                    fixture.free(*pool, set).unwrap();
                    for (used, taken) in model.used.iter_mut().zip(taken) {
                        *used -= taken;
                    }
                    sets.remove(&set);
                }
            }
            _ => {
                let (layout, counts) = *random.choice(&layouts).unwrap();
                let need = [1, u64::from(counts[0]), u64::from(counts[1]), u64::from(counts[2])];
                let fits = model.fits(need, policy);
                match fixture.set(*pool, layout) {
                    Ok(set) => {
                        assert!(fits, "seed {seed}");
                        let mut taken = [0; 4];
                        for at in 0..4 {
                            taken[at] = need[at].min(model.max[at].saturating_sub(model.used[at]));
                            overruns += need[at] - taken[at];
                        }
                        // Sets are counted, also those past the end.
                        taken[0] = 1;
                        for (used, taken) in model.used.iter_mut().zip(taken) {
                            *used += taken;
                        }
                        assert!(sets.insert(set, (which, taken)).is_none());
                    }
                    Err(error) => assert!(!fits && error == FULL, "seed {seed}: {error}"),
                }
            }
        }
        assert_eq!(
            fixture.gpu.live().descriptor_sets,
            crate::facts::arithmetic::widen(sets.len()),
            "seed {seed}"
        );
        assert_eq!(fixture.gpu.descriptor_pool_overruns(), overruns, "seed {seed}");
    }
    assert_eq!(policy == DescriptorPoolPolicy::Strict, overruns == 0, "seed {seed}");
}

#[test]
fn pools_count_as_the_model_does() {
    for seed in 0..20 {
        program(seed, DescriptorPoolPolicy::Strict);
        program(seed, DescriptorPoolPolicy::CountsSets);
        program(seed, DescriptorPoolPolicy::NeverRefuses);
    }
}
