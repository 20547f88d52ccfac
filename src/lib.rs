//! Exact linear classification of large sparse data.
//!
//! For rows `x_i`, labels `y_i` in {-1, +1} and costs `c_i = C * class weight * sample weight` the crate
//! solves
//!
//! ```text
//! primal   min_{w,b}  1/2 |w|^2 + sum_i c_i xi(y_i (w.x_i + b))           xi: hinge, squared hinge, logistic
//! dual     max_a      sum_i h_i(a_i) - 1/2 |sum_i a_i y_i x_i|^2,        0 <= a_i <= u_i,  sum_i y_i a_i = 0
//! ```
//!
//! and returns every solution with its duality gap. Without an intercept, or with a penalised one, the
//! equality constraint of the dual is absent.
//!
//! | symbol | meaning |
//! |---|---|
//! | `n`, `d` | rows, columns |
//! | `m_i` | margin `y_i (w.x_i + b)` |
//! | `a_i` (`alpha`) | dual variable of row `i` |
//! | `w(a)` | `sum_i a_i y_i x_i` |
//! | `g` | gradient; `pg` its projection on the box |
//!
//! Map of the modules, each using those above it:
//!
//! * [`memory`]: large vectors whose allocation may fail; [`parallel`]: loops over tasks, compiled once;
//!   [`durable`]: files that are never lost;
//! * [`matrix`]: row access over borrowed CSR and dense arrays, and the kernels; [`pairs`]: degree-2 features
//!   of such rows; [`presolve`]: the same problem with fewer columns; [`text`]: the svmlight reader;
//! * [`loss`]: the losses with derivative, curvature and conjugate; [`penalty`]: what weights cost, and their
//!   bounds;
//! * [`mod@fit`]: solvers, pure functions from a [`fit::Problem`] to a [`fit::Solution`];
//! * [`labels`]: the binary problems of classes and labels;
//! * [`store`]: the compressed block file, written from any stream of rows, read as if it were hostile;
//!   [`source`]: its rows in memory;
//! * [`search`]: warm-started search for `C`; [`cost_plane`]: the plane of two costs; [`blocks`]: training on
//!   a store that is larger than memory; [`online`]: learning from rows that are seen once;
//! * [`shards`]: fits whose rows are in other processes, or in pieces of a store, and what these answer;
//! * [`front`]: the front door, [`fit()`] and [`front::search::Search`]: from a question to an
//!   answer, all decisions in between;
//! * [`model`]: what is left of a fit once it is over: saved, served, converted;
//! * `python`: borrow, detach, call, map errors (feature `python` only).
//!
//! Five works are what most of the crate is about:
//!
//! * **Chu15** Chu, Ho, Tsai, Lin, Lin: Warm Start for Parameter Selection of Linear Classifiers (KDD 2015);
//! * **Hsieh08** Chang, Hsieh, Lin, Keerthi, Sundararajan: A Dual Coordinate Descent Method for Large-scale
//!   Linear SVM, the slides of the talk at ICML 2008, cited by the title of a slide;
//! * **Wesierski16** Wesierski et al.: Exploring the Entire Regularization Path for the Asymmetric Cost
//!   Linear Support Vector Machine (2016);
//! * **ChangRoth11** Chang, Roth: Selective Block Minimization for Faster Convergence of Limited Memory
//!   Large-Scale Linear Models (KDD 2011);
//! * **SchmidtThieme** Schmidt-Thieme: Learning SVMs / Primal Methods, the slides of a lecture (Advanced
//!   Topics in Machine Learning, University of Hildesheim), cited by the title of a slide.
//!
//! Others are cited as **ShalevShwartz07** Pegasos: Primal Estimated sub-GrAdient SOlver for SVM (ICML 2007);
//! **Keerthi08** A Sequential Dual Method for Large Scale Multi-class Linear SVMs (KDD 2008); **Chang10**
//! Training and Testing Low-degree Polynomial Data Mappings via Linear SVM (JMLR 11, 2010); **Yu10** Large
//! Linear Classification When Data Cannot Fit in Memory (KDD 2010); **Yu11** Dual Coordinate Descent Methods
//! for Logistic Regression and Maximum Entropy Models (Machine Learning 85, 2011); **GalliLin21** A Study on
//! Truncated Newton Methods for Linear Classification (IEEE TNNLS 2021).

pub mod blocks;
pub mod cost_plane;
pub mod durable;
pub mod encode;
pub mod error;
pub mod fit;
pub mod front;
pub mod labels;
pub mod loss;
pub mod matrix;
pub mod memory;
pub mod model;
pub mod names;
pub mod online;
pub mod pairs;
pub mod parallel;
pub mod penalty;
pub mod presolve;
pub mod search;
pub mod shards;
pub mod source;
pub mod store;
pub mod text;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Result};
pub use front::{Outcome, Source, Spec, Targets, fit};
