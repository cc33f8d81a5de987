//! Detects blocks that are freed and then needed again.

/// Units that stay in empty blocks beyond the usual bound, because blocks were freed shortly before new ones were
/// needed.
///
/// A program whose live units go up and down frees a block each time they fall, and needs one each time they rise. Each
/// such return makes more units stay, up to a part of the live units. They stay for as long as they are needed again. A
/// program that frees a whole level returns much more, which is no reason to keep anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hysteresis {
    /// Units returned since the last growth.
    returned: u64,
    kept: u64,
    /// Frees that found units kept, since the last growth.
    frees: u64,
}

impl Hysteresis {
    /// At most the live units divided by this are kept.
    const PART: u64 = 4;
    /// If more than the live units divided by this were returned, a level has ended. The share is larger than that of
    /// `PART`, because a block is returned as a whole even if few of its units exceed the bound.
    const PART_OF_LEVEL: u64 = 2;
    /// After this many frees for each live chunk without growth, half of the units are no longer kept.
    const FREES_FOR_A_CHUNK: u64 = 32;

    /// The units to keep beside `live` ones.
    pub(crate) fn kept(&self, live: u64) -> u64 {
        self.kept.min(live / Self::PART)
    }

    /// Counts a block that was freed because too much was empty.
    pub(crate) fn count_returned(&mut self, units: u64) {
        self.returned = self.returned.saturating_add(units);
    }

    /// Counts a new block that the vector needed beside `live` units.
    pub(crate) fn count_grown(&mut self, live: u64) {
        if self.returned <= live / Self::PART_OF_LEVEL {
            self.kept = self.kept.saturating_add(self.returned).min(live / Self::PART);
        }
        self.returned = 0;
        self.frees = 0;
    }

    /// Counts a free beside `chunks` live ones, while empty blocks stay.
    pub(crate) fn count_free(&mut self, chunks: u64) {
        self.frees += 1;
        if self.frees / Self::FREES_FOR_A_CHUNK > chunks {
            self.kept /= 2;
            self.frees = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_are_needed_again_stay() {
        let mut hysteresis = Hysteresis::default();
        hysteresis.count_grown(1000);
        assert_eq!(hysteresis.kept(1000), 0, "nothing was returned");
        for kept in [100, 200, 250] {
            hysteresis.count_returned(100);
            hysteresis.count_grown(1000);
            assert_eq!(hysteresis.kept(1000), kept);
        }
        assert_eq!(hysteresis.kept(400), 100);
    }

    #[test]
    fn a_wave_of_a_third_is_no_end_of_a_level() {
        let mut hysteresis = Hysteresis::default();
        hysteresis.count_returned(300);
        hysteresis.count_grown(1000);
        assert_eq!(hysteresis.kept(1000), 250);
    }

    #[test]
    fn a_level_that_ends_keeps_nothing() {
        let mut hysteresis = Hysteresis::default();
        hysteresis.count_returned(900);
        hysteresis.count_grown(100);
        hysteresis.count_grown(1000);
        assert_eq!(hysteresis.kept(1000), 0);
    }

    #[test]
    fn units_that_are_not_needed_again_go() {
        let mut hysteresis = Hysteresis::default();
        hysteresis.count_returned(200);
        hysteresis.count_grown(1000);
        for _ in 0..Hysteresis::FREES_FOR_A_CHUNK * 11 {
            assert_eq!(hysteresis.kept(1000), 200);
            hysteresis.count_free(10);
        }
        assert_eq!(hysteresis.kept(1000), 100);
    }
}
