//! Where the product of two features has its weight, and with which factor it counts.

use crate::memory::CollectLarge;
use crate::{Error, Result};

/// Largest number of hash bits: 2^30 weights take 8 GB.
pub const MAX_BITS: u32 = 30;
/// Fewest hash bits: below, dense factorisations would see a column twice in a row.
pub const MIN_BITS: u32 = 12;

/// Factors of the mapped features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Value of the constant feature; none, if 0.
    pub constant: f64,
    /// Factor of `x_j`.
    pub linear: f64,
    /// Factor of `x_j^2`.
    pub square: f64,
    /// Factor of `x_j x_k`, `j < k`.
    pub product: f64,
}

impl Factors {
    /// Those with `phi(x) . phi(z) = (gamma x.z + r)^2` (Chang10; SchmidtThieme, slide "Basic Idea", for
    /// `r = 1`). The factor of a product is `sqrt(2) gamma`, as squaring the kernel out gives it; the slide
    /// has `sqrt(2 gamma)`.
    pub fn kernel(gamma: f64, r: f64) -> Self {
        Self {
            constant: r,
            linear: (2.0 * gamma * r).sqrt(),
            square: gamma,
            product: std::f64::consts::SQRT_2 * gamma,
        }
    }

    /// The features `x_j`, `x_j^2`, `x_j x_k` themselves (SchmidtThieme, slide "Basic Idea"). Deviation: no
    /// constant 1, which is what an intercept is for.
    pub fn plain() -> Self {
        Self { constant: 0.0, linear: 1.0, square: 1.0, product: 1.0 }
    }
}

/// Positions of pairs.
#[derive(Clone, Debug)]
pub enum PairLayout {
    /// Row-wise upper triangle behind the linear terms: one weight per pair.
    Exact,
    /// Linear terms, squares, then products by a signed hash into `2^bits` weights.
    Hashed {
        /// Mixed number of each column.
        keys: Vec<u32>,
        /// `log2` of the number of weights of products.
        bits: u32,
    },
}

/// The degree-2 map of `n` features.
#[derive(Clone, Debug)]
pub struct Map {
    pub(super) n: usize,
    /// The factors.
    pub factors: Factors,
    /// The positions.
    pub layout: PairLayout,
}

/// Spreads 64 bits over the top bits (2^64 over the golden ratio, odd).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub(super) fn key(seed: u64, j: usize) -> u32 {
    let mut x = seed.wrapping_add((j as u64 + 1).wrapping_mul(GOLDEN));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as u32
}

/// Position among the hashed weights, and sign, of the product of the columns with these keys, in any order:
/// a block store numbers columns otherwise than its input.
#[inline(always)]
pub fn hashed(one: u32, other: u32, bits: u32) -> (usize, f64) {
    let (first, second) = (one.min(other), one.max(other));
    let h = ((u64::from(first) << 32) | u64::from(second)).wrapping_mul(GOLDEN);
    let h = (h ^ (h >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((h >> (64 - bits)) as usize, if (h >> (63 - bits)) & 1 == 0 { 1.0 } else { -1.0 })
}

impl Map {
    /// A map of `n` features: exact where all `n(n + 3)/2` weights number at most `2^bits`, else hashed by
    /// `seed`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for bits outside 12 to 30 and factors that are not finite numbers of at least 0.
    pub fn new(n: usize, factors: Factors, bits: u32, seed: u64) -> Result<Self> {
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::Parameter {
                name: "hash_bits",
                value: bits.to_string(),
                rule: "from 12 to 30",
            });
        }
        for (name, value) in
            [("coef0", factors.constant), ("gamma", factors.square), ("gamma", factors.linear)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Parameter {
                    name,
                    value: value.to_string(),
                    rule: "a finite number of at least 0",
                });
            }
        }
        let pairs = (n as u128) * (n as u128 + 3) / 2;
        let layout = if pairs <= 1 << bits {
            PairLayout::Exact
        } else {
            if n > u32::MAX as usize / 2 {
                return Err(Error::Parameter {
                    name: "number of features",
                    value: n.to_string(),
                    rule: "below 2^31",
                });
            }
            PairLayout::Hashed { keys: (0..n).map(|j| key(seed, j)).collect_large(), bits }
        };
        Ok(Self { n, factors, layout })
    }

    /// The same map of other columns: column `j` there is column `old[j]` here.
    pub fn of_columns(&self, old: &[u32]) -> Self {
        let layout = match &self.layout {
            PairLayout::Exact => PairLayout::Exact,
            PairLayout::Hashed { keys, bits } => PairLayout::Hashed {
                keys: old.iter().map(|&j| keys[j as usize]).collect_large(),
                bits: *bits,
            },
        };
        Self { n: old.len(), factors: self.factors, layout }
    }

    /// Calls `f` with the positions here and in `inner = self.of_columns(old)` of every weight that both
    /// have.
    pub fn pair_positions(&self, inner: &Self, old: &[u32], mut f: impl FnMut(usize, usize)) {
        for (j, &old) in old.iter().enumerate() {
            f(old as usize, j);
        }
        match &self.layout {
            PairLayout::Exact => {
                for j in 0..inner.n {
                    for k in j..inner.n {
                        let (a, b) = (old[j] as usize, old[k] as usize);
                        f(self.start(a.min(b)) + a.max(b), inner.start(j) + k);
                    }
                }
            }
            PairLayout::Hashed { bits, .. } => {
                for (j, &old) in old.iter().enumerate() {
                    f(self.n + old as usize, inner.n + j);
                }
                for at in 0..1 << bits {
                    f(2 * self.n + at, 2 * inner.n + at);
                }
            }
        }
        if self.factors.constant != 0.0 {
            f(self.n_pairs(), inner.n_pairs());
        }
    }

    /// All that tells the map from another one, in a line.
    pub fn description(&self) -> String {
        let keys = match &self.layout {
            PairLayout::Exact => "exact".to_owned(),
            PairLayout::Hashed { keys, bits } => {
                let mixed =
                    keys.iter().fold(0u64, |mixed, &key| (mixed ^ u64::from(key)).wrapping_mul(GOLDEN));
                format!("{bits} bits, {mixed:x}")
            }
        };
        format!("{:?}, {keys}", self.factors)
    }

    /// Features before the map.
    #[inline(always)]
    pub fn n_in(&self) -> usize {
        self.n
    }

    /// Whether every pair has a weight of its own.
    pub fn is_exact(&self) -> bool {
        matches!(self.layout, PairLayout::Exact)
    }

    /// Weights without that of the constant feature, which comes last.
    #[inline(always)]
    pub fn n_pairs(&self) -> usize {
        match &self.layout {
            PairLayout::Exact => self.n * (self.n + 3) / 2,
            PairLayout::Hashed { bits, .. } => 2 * self.n + (1 << bits),
        }
    }

    /// Weights in all.
    #[inline(always)]
    pub fn n_out(&self) -> usize {
        self.n_pairs() + usize::from(self.factors.constant != 0.0)
    }

    /// In the exact layout, where the products with `j` begin: that of `j` and `k >= j` is at `start + k`.
    #[inline(always)]
    pub fn start(&self, j: usize) -> usize {
        self.n + j * (2 * self.n - j - 1) / 2
    }

    /// Position and factor (with sign) of the product of columns `j <= k`.
    pub fn position(&self, j: usize, k: usize) -> (usize, f64) {
        let factor = if j == k { self.factors.square } else { self.factors.product };
        match &self.layout {
            PairLayout::Exact => (self.start(j) + k, factor),
            PairLayout::Hashed { .. } if j == k => (self.n + j, factor),
            PairLayout::Hashed { keys, bits } => {
                let (at, sign) = hashed(keys[j], keys[k], *bits);
                (2 * self.n + at, sign * factor)
            }
        }
    }

    /// Squared norm of a mapped row, by its own: exact for the kernel's factors, for plain ones but for the
    /// fourth powers of entries, in expectation over the signs where pairs are hashed.
    pub fn usual_squared_norm(&self, squared: f64) -> f64 {
        let Factors { constant, linear, product, .. } = self.factors;
        constant * constant + linear * linear * squared + 0.5 * product * product * squared * squared
    }

    /// No mapped row has a squared norm above this, for rows of squared norm `squared` at most.
    pub fn squared_norm_limit(&self, squared: f64) -> f64 {
        let Factors { constant, linear, square, product } = self.factors;
        let pairs = match self.layout {
            PairLayout::Exact => square.powi(2).max(0.5 * product * product) * squared * squared,
            // All products of a row on one weight.
            PairLayout::Hashed { ref keys, .. } => {
                (square * squared).powi(2) + (0.5 * product * squared * keys.len() as f64).powi(2)
            }
        };
        constant * constant + linear * linear * squared + pairs
    }
}
