//! The exponential distribution of mean 1, by inversion: -ln(u) of a uniform u.
//!
//! The logarithm is computed here, with nothing but additions, multiplications and divisions, which every processor
//! rounds alike: the same seed is the same schedule on every machine, whatever its mathematical library.

use redisbench_wire::rate::FRACTION_BITS;

/// The exponential variate of random `bits`, in units of 2^-[`FRACTION_BITS`]: at most 36.8.
#[inline]
#[allow(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "53 bits are exact, and -ln(u) is not negative")]
pub(super) fn exponential(bits: u64) -> u64 {
    // 53 bits, as 1 to 2^53 over 2^53.
    let uniform = ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-logarithm(uniform) * (1_u64 << FRACTION_BITS) as f64) as u64
}

/// ln x of a normal x: x is m * 2^e with m in sqrt(1/2)..sqrt(2), and ln m = 2 artanh((m - 1)/(m + 1)), whose series
/// ends here below 2^-60.
#[inline]
fn logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let mut mantissa = f64::from_bits((x.to_bits() & MANTISSA) | ONE);
    let mut exponent = ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023;
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..11_i32).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for i in 1..200_000_u64 {
            let x = (i * 45_035_996_273) as f64 / (1_u64 << 53) as f64;
            let (own, library) = (logarithm(x), x.ln());
            assert!((own - library).abs() <= library.abs() * 4e-16 + 1e-17, "ln {x}: {own}, not {library}");
        }
    }

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
