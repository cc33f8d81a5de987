//! Random programs against the promise of [`Strategy::MinOffset`].

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::cast::index;
use crate::tlsf::search::LOW_LOOKS;

proptest! {
    #![proptest_config(cases())]

    /// Checks each request against the documented search of [`Strategy::MinOffset`].
    #[test]
    fn min_offset_is_the_lowest(seed in any::<u64>(), churn in 0_usize..300) {
        let mut random = Random(seed);
        let mut tlsf = Tlsf::new(1 << 16);
        for _ in 0..3 {
            tlsf.add_region(&((1 << 16) - random.below(100))).unwrap();
        }
        let mut live = Vec::new();
        for turn in 0..churn + 20 {
            if turn < churn && random.below(100) < 45 && !live.is_empty() {
                let place = random.place(live.len());
                tlsf.free(live.swap_remove(place)).unwrap();
                continue;
            }
            let (size, alignment) = (random.size(0, 12), 1 << random.below(13));
            prop_assert!(turn > churn / 2 || tlsf.index.is_none(), "only this strategy needs the index");
            let strategy = if turn < churn / 2 { Strategy::Balanced } else { Strategy::MinOffset };
            let free = free_chunks(&tlsf);
            let large = || free.iter().filter(|&&(_, _, have)| have >= size);
            let lowest = large()
                .take(index(LOW_LOOKS))
                .find(|&&chunk| fits(chunk, size, alignment))
                .or_else(|| large().find(|&&(_, _, have)| have >= size + alignment - 1));
            match tlsf.allocate(&request(size, alignment, strategy)) {
                Ok((key, span)) => {
                    live.push(key);
                    if let (Strategy::MinOffset, Some(&(region, offset, _))) = (strategy, lowest) {
                        prop_assert_eq!((span.region, span.offset), (region, offset.next_multiple_of(alignment)));
                    }
                }
                Err(_) => prop_assert!(lowest.is_none()),
            }
            tlsf.validate();
        }
    }
}
