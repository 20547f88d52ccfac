//! What a loss must tell the solvers.

/// A convex, falling loss of the margin.
pub trait Loss: Copy + Send + Sync + 'static {
    /// `xi(m)`.
    fn value(self, m: f64) -> f64;
    /// `xi'(m)`, a subgradient where the loss has a kink.
    fn derivative(self, m: f64) -> f64;
    /// `xi''(m)`, generalised where the derivative has a kink.
    fn curvature(self, m: f64) -> f64;
    /// Value, derivative and curvature at once.
    #[inline(always)]
    fn all(self, m: f64) -> [f64; 3] {
        [self.value(m), self.derivative(m), self.curvature(m)]
    }
    /// The same of several margins, with the same bits.
    #[inline(always)]
    fn all_of<const N: usize>(self, m: [f64; N]) -> [[f64; N]; 3] {
        let mut terms = [[0.0; N]; 3];
        for k in 0..N {
            let [value, slope, bend] = self.all(m[k]);
            (terms[0][k], terms[1][k], terms[2][k]) = (value, slope, bend);
        }
        terms
    }
    /// `xi*(-a)`, infinite outside its domain.
    fn conjugate(self, a: f64) -> f64;
    /// Upper bound of the dual variable of a row of cost `c`.
    fn upper(self, cost: f64) -> f64;
    /// Slope of the dual problem, to be minimised, along the variable `a` of a row of cost `c` and
    /// margin `m`.
    fn dual_slope(self, m: f64, cost: f64, a: f64) -> f64;
    /// Whether the derivative is continuous: Newton's method takes the loss as it is.
    fn is_smooth(self) -> bool;
    /// Whether it is a multiple of `max(0, 1 - m)^2`: a parabola up to a margin of 1, nothing beyond.
    fn is_half_parabola(self) -> bool {
        false
    }
    /// Whether rows far on the right side have no loss at all, and dual variables of 0.
    fn can_be_zero(self) -> bool;
    /// At least `xi''`.
    fn largest_curvature(self) -> f64;
    /// At least `-xi'(m) m` at every margin: `|w|^2` of an optimum for costs that add up to 1.
    fn squared_radius(self) -> f64;
    /// Passes that dual coordinate descent takes to a gap of 1e-4 at `C = 1` with rows of norm 1, and the
    /// power of `C` with which they grow. Measured at C = 1 and C = 16 on imdb, phishing_urls, 20news.
    fn expected_passes(self) -> [f64; 2];
    /// The bound of Chu15 below which `C` underfits: with no more than this, no margin can pass the steep
    /// part of the loss. `weight` is the sum of the sample weights, `max_squared_norm` the largest `|x_i|^2`.
    fn smallest_c(self, weight: f64, max_squared_norm: f64) -> f64;

    /// At least `-sum c_i xi'(m_i)` for rows of this sum of costs and of losses `c_i xi(m_i)`.
    fn steepness(self, cost: f64, losses: f64) -> f64;

    /// `h(a) = -c xi*(-a / c)`, the row's term in the dual.
    #[inline(always)]
    fn dual_term(self, cost: f64, a: f64) -> f64 {
        -cost * self.conjugate(a / cost)
    }
    /// [`Self::dual_term`] off by a few rounding errors of `a` (some 40 where `a` is near the end of its
    /// box), even where `a / c` is small.
    #[inline(always)]
    fn dual_term_closely(self, cost: f64, a: f64) -> f64 {
        self.dual_term(cost, a)
    }
    /// The same for several rows, each step for all of them before the next.
    #[inline(always)]
    fn dual_terms_closely<const N: usize>(self, cost: &[f64; N], a: &[f64; N]) -> [f64; N] {
        let mut terms = [0.0; N];
        for k in 0..N {
            terms[k] = self.dual_term_closely(cost[k], a[k]);
        }
        terms
    }
}

/// A loss whose dual is a box-constrained quadratic.
pub trait BoxLoss: Loss {
    /// `D_ii`, added to the diagonal of `Q` for a row of cost `c`.
    fn diagonal(self, cost: f64) -> f64;
}
