//! Solvers that are there for comparison.
//!
//! * [`subgradient`]: subgradient descent in the primal and Pegasos, for all losses;
//! * [`primal_cd`]: coordinate descent in the primal, squared hinge, with [`extrapolation`];
//! * [`cutting_plane`]: cutting planes, hinge, with [`simplex_qp`].

pub mod cutting_plane;
pub mod extrapolation;
pub mod primal_cd;
pub mod simplex_qp;
pub mod subgradient;
