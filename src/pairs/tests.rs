use super::*;
use crate::matrix::csr::CsrView;
use crate::matrix::dense::DenseView;
use proptest::prelude::*;

struct Sparse {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f64>,
    d: usize,
}

fn sparse(rows: &[Vec<f64>]) -> Sparse {
    let mut s = Sparse { indptr: vec![0], indices: Vec::new(), values: Vec::new(), d: rows[0].len() };
    for row in rows {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            s.indices.push(j as i32);
            s.values.push(v);
        }
        s.indptr.push(s.indices.len() as i64);
    }
    s
}

impl Sparse {
    fn view(&self) -> layout::Layout<'_> {
        CsrView::new(&self.indptr, &self.indices, &self.values, self.d).unwrap().0.into()
    }
}

/// The mapped row as a dense vector, from the definition.
fn expand(map: &Map, row: &[f64]) -> Vec<f64> {
    let mut phi = vec![0.0; map.n_out()];
    for (j, v) in row.iter().enumerate() {
        phi[j] += map.factors.linear * v;
        for (k, u) in row.iter().enumerate().skip(j) {
            let (at, factor) = map.position(j, k);
            phi[at] += factor * v * u;
        }
    }
    if map.factors.constant != 0.0 {
        phi[map.n_pairs()] = map.factors.constant;
    }
    phi
}

fn rows() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1..5usize, 1..20usize).prop_flat_map(|(n, d)| {
        let entry = prop_oneof![1 => Just(0.0), 1 => -3.0..3.0f64];
        prop::collection::vec(prop::collection::vec(entry, d), n)
    })
}

fn hashed_map(n: usize, factors: Factors, bits: u32) -> Map {
    Map { n, factors, layout: PairLayout::Hashed { keys: (0..n).map(|j| map::key(5, j)).collect(), bits } }
}

fn check<const L: usize>(
    any: layout::Layout<'_>,
    map: &Map,
    rows: &[Vec<f64>],
) -> std::result::Result<(), TestCaseError> {
    let mapped = Poly2::new(any, map).unwrap();
    let lane = |j: usize, l: usize| ((j * 7 + l * 13) as f64).sin();
    let w: Vec<[f64; L]> = (0..map.n_out()).map(|j| std::array::from_fn(|l| lane(j, l))).collect();
    for (i, row) in rows.iter().enumerate() {
        let phi = expand(map, row);
        let dots = mapped.dot_lanes(i, &w);
        let scale: [f64; L] = std::array::from_fn(|l| 0.5 + l as f64);
        let mut moved = w.clone();
        mapped.add_lanes(i, &scale, &mut moved);
        for l in 0..L {
            let exact: f64 = phi.iter().enumerate().map(|(j, v)| v * lane(j, l)).sum();
            prop_assert!((dots[l] - exact).abs() <= 1e-10 * (1.0 + exact.abs()));
            for (j, v) in phi.iter().enumerate() {
                prop_assert!((moved[j][l] - (lane(j, l) + scale[l] * v)).abs() <= 1e-11 * (1.0 + v.abs()));
            }
        }
        let squared: f64 = phi.iter().map(|v| v * v).sum();
        prop_assert!((mapped.squared_norm(i) - squared).abs() <= 1e-10 * (1.0 + squared));
        let input: f64 = row.iter().map(|v| v * v).sum();
        prop_assert!(squared <= map.squared_norm_limit(input) * (1.0 + 1e-9) + 1e-12);
        let mut read = vec![0.0; map.n_out()];
        let mut count = 0;
        mapped.for_each(i, |j, v| {
            read[j] += v;
            count += 1;
        });
        prop_assert_eq!(count, mapped.row_len(i));
        for (a, b) in read.iter().zip(&phi) {
            prop_assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn kernels_match_the_expanded_rows(
        rows in rows(),
        gamma in 0.1..2.0f64,
        r in prop_oneof![Just(0.0), 0.1..2.0f64],
        plain in any::<bool>(),
    ) {
        let d = rows[0].len();
        let factors = if plain { Factors::plain() } else { Factors::kernel(gamma, r) };
        let s = sparse(&rows);
        let flat = rows.concat();
        let dense: layout::Layout<'_> = DenseView::new(&flat, rows.len(), d).unwrap().0.into();
        // Four bits: pairs of one row collide.
        for map in [Map::new(d, factors, 22, 0).unwrap(), hashed_map(d, factors, 4)] {
            check::<1>(s.view(), &map, &rows)?;
            check::<4>(s.view(), &map, &rows)?;
            let full: Vec<Vec<f64>> = rows.clone();
            let mapped = Poly2::new(dense, &map).unwrap();
            let w: Vec<f64> = (0..map.n_out()).map(|j| (j as f64).cos()).collect();
            let lanes: Vec<[f64; 2]> = w.iter().map(|&w| [w, 2.0 * w]).collect();
            for (i, row) in full.iter().enumerate() {
                let exact: f64 = expand(&map, row).iter().zip(&w).map(|(a, b)| a * b).sum();
                prop_assert!((mapped.dot(i, &w) - exact).abs() <= 1e-10 * (1.0 + exact.abs()));
                prop_assert!(
                    (mapped.dot_lanes(i, &lanes)[1] - 2.0 * exact).abs() <= 1e-10 * (1.0 + exact.abs())
                );
                let (mut moved, mut expected) = (w.clone(), w.clone());
                mapped.add_scaled(i, -0.5, &mut moved);
                expected.iter_mut().zip(expand(&map, row)).for_each(|(w, v)| *w -= 0.5 * v);
                prop_assert!(
                    moved.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-11 * (1.0 + b.abs()))
                );
            }
        }
    }

    #[test]
    fn rows_of_one_value_are_the_same_rows(
        rows in rows(),
        scale in prop::collection::vec(0.1..2.0f64, 5),
        r in 0.0..1.0f64,
    ) {
        let of_one =
            |row: &[f64], v: f64| row.iter().map(|&x| if x == 0.0 { 0.0 } else { v }).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = rows.iter().zip(&scale).map(|(row, &v)| of_one(row, v)).collect();
        let s = sparse(&rows);
        let scaled = s.view().scaled().unwrap();
        let exact = Map::new(s.d, Factors::kernel(0.7, r), 22, 0).unwrap();
        for map in [exact, hashed_map(s.d, Factors::plain(), 4)] {
            check::<1>(layout::Layout::Scaled(scaled.view()), &map, &rows)?;
            check::<3>(layout::Layout::Scaled(scaled.view()), &map, &rows)?;
        }
    }

    #[test]
    fn other_columns_have_the_same_products(
        row in prop::collection::vec(-2.0..2.0f64, 8),
        bits in prop_oneof![Just(3u32), Just(22)],
    ) {
        let old = [6u32, 0, 3, 7, 2];
        let outer = if bits == 22 {
            Map::new(8, Factors::kernel(0.5, 0.3), 22, 0).unwrap()
        } else {
            hashed_map(8, Factors::plain(), bits)
        };
        let inner = outer.of_columns(&old);
        // A row that has entries in these columns only.
        let permuted: Vec<f64> = old.iter().map(|&j| row[j as usize]).collect();
        let mut row = row;
        for j in [1, 4, 5] {
            row[j] = 0.0;
        }
        let (whole, part) = (expand(&outer, &row), expand(&inner, &permuted));
        let mut seen = vec![0.0; outer.n_out()];
        outer.pair_positions(&inner, &old, |outer, inner| seen[outer] += part[inner]);
        prop_assert!(seen.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-12), "{seen:?} {whole:?}");
        prop_assert!(part.iter().map(|v| v * v).sum::<f64>() > 0.0);
    }

    #[test]
    fn inner_products_are_the_kernel(
        a in prop::collection::vec(-2.0..2.0f64, 6),
        b in prop::collection::vec(-2.0..2.0f64, 6),
        gamma in 0.1..2.0f64,
        r in 0.0..2.0f64,
    ) {
        let map = Map::new(6, Factors::kernel(gamma, r), 12, 0).unwrap();
        let product: f64 = expand(&map, &a).iter().zip(expand(&map, &b)).map(|(x, z)| x * z).sum();
        let xz: f64 = a.iter().zip(&b).map(|(x, z)| x * z).sum();
        prop_assert!((product - (gamma * xz + r).powi(2)).abs() < 1e-10);
    }
}

#[test]
fn positions_of_the_triangle_are_a_numbering() {
    let map = Map::new(7, Factors::plain(), 12, 0).unwrap();
    let mut positions: Vec<usize> =
        (0..7).flat_map(|j| (j..7).map(move |k| (j, k))).map(|(j, k)| map.position(j, k).0).collect();
    positions.sort_unstable();
    assert_eq!(positions, (7..35).collect::<Vec<_>>());
    assert_eq!((map.n_out(), map.is_exact()), (35, true));
}

#[test]
fn hashing_begins_where_the_triangle_outgrows_the_budget() {
    assert!(Map::new(89, Factors::plain(), 12, 0).unwrap().is_exact()); // 4094 weights
    let map = Map::new(90, Factors::plain(), 12, 0).unwrap();
    assert!(!map.is_exact());
    assert_eq!(map.n_out(), 180 + 4096);
    assert!(Map::new(9, Factors::plain(), 11, 0).is_err());
    assert!(Map::new(9, Factors::kernel(-1.0, 1.0), 12, 0).is_err());
    let other = Map::new(90, Factors::plain(), 12, 1).unwrap();
    assert!((1..80).any(|k| map.position(0, k) != other.position(0, k)));
}

#[test]
fn hashed_positions_and_signs_are_even() {
    let map = Map::new(400, Factors::plain(), 12, 3).unwrap();
    let (mut counts, mut signs) = (vec![0; 4096], 0.0);
    for j in 0..400 {
        for k in j + 1..400 {
            let (at, factor) = map.position(j, k);
            counts[at - 800] += 1;
            signs += factor;
        }
    }
    let mean = 79_800.0 / 4096.0;
    let chi: f64 = counts.iter().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
    assert!((chi / 4095.0 - 1.0).abs() < 0.15, "{chi}");
    assert!(signs.abs() < 1500.0, "{signs}");
}

#[test]
fn usage_counts_pairs_and_collisions() {
    let rows: Vec<Vec<f64>> = (0..60)
        .map(|i| (0..100).map(|j| if (i * 31 + j * 17) % 9 == 0 { 1.0 } else { 0.0 }).collect())
        .collect();
    let s = sparse(&rows);
    let mut pairs = std::collections::HashSet::new();
    for row in &rows {
        for j in 0..100 {
            for k in j + 1..100 {
                if row[j] * row[k] != 0.0 {
                    pairs.insert((j, k));
                }
            }
        }
    }
    let exact = Map::new(100, Factors::plain(), 22, 0).unwrap();
    let hashed = Map::new(100, Factors::plain(), 12, 0).unwrap();
    let usage = |map: &Map| Poly2::new(s.view(), map).unwrap().usage(&|| false).unwrap();
    assert_eq!(usage(&exact).used, pairs.len() + 200);
    let found = usage(&hashed);
    assert!((found.pairs / pairs.len() as f64 - 1.0).abs() < 0.1, "{found:?} {}", pairs.len());
    let mut by_place = std::collections::HashMap::new();
    pairs.iter().for_each(|&(j, k)| *by_place.entry(hashed.position(j, k).0).or_insert(0) += 1);
    let shared = pairs.iter().filter(|&&(j, k)| by_place[&hashed.position(j, k).0] > 1).count();
    assert!((found.collision_rate - shared as f64 / pairs.len() as f64).abs() < 0.1, "{found:?} {shared}");
}

#[test]
fn rows_must_be_sorted_and_fit_the_map() {
    let map = Map::new(3, Factors::plain(), 12, 0).unwrap();
    let (x, _) = CsrView::new(&[0, 1, 3], &[0, 2, 1], &[1.0f64, 1.0, 1.0], 3).unwrap();
    assert!(Poly2::new(x.into(), &map).err().unwrap().to_string().contains("row 1: its columns do not rise"));
    let (x, _) = CsrView::new(&[0, 1], &[0], &[1.0f64], 4).unwrap();
    assert!(matches!(Poly2::new(x.into(), &map).err(), Some(Error::Shape { .. })));
}
