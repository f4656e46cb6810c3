//! Correction for multiple metrics: Holm's step-down procedure (Holm 1979).

/// The number of tests by which each of these divides their common error.
///
/// The smallest of m p-values is tested at the error over m, the next at the error over m - 1, and so on up to the first that is not
/// significant. The remaining ones are not significant either, and get the divisor of that one. So an interval at the divided error
/// excludes no effect exactly where Holm's procedure finds one.
pub(super) fn shares(p_values: &[f64], error: f64) -> Vec<usize> {
    let mut by_p: Vec<usize> = (0..p_values.len()).collect();
    by_p.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut shares = vec![0; p_values.len()];
    let mut left = p_values.len();
    let mut stopped = false;
    for index in by_p {
        shares[index] = left;
        stopped |= p_values[index] > error / left as f64;
        if !stopped {
            left -= 1;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_no_finding_ends_it() {
        // 0.005 <= 0.05/4 and 0.01 <= 0.05/3, but 0.03 > 0.05/2.
        assert_eq!(shares(&[0.01, 0.04, 0.03, 0.005], 0.05), [3, 2, 2, 4]);
        // 0.02 <= 0.05/2 and 0.03 <= 0.05/1.
        assert_eq!(shares(&[0.01, 0.02, 0.03, 0.005], 0.05), [3, 2, 1, 4]);
    }

    #[test]
    fn none_one_and_equals() {
        assert_eq!(shares(&[], 0.05), Vec::<usize>::new());
        assert_eq!(shares(&[0.04], 0.05), [1]);
        assert_eq!(shares(&[0.06], 0.05), [1]);
        assert_eq!(shares(&[0.5, 0.5], 0.05), [2, 2]);
        assert_eq!(shares(&[0.0, 0.0], 0.05), [2, 1]);
    }
}
