//! The whole way without Python: read an svmlight file, choose `C` by five folds, fit, and print what is
//! proved.
//!
//! ```text
//! cargo run --release --no-default-features --example fit -- FILE
//! ```
//!
//! Without a file it makes one of two noisy classes.
#![allow(clippy::print_stdout)] // what the example is for

use std::io::Write;
use std::path::{Path, PathBuf};

use hinge::fit::{Monitor, Params, Silent};
use hinge::front::search::Search;
use hinge::front::{Checked, Source, Spec, Targets};
use hinge::labels::Labels;
use hinge::matrix::csr::CsrView;
use hinge::search::{EndReason, Fold, SearchPlan, SearchStep, StopRule, Values};
use hinge::text::{self, Indices, ReadOptions, SvmlightData};
use hinge::{Error, Outcome, Result};

const N_FOLDS: usize = 5;

fn main() -> Result<()> {
    let made = tempfile::Builder::new()
        .suffix(".svm")
        .tempfile()
        .map_err(|error| Error::Callback { reason: format!("no temporary file: {error}") })?;
    let path = match std::env::args().nth(1) {
        Some(path) => PathBuf::from(path),
        None => make(made.path()),
    };
    let (c, outcome) = fit(&path)?;
    let facts = &outcome.facts[0];
    println!("C = {c}, {} weights, {:?} after {} passes", outcome.n_weights, facts.status, facts.passes);
    println!(
        "the objective is {:.6}, at most {:.1e} above the optimum (relatively)",
        facts.certificate.primal,
        facts.certificate.relative_gap()
    );
    Ok(())
}

/// Chooses `C` by the accuracy on held-out rows, and fits with it.
fn fit(path: &Path) -> Result<(f64, Outcome)> {
    let data: SvmlightData<f64> = text::read(path, &ReadOptions::default(), &|| Silent.cancelled())?;
    let Indices::Narrow(indices) = &data.indices else {
        return Err(Error::Labels { reason: "more than 2^31 entries".into() });
    };
    let (rows, structure) = CsrView::new(&data.indptr, indices, &data.values, data.n_cols)?;
    let source = Source::Rows(Checked { rows: rows.into(), structure });
    let positive = data.labels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ids: Vec<u32> = data.labels.iter().map(|&label| u32::from(label == positive)).collect();
    let targets = Targets::Classes(Labels { ids: &ids, n_classes: 2 });
    let spec = Spec { params: Params { tol: 1e-6, ..Params::default() }, ..Spec::default() };

    let folds = folds(ids.len());
    let plan = SearchPlan {
        values: Values::Range { c_min: None, c_max: 1024.0, ratio: 2.0 },
        refine: 0,
        stop: StopRule::Unchanged,
    };
    let mut best = (0.0, 1.0);
    let mut visit = |step: &SearchStep| {
        let accuracy = accuracy(step, &folds, &ids);
        if accuracy > best.0 {
            best = (accuracy, step.c);
        }
        Ok(Some(accuracy))
    };
    let search = Search { spec: &spec, folds: &folds, plan: &plan, resume: None };
    let ended: EndReason = search.run(&source, &targets, &vec![1.0; ids.len()], &Silent, &mut visit)?;
    println!("best accuracy {:.3} on held-out rows; the search ended: {ended:?}", best.0);

    let outcome = hinge::fit(&source, &targets, &vec![best.1; ids.len()], &spec, &Silent)?;
    Ok((best.1, outcome))
}

/// Every fifth row is held out in turn.
fn folds(n: usize) -> Vec<Fold> {
    let all = 0..n as u32;
    let held_out = |fold: usize| move |i: &u32| *i as usize % N_FOLDS == fold;
    let fold = |fold: usize| Fold {
        train: all.clone().filter(|i| !held_out(fold)(i)).collect(),
        test: all.clone().filter(held_out(fold)).collect(),
    };
    (0..N_FOLDS).map(fold).collect()
}

/// Share of the held-out rows on the right side.
fn accuracy(step: &SearchStep, folds: &[Fold], ids: &[u32]) -> f64 {
    let right = folds.iter().zip(step.decisions.iter()).map(|(fold, decisions)| {
        let is_right = |(&i, &d): (&u32, &f64)| (d > 0.0) == (ids[i as usize] == 1);
        fold.test.iter().zip(decisions).filter(|&row| is_right(row)).count()
    });
    right.sum::<usize>() as f64 / ids.len() as f64
}

/// Writes rows of ten sparse columns, of which the first two tell the classes apart, with noise.
fn make(path: &Path) -> PathBuf {
    let wave = |k: usize| ((k * 7919 % 1009) as f64 / 1009.0 - 0.5) * 2.0;
    let row = |i: usize| {
        let columns = (0..10).filter(|j| !(i + j).is_multiple_of(3) || *j < 2);
        let entries: Vec<(usize, f64)> = columns.map(|j| (j + 1, wave(10 * i + j))).collect();
        let label = if entries[0].1 - entries[1].1 + 0.3 * wave(31 * i) > 0.0 { 1 } else { -1 };
        let text: Vec<String> = entries.iter().map(|(j, v)| format!("{j}:{v:.4}")).collect();
        format!("{label} {}\n", text.join(" "))
    };
    let text: String = (0..1000).map(row).collect();
    let written = std::fs::File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.expect("a temporary file can be written");
    path.to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_and_proves() {
        let folder = tempfile::tempdir().unwrap();
        let (c, outcome) = fit(&make(&folder.path().join("made.svm"))).unwrap();
        assert!(c > 0.0 && outcome.n_weights == 10);
        assert!(outcome.facts[0].certificate.relative_gap() <= 1e-6);
    }
}
