//! The exponential distribution of mean 1, by inversion: -ln(u) of a uniform u.
//!
//! With the logarithm of `libm`, which uses only operations that every processor rounds alike, so that a seed gives the same schedule on
//! every machine, whatever its C library.

use redisbench_wire::rate::FRACTION_BITS;

/// The exponential variate of random `bits`, in units of 2^-[`FRACTION_BITS`]: at most 36.8.
#[inline]
#[allow(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "53 bits are exact, and -ln(u) is not negative")]
pub(super) fn exponential(bits: u64) -> u64 {
    // 53 bits, as 1 to 2^53 over 2^53.
    let uniform = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-libm::log(uniform) * (1_u64 << FRACTION_BITS) as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_nothing_to_the_rarest() {
        assert_eq!(exponential(u64::MAX), 0);
        let rarest = exponential(0) as f64 / (1_u64 << FRACTION_BITS) as f64;
        assert!((rarest - 53.0 * std::f64::consts::LN_2).abs() < 1e-9, "{rarest}");
        // The same on every machine and in every version, to the last bit.
        let some = [1, 1 << 40, 1 << 62, 1 << 63, 0xDEAD_BEEF_DEAD_BEEF];
        let expected = [40_392_539_393_647, 18_290_961_232_811, 1_524_246_769_571, 762_123_384_785, 153_324_194_859];
        assert_eq!(some.map(exponential), expected);
    }
}
