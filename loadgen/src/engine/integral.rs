//! Time integrals of step functions.

/// The exact integral of a level over time, in nanoseconds times the level. Only changes of the level update it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Integral {
    sum: i128,
    level: i64,
}

impl Integral {
    #[inline]
    pub(super) fn rise(&mut self, by: u64, time: u64) {
        self.level += by.cast_signed();
        self.sum -= i128::from(by) * i128::from(time);
    }

    #[inline]
    pub(super) fn fall(&mut self, by: u64, time: u64) {
        self.level -= by.cast_signed();
        self.sum += i128::from(by) * i128::from(time);
    }

    /// The integral up to `time`, which is not before the last change.
    pub(super) fn until(&self, time: u64) -> u128 {
        u128::try_from(self.sum + i128::from(self.level) * i128::from(time)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Integral;

    #[test]
    fn steps_are_summed_over_time() {
        let start = 1 << 60;
        let mut integral = Integral::default();
        integral.rise(64, start);
        integral.fall(1, start + 10);
        assert_eq!(integral.until(start + 10), 640);
        integral.rise(2, start + 20);
        assert_eq!(integral.until(start + 30), 640 + 63 * 10 + 65 * 10);
        integral.fall(65, start + 30);
        assert_eq!(integral.until(u64::MAX), 640 + 63 * 10 + 65 * 10);
    }
}
