//! The losses of the margin `m = y (w.x + b)`, one file each.
//!
//! Conventions: [`Loss::value`] is `xi(m)`; [`Loss::conjugate`] is `xi*(-a)`, the supremum over `m` of
//! `-a m - xi(m)`, so that a row of cost `c` contributes `h(a) = -c xi*(-a / c)` to the dual. All losses have
//! `xi*(-a) = inf` for `a < 0`.
//!
//! Solvers take a loss as a value of its own type. [`LossKind`] is its name at run time; `with_loss` and
//! `with_smooth_loss` go from the one to the other, and are the only places that list the losses.

pub mod elementary;
mod hinge;
mod logistic;
mod modified_huber;
mod squared_hinge;
mod traits;

pub use hinge::Hinge;
pub use logistic::{Logistic, sigmoid, sigmoids};
pub use modified_huber::ModifiedHuber;
pub use squared_hinge::SquaredHinge;
pub use traits::{BoxLoss, Loss};

/// Names of the losses, as users write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// `max(0, 1 - m)`
    Hinge,
    /// `max(0, 1 - m)^2`
    SquaredHinge,
    /// `max(0, 1 - m)^2` from -1 on, `-4 m` below
    ModifiedHuber,
    /// `log(1 + exp(-m))`
    Logistic,
}

/// Evaluates `$body` with `$loss` the loss of that name.
macro_rules! with_loss {
    ($kind:expr, $loss:ident => $body:expr) => {
        $crate::loss::with_smooth_loss!($kind, $loss => $body, else {
            let $loss = $crate::loss::Hinge;
            $body
        })
    };
}
pub(crate) use with_loss;

/// The same where losses with a kink are another matter.
macro_rules! with_smooth_loss {
    ($kind:expr, $loss:ident => $body:expr, else $kinked:expr) => {
        match $kind {
            $crate::loss::LossKind::Hinge => $kinked,
            $crate::loss::LossKind::SquaredHinge => {
                let $loss = $crate::loss::SquaredHinge;
                $body
            }
            $crate::loss::LossKind::ModifiedHuber => {
                let $loss = $crate::loss::ModifiedHuber;
                $body
            }
            $crate::loss::LossKind::Logistic => {
                let $loss = $crate::loss::Logistic;
                $body
            }
        }
    };
}
pub(crate) use with_smooth_loss;

impl LossKind {
    /// All of them, by the names that users write.
    pub const NAMES: [(&str, Self); 4] = [
        ("hinge", Self::Hinge),
        ("squared_hinge", Self::SquaredHinge),
        ("modified_huber", Self::ModifiedHuber),
        ("logistic", Self::Logistic),
    ];

    /// As [`Loss::is_smooth`].
    pub fn is_smooth(self) -> bool {
        with_loss!(self, loss => loss.is_smooth())
    }

    /// As [`Loss::can_be_zero`].
    pub fn can_be_zero(self) -> bool {
        with_loss!(self, loss => loss.can_be_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Derivative and curvature against central differences, away from kinks.
    fn check_differences<L: Loss>(loss: L, m: f64) -> Result<(), TestCaseError> {
        let h = 1e-5;
        if (m - 1.0).abs() < 10.0 * h {
            return Ok(());
        }
        let slope = (loss.value(m + h) - loss.value(m - h)) / (2.0 * h);
        prop_assert!((slope - loss.derivative(m)).abs() <= 1e-8 * (1.0 + m * m), "slope {slope} at {m}");
        let bend = (loss.derivative(m + h) - loss.derivative(m - h)) / (2.0 * h);
        prop_assert!((bend - loss.curvature(m)).abs() <= 1e-8 * (1.0 + m.abs()), "bend {bend} at {m}");
        prop_assert_eq!(loss.all(m), [loss.value(m), loss.derivative(m), loss.curvature(m)]);
        Ok(())
    }

    /// Fenchel-Young: `xi(m) + xi*(-a) >= -a m`, with equality at `a = -xi'(m)`.
    fn check_conjugate<L: Loss>(loss: L, m: f64, a: f64) -> Result<(), TestCaseError> {
        let slack = |a: f64| loss.value(m) + loss.conjugate(a) + a * m;
        prop_assert!(slack(a) >= -1e-12 * (1.0 + m * m), "slack {} at m {m}, a {a}", slack(a));
        let tight = slack(-loss.derivative(m));
        prop_assert!(tight.abs() <= 1e-12 * (1.0 + m * m), "slack {tight} at m {m}");
        Ok(())
    }

    proptest! {
        #[test]
        fn hinge_is_consistent(m in -40.0..40.0f64, a in 0.0..1.0f64) {
            check_differences(Hinge, m)?;
            check_conjugate(Hinge, m, a)?;
        }
        #[test]
        fn squared_hinge_is_consistent(m in -40.0..40.0f64, a in 0.0..50.0f64) {
            check_differences(SquaredHinge, m)?;
            check_conjugate(SquaredHinge, m, a)?;
        }
        #[test]
        fn modified_huber_is_consistent(m in -40.0..40.0f64, a in 0.0..4.0f64) {
            if (m + 1.0).abs() > 1e-4 {
                check_differences(ModifiedHuber, m)?;
            }
            check_conjugate(ModifiedHuber, m, a)?;
        }
        #[test]
        fn logistic_is_consistent(m in -40.0..40.0f64, a in 0.0..1.0f64) {
            check_differences(Logistic, m)?;
            check_conjugate(Logistic, m, a)?;
        }
    }

    #[test]
    fn conjugates_are_infinite_outside_their_domain() {
        for a in [-1e-9, -1.0, 1.0 + 1e-9] {
            assert_eq!(Hinge.conjugate(a), f64::INFINITY);
            assert_eq!(Logistic.conjugate(a), f64::INFINITY);
        }
        assert_eq!(SquaredHinge.conjugate(-1e-9), f64::INFINITY);
        assert_eq!(
            (ModifiedHuber.conjugate(-1e-9), ModifiedHuber.conjugate(4.0 + 1e-9)),
            (f64::INFINITY, f64::INFINITY)
        );
        assert_eq!((Logistic.conjugate(0.0), Logistic.conjugate(1.0)), (0.0, 0.0));
    }

    #[test]
    fn logistic_does_not_overflow() {
        assert_eq!(Logistic.value(-1e4), 1e4);
        assert_eq!(Logistic.value(1e4), 0.0);
        assert_eq!((Logistic.derivative(-1e4), Logistic.derivative(1e4)), (-1.0, 0.0));
        assert_eq!(Logistic.curvature(1e4), 0.0);
    }
}
