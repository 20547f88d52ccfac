//! Exact linear classification of large sparse data.
//!
//! For rows `x_i`, labels `y_i` in {-1, +1} and costs `c_i = C * class weight * sample weight` the crate solves
//!
//! ```text
//! primal   min_{w,b}  1/2 |w|^2 + sum_i c_i xi(y_i (w.x_i + b))           xi: hinge, squared hinge, logistic
//! dual     max_a      sum_i h_i(a_i) - 1/2 |sum_i a_i y_i x_i|^2,         0 <= a_i <= u_i,  sum_i y_i a_i = 0
//! ```
//!
//! and returns every solution with its duality gap. Without an intercept, or with a penalised one, the equality constraint
//! of the dual is absent.
//!
//! | symbol | meaning |
//! |---|---|
//! | `n`, `d` | rows, columns |
//! | `m_i` | margin `y_i (w.x_i + b)` |
//! | `a_i` (`alpha`) | dual variable of row `i` |
//! | `w(a)` | `sum_i a_i y_i x_i` |
//! | `g` | gradient; `pg` its projection on the box |
//!
//! Map of the modules, arrows of use pointing upwards only:
//!
//! * [`data`]: row access over borrowed CSR and dense arrays, kernels, the svmlight reader;
//! * [`loss`]: the three losses with derivative, curvature and conjugate;
//! * [`solver`]: pure functions from a [`solver::Problem`] to a [`solver::Solution`];
//! * [`store`]: the compressed block file: written from any stream of rows, read as if it were hostile;
//! * [`multiclass`], [`select`], [`path`], [`outofcore`]: drivers (one-vs-rest tasks, warm-started search for `C`, the plane of two
//!   costs, training on a store that is larger than memory);
//! * [`parallel`]: loops over tasks, compiled once; [`memory`]: large vectors whose allocation may fail;
//!   [`file_at`]: files read and written at a place; [`durable`]: files that are never lost;
//! * `python`: borrow, detach, call, map errors (feature `python` only).
//!
//! Papers are cited in the modules as: **Chu15** Warm Start for Parameter Selection of Linear Classifiers (KDD 2015);
//! **Hsieh08** A Dual Coordinate Descent Method for Large-scale Linear SVM (ICML 2008); **Yu11** Dual Coordinate Descent
//! Methods for Logistic Regression and Maximum Entropy Models (Machine Learning 85, 2011); **GalliLin21** A Study on
//! Truncated Newton Methods for Linear Classification (IEEE TNNLS 2021); **Wesierski16** Entire Regularization Path for the
//! Asymmetric-Cost Linear SVM (2016); **ChangRoth11** Selective Block Minimization for Faster Convergence of Limited Memory
//! Large-Scale Linear Models (KDD 2011); **ShalevShwartz07** Pegasos: Primal Estimated sub-GrAdient SOlver for SVM (ICML 2007);
//! **Chang10** Training and Testing Low-degree Polynomial Data Mappings via Linear SVM (JMLR 11, 2010).

pub mod data;
pub mod durable;
pub mod error;
pub mod file_at;
pub mod loss;
pub mod memory;
pub mod multiclass;
pub mod outofcore;
pub mod parallel;
pub mod path;
pub mod select;
pub mod solver;
pub mod store;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Result};
