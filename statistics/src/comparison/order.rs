//! The order in which trials that are compared run.

/// A trial of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The pass it is in, from 0: each pass has every subject once. Two passes are a block, the first of which is cold.
    pub pass: usize,
    /// Which of the compared it is of, from 0.
    pub subject: usize,
}

impl Place {
    /// The block that it is in, from 0.
    pub fn block(self) -> usize {
        self.pass / PASSES
    }

    /// Whether it ran while caches, pages and processors may still have been cold.
    pub fn is_cold(self) -> bool {
        self.block() == 0
    }
}

/// Passes of a block: there and back.
const PASSES: usize = 2;

/// The order of `pairs` trials of each of `subjects`: A B B A, and every other block the other way round, B A A B.
///
/// Within a block both go there and back, so a drift that is even over the block is in each as much as in the other. Blocks are
/// mirrored in turn because of noise that lasts longer than a trial. Such noise makes the log ratios of two neighbouring pairs
/// alike where their order differs (A B, B A), and unlike where it is the same. In A B B A A B B A ... it always differs: with
/// AR(1) noise at a coefficient of 0.5, which is the worst, the mean of five ratios has 1.22 times the variance that their
/// spread shows, and an interval that promises 95 % errs in 6.6 % of the cases. Mirrored, likeness and unlikeness cancel: 1.05
/// times, and 5.3 %.
pub fn order(subjects: usize, pairs: usize) -> Vec<Place> {
    let mut places = Vec::with_capacity(subjects.saturating_mul(pairs));
    for pass in 0..pairs {
        // Forward, back, back, forward, and again.
        let forward = matches!(pass % (2 * PASSES), 0 | 3);
        places.extend((0..subjects).map(|step| {
            let subject = if forward { step } else { subjects - 1 - step };
            Place { pass, subject }
        }));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(subjects: usize, pairs: usize) -> String {
        order(subjects, pairs).iter().map(|place| ['A', 'B', 'C'][place.subject]).collect()
    }

    #[test]
    fn blocks_go_there_and_back_and_are_mirrored_in_turn() {
        assert_eq!(letters(2, 5), "ABBABAABAB");
        assert_eq!(letters(2, 8), "ABBABAABABBABAAB");
        assert_eq!(letters(3, 4), "ABCCBACBAABC");
        assert_eq!(letters(2, 0), "");
        assert_eq!(letters(0, 5), "");
    }

    #[test]
    fn each_subject_is_in_each_pass_once_and_the_first_block_is_cold() {
        for subjects in 1..=3 {
            let places = order(subjects, 7);
            for pass in 0..7 {
                let mut there: Vec<_> =
                    places.iter().filter(|place| place.pass == pass).map(|place| place.subject).collect();
                there.sort_unstable();
                assert_eq!(there, (0..subjects).collect::<Vec<_>>());
            }
            assert_eq!(places.iter().filter(|place| place.is_cold()).count(), 2 * subjects);
        }
    }
}
