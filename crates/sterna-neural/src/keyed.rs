//! Random numbers that are functions of (seed, purpose, step, index): nothing to store, nothing to order.

/// What a number is for, so that streams never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Starting values of parameters.
    Initialise,
    /// Which samples a training batch takes.
    Batch,
    /// Noise of simulated paths and of score matching.
    Noise,
    /// Times along a path.
    Time,
}

/// A well-mixed 64-bit function of the key: three rounds of a multiply–xorshift finaliser, with each part
/// of the key added between rounds.
pub fn bits(seed: u64, purpose: Purpose, step: u64, index: u64) -> u64 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let z = mix(seed.wrapping_add(GOLDEN).wrapping_add((purpose as u64) << 56));
    let z = mix(z.wrapping_add(step.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN));
    mix(z.wrapping_add(index.wrapping_mul(GOLDEN)).wrapping_add(GOLDEN))
}

/// Uniform in (0, 1).
pub fn uniform(seed: u64, purpose: Purpose, step: u64, index: u64) -> f64 {
    ((bits(seed, purpose, step, index) >> 11) as f64 + 0.5) * 2f64.powi(-53)
}

/// A whole number below `n`.
pub fn below(seed: u64, purpose: Purpose, step: u64, index: u64, n: usize) -> usize {
    ((bits(seed, purpose, step, index) as u128 * n as u128) >> 64) as usize
}

/// A standard normal number.
pub fn normal(seed: u64, purpose: Purpose, step: u64, index: u64) -> f64 {
    let u = uniform(seed, purpose, step, 2 * index);
    let v = uniform(seed, purpose, step, 2 * index + 1);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_laws() {
        let n = 100_000;
        let (mut mean, mut square, mut u) = (0.0, 0.0, 0.0);
        for i in 0..n {
            let x = normal(3, Purpose::Noise, 5, i);
            mean += x;
            square += x * x;
            u += uniform(3, Purpose::Time, 5, i);
        }
        let n = n as f64;
        // Five standard errors.
        assert!((mean / n).abs() < 5.0 / n.sqrt());
        assert!((square / n - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert!((u / n - 0.5).abs() < 5.0 * (1.0 / 12.0 / n).sqrt());
    }

    #[test]
    fn each_part_of_the_key_counts() {
        let base = bits(1, Purpose::Noise, 2, 3);
        assert_ne!(base, bits(2, Purpose::Noise, 2, 3));
        assert_ne!(base, bits(1, Purpose::Time, 2, 3));
        assert_ne!(base, bits(1, Purpose::Noise, 3, 3));
        assert_ne!(base, bits(1, Purpose::Noise, 2, 4));
    }
}
