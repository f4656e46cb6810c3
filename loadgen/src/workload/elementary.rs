//! Logarithm and exponential, built only from additions, multiplications and divisions, which every processor rounds alike: a seed draws
//! the same on every machine, whatever its math library.

/// ln x of a normal x: x is m * 2^e with m in sqrt(1/2)..sqrt(2).
#[inline]
pub(crate) fn logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let mut mantissa = f64::from_bits((x.to_bits() & MANTISSA) | ONE);
    let mut exponent = ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023;
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    f64::from(exponent) * std::f64::consts::LN_2 + artanh_series((mantissa - 1.0) / (mantissa + 1.0))
}

/// ln m = 2 artanh s with s = (m - 1)/(m + 1). For m in sqrt(1/2)..sqrt(2) the truncation error is below 2^-60.
#[inline]
fn artanh_series(s: f64) -> f64 {
    let square = s * s;
    let series = (0..11_i32).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    2.0 * s * series
}

/// e^x: x is n ln 2 + r with r in -ln 2/2..ln 2/2. Infinite above 709, and 0 below -708.
pub(super) fn exponential(x: f64) -> f64 {
    // ln 2 in two parts. The first has few enough bits that its multiples are exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    if x > 709.0 {
        return f64::INFINITY;
    }
    if x < -708.0 {
        return 0.0;
    }
    let n = (x / std::f64::consts::LN_2).round();
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let power = f64::from_bits(((n as i64 + 1023) as u64) << 52);
    (1.0 + r * exponential_series(r)) * power
}

/// (e^r - 1)/r for |r| below 0.35: 1 + r/2 + r^2/6 + ...; the truncation error is below 2^-56.
#[inline]
fn exponential_series(r: f64) -> f64 {
    (2..15_i32).rev().fold(1.0, |sum, i| 1.0 + sum * r / f64::from(i))
}

/// ln(1 + x)/x, and 1 for 0. Exact also where 1 + x loses the digits of x.
pub(super) fn logarithm_of_more(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else if x.abs() < 0.3 {
        artanh_series(x / (2.0 + x)) / x
    } else {
        logarithm(1.0 + x) / x
    }
}

/// (e^x - 1)/x, and 1 for 0. Exact also where e^x - 1 loses the digits of x.
pub(super) fn exponential_less_one(x: f64) -> f64 {
    if x.abs() < 0.35 { exponential_series(x) } else { (exponential(x) - 1.0) / x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(own: f64, library: f64, x: f64) {
        assert!((own - library).abs() <= library.abs() * 1e-15, "at {x}: {own}, not {library}");
    }

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for i in 1..200_000_u64 {
            let x = (i * 45_035_996_273) as f64 / (1_u64 << 53) as f64;
            let (own, library) = (logarithm(x), x.ln());
            assert!((own - library).abs() <= library.abs() * 4e-16 + 1e-17, "ln {x}: {own}, not {library}");
        }
    }

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for i in -70_000..70_000 {
            let x = f64::from(i) * 0.010_1;
            close(exponential(x), x.exp(), x);
        }
        assert!(exponential(1e9).is_infinite());
        assert!(exponential(-1e9) < f64::MIN_POSITIVE);
    }

    #[test]
    fn near_zero_nothing_is_lost() {
        for i in -3000..3000 {
            for scale in [1e-12, 1e-6, 1e-3, 0.3e-3] {
                let x = f64::from(i) * scale;
                if x > -0.95 && i != 0 {
                    close(logarithm_of_more(x), x.ln_1p() / x, x);
                }
                if i != 0 {
                    close(exponential_less_one(x), x.exp_m1() / x, x);
                }
            }
        }
        close(logarithm_of_more(0.0), 1.0, 0.0);
        close(exponential_less_one(0.0), 1.0, 0.0);
    }
}
