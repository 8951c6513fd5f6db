//! Effective draws by ranks (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021): as ArviZ counts them, sound also
//! where a mean has no variance.

use super::series::effective_sample_size;
use crate::lanes::one::ln;

/// Effective draws for the bulk: those of the ranks, turned into normal scores.
///
/// ```
/// use sterna::estimates::{bulk_draws, tail_draws};
/// use sterna::streams::{Phase, Streams};
/// let mut stream = Streams::new(1).row(Phase::Check, 0, 0);
/// let chains: Vec<Vec<f64>> = (0..4).map(|_| (0..500).map(|_| stream.normal()).collect()).collect();
/// let chains: Vec<&[f64]> = chains.iter().map(|c| &c[..]).collect();
/// assert!(bulk_draws(&chains) > 1500.0 && tail_draws(&chains) > 1200.0);
/// ```
pub fn bulk_draws(chains: &[&[f64]]) -> f64 {
    let scores = normal_scores(chains);
    effective_sample_size(&scores.iter().map(|c| &c[..]).collect::<Vec<_>>())
}

/// Effective draws in the tails: the fewer of those for being below the 5% and the 95% quantile.
pub fn tail_draws(chains: &[&[f64]]) -> f64 {
    let mut all: Vec<f64> = chains.iter().flat_map(|c| c.iter().copied()).collect();
    if all.is_empty() {
        return f64::NAN;
    }
    all.sort_unstable_by(f64::total_cmp);
    let of = |share: f64| {
        let quantile = quantile(&all, share);
        let below = |c: &&[f64]| c.iter().map(|&x| f64::from(x <= quantile)).collect::<Vec<f64>>();
        let indicators: Vec<Vec<f64>> = chains.iter().map(below).collect();
        effective_sample_size(&indicators.iter().map(|c| &c[..]).collect::<Vec<_>>())
    };
    of(0.05).min(of(0.95))
}

/// A quantile of sorted numbers, linear between neighbours.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Φ⁻¹((rank − 3/8)/(n + 1/4)) of each number among all; equal numbers share their mean rank.
pub(super) fn normal_scores(chains: &[&[f64]]) -> Vec<Vec<f64>> {
    let mut order: Vec<(f64, usize, usize)> = Vec::with_capacity(chains.iter().map(|c| c.len()).sum());
    for (chain, numbers) in chains.iter().enumerate() {
        order.extend(numbers.iter().enumerate().map(|(i, &x)| (x, chain, i)));
    }
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut scores: Vec<Vec<f64>> = chains.iter().map(|c| vec![0.0; c.len()]).collect();
    let n = order.len() as f64;
    for tied in order.chunk_by(|a, b| a.0 == b.0).scan(0, |before, tied| {
        let first = *before;
        *before += tied.len();
        Some((first, tied))
    }) {
        let (first, tied) = tied;
        let rank = first as f64 + 0.5 * (tied.len() as f64 + 1.0);
        let score = normal_quantile((rank - 0.375) / (n + 0.25));
        tied.iter().for_each(|&(_, chain, i)| scores[chain][i] = score);
    }
    scores
}

/// Φ⁻¹ by the rational functions of Wichura (1988, AS 241), to 16 digits.
pub fn normal_quantile(p: f64) -> f64 {
    const CENTRE: [[f64; 8]; 2] = [
        [
            3.387_132_872_796_366_5,
            133.141_667_891_784_38,
            1_971.590_950_306_551_4,
            13_731.693_765_509_46,
            45_921.953_931_549_87,
            67_265.770_927_008_7,
            33_430.575_583_588_13,
            2_509.080_928_730_122_7,
        ],
        [
            1.0,
            42.313_330_701_600_91,
            687.187_007_492_057_9,
            5_394.196_021_424_751,
            21_213.794_301_586_597,
            39_307.895_800_092_71,
            28_729.085_735_721_943,
            5_226.495_278_852_545,
        ],
    ];
    const MIDDLE: [[f64; 8]; 2] = [
        [
            1.423_437_110_749_683_5,
            4.630_337_846_156_546,
            5.769_497_221_460_691,
            3.647_848_324_763_204_5,
            1.270_458_252_452_368_4,
            0.241_780_725_177_450_6,
            0.022_723_844_989_269_184,
            0.000_774_545_014_278_341_4,
        ],
        [
            1.0,
            2.053_191_626_637_759,
            1.676_384_830_183_803_8,
            0.689_767_334_985_1,
            0.148_103_976_427_480_08,
            0.015_198_666_563_616_457,
            0.000_547_593_808_499_534_5,
            1.050_750_071_644_416_9e-9,
        ],
    ];
    const TAIL: [[f64; 8]; 2] = [
        [
            6.657_904_643_501_103,
            5.463_784_911_164_114,
            1.784_826_539_917_291_3,
            0.296_560_571_828_504_87,
            0.026_532_189_526_576_124,
            0.001_242_660_947_388_078_4,
            2.711_555_568_743_487_6e-5,
            2.010_334_399_292_288_1e-7,
        ],
        [
            1.0,
            0.599_832_206_555_887_9,
            0.136_929_880_922_735_8,
            0.014_875_361_290_850_615,
            0.000_786_869_131_145_613_3,
            1.846_318_317_510_054_7e-5,
            1.421_511_758_316_446e-7,
            2.044_263_103_389_939_8e-15,
        ],
    ];
    let ratio = |[over, under]: [[f64; 8]; 2], x: f64| {
        let value = |c: [f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
        value(over) / value(under)
    };
    let away = p - 0.5;
    if away.abs() <= 0.425 {
        return away * ratio(CENTRE, 0.180_625 - away * away);
    }
    let r = (-ln(p.min(1.0 - p))).sqrt();
    let size = if r <= 5.0 { ratio(MIDDLE, r - 1.6) } else { ratio(TAIL, r - 5.0) };
    size.copysign(away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    #[test]
    fn quantiles_of_the_normal() {
        // scipy.stats.norm.ppf
        for (p, expected) in [
            (0.5, 0.0),
            (0.3, -0.524_400_512_708_041),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-15, -7.941_345_326_170_997),
        ] {
            assert!((normal_quantile(p) - expected).abs() < 1e-12, "{p}: {}", normal_quantile(p));
        }
    }

    /// An autoregression of 0.8 has an autocorrelation time of 9; a heavy tail does not change that.
    #[test]
    fn monotone_functions_have_the_same_bulk() {
        let chains: Vec<Vec<f64>> = (0..4)
            .map(|chain| {
                let mut stream = Streams::new(5).row(Phase::Check, 0, chain);
                let mut x = 0.0;
                (0..5000)
                    .map(|_| {
                        x = 0.8 * x + 0.6 * stream.normal();
                        x
                    })
                    .collect()
            })
            .collect();
        let wild: Vec<Vec<f64>> = chains.iter().map(|c| c.iter().map(|x| x.powi(9)).collect()).collect();
        let views = |c: &[Vec<f64>]| c.iter().map(|c| c.to_vec()).collect::<Vec<_>>();
        let bulk = |c: &[Vec<f64>]| bulk_draws(&views(c).iter().map(|c| &c[..]).collect::<Vec<_>>());
        assert_eq!(bulk(&chains), bulk(&wild));
        assert!((bulk(&chains) / (20_000.0 / 9.0) - 1.0).abs() < 0.15, "{}", bulk(&chains));
    }

    #[test]
    fn ties_share_their_rank() {
        let scores = normal_scores(&[&[1.0, 2.0], &[2.0, 3.0]]);
        assert_eq!(scores[0][1], scores[1][0]);
        assert!((scores[0][1]).abs() < 1e-12 && scores[0][0] == -scores[1][1]);
    }
}
