//! The entire regularisation path of the hinge in two costs (Wesierski16).

pub mod complex;
pub mod explore;
pub mod inverse;
pub mod keys;
pub mod polygon;
pub mod products;
pub mod refine;
pub mod sets;
pub mod state;
