//! The coordinates that a round of Newton steps may move.

use super::chosen_columns::ChosenColumns;
use super::coordinates::Coordinates;
use crate::fit::routes::{
    WORKING_SET_ENTRIES, WORKING_SET_FULL, WORKING_SET_GROWTH, WORKING_SET_LEAST_PER_CLASS,
};

/// Numbers of coordinates, rising.
pub struct WorkingSet {
    /// The coordinates.
    pub list: Vec<u32>,
    /// Those without penalty and bounds, which always belong to it.
    free: Vec<u32>,
}

impl WorkingSet {
    /// The free coordinates.
    pub fn new(coordinates: Coordinates<'_>) -> Self {
        let free = coordinates.free();
        Self { list: free.clone(), free }
    }

    /// The coordinates without penalty and bounds.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// The coordinates of nonzero weight, the free ones, and of the others those that miss their optimality
    /// condition by most: as many as to double the set or its entries, and no fewer than a least number. A
    /// set that has a matrix does not outgrow it by more, as long as the weights that are not zero leave room
    /// in it: how many more there will be is not known, and nearly full it would hold up the others.
    ///
    /// Tried: the columns that are nearest to missing it as well, where all that are left out have at most
    /// twice the entries of the set: those that come to miss it in a step decide the gap behind it. flights,
    /// logistic, 200 weights, takes four steps instead of five, 0.52 s as before to 1e-2 and instead of 0.58
    /// to 1e-4, but with the squared hinge to 1e-6 0.63 instead of 0.51, and a9a to 1e-4 0.03 instead of
    /// 0.025.
    pub fn choose(&mut self, coordinates: Coordinates<'_>, w: &[f64], slope: &[f64]) {
        let is_in = |j: usize| w[j] != 0.0 || coordinates.term(j).is_free();
        let mut list: Vec<u32> = (0..w.len() as u32).filter(|&j| is_in(j as usize)).collect();
        let violation = |j: usize| (coordinates.term(j).violation(w[j], slope[j]), j as u32);
        let mut others: Vec<(f64, u32)> =
            (0..w.len()).filter(|&j| !is_in(j)).map(violation).filter(|(v, _)| *v > 0.0).collect();
        let most = ChosenColumns::most(coordinates);
        let has_room = (list.len() as f64) < WORKING_SET_FULL * most as f64;
        let left = has_room.then(|| most - list.len());
        let by_columns = (WORKING_SET_GROWTH * list.len()).min(left.unwrap_or(usize::MAX));
        let least = WORKING_SET_LEAST_PER_CLASS * coordinates.n_blocks.max(2);
        largest_first(&mut others, left.unwrap_or(by_columns).max(least));
        let by_entries = left.map_or(0, |left| {
            let worst = others.iter().take(left);
            let len = |j: u32| coordinates.columns.column_len(coordinates.column(j as usize));
            let mut room = WORKING_SET_ENTRIES * coordinates.count_entries(&list);
            worst.map_while(|(_, j)| room.checked_sub(len(*j)).map(|rest| room = rest)).count()
        });
        others.truncate(by_columns.max(by_entries).max(least));
        list.extend(others.into_iter().map(|(_, j)| j));
        list.sort_unstable();
        self.list = list;
    }
}

/// Brings the `most` largest to the front, in order; of equal ones those of smaller number.
pub fn largest_first(sizes: &mut [(f64, u32)], most: usize) {
    let by_size = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let most = most.min(sizes.len());
    if most < sizes.len() {
        sizes.select_nth_unstable_by(most, by_size);
    }
    sizes[..most].sort_unstable_by(by_size);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::routes::GRAM_COLUMNS;
    use crate::matrix::columns::Columns;
    use crate::matrix::csr::CsrView;
    use crate::matrix::design::Design;
    use crate::penalty::Term;

    /// The set that is chosen where row `i` has ones in the columns `list[starts[i]..starts[i + 1]]`. The
    /// weights `stay` are not zero; the others miss their condition by `slope` less 1.
    fn chosen(starts: &[i64], list: &[i32], slope: &[f64], stay: std::ops::Range<usize>) -> Vec<u32> {
        let (d, values) = (slope.len(), vec![1.0; list.len()]);
        let (rows, _) = CsrView::new(starts, list, &values, d).unwrap();
        let columns = Columns::of(&Design { rows: &rows, ids: None, bias: 0.0 });
        let terms = vec![Term { l1: 1.0, l2: 0.0, lower: f64::NEG_INFINITY, upper: f64::INFINITY }; d];
        let coordinates = Coordinates { columns: &columns, terms: &terms, n_blocks: 1 };
        let w: Vec<f64> = (0..d).map(|j| if stay.contains(&j) { 1.0 } else { 0.0 }).collect();
        let mut set = WorkingSet::new(coordinates);
        set.choose(coordinates, &w, slope);
        set.list
    }

    /// That of 201 columns, the first of which has 100 entries and the others one each; the slopes miss their
    /// condition by the number of the column.
    fn chosen_of_unequal(stay: std::ops::Range<usize>) -> Vec<u32> {
        let (mut starts, mut list) = (vec![0i64], Vec::new());
        for i in 0..100 {
            list.extend([0, 1 + i, 101 + i]);
            starts.push(list.len() as i64);
        }
        let slope: Vec<f64> = (0..201).map(|j| 1.0 + f64::from(j)).collect();
        chosen(&starts, &list, &slope, stay)
    }

    /// How many columns are chosen where so many weights are not zero and three times as many columns miss
    /// their condition.
    fn len_of_set(n_weights: usize) -> usize {
        let list: Vec<i32> = (0..4 * n_weights as i32).collect();
        chosen(&[0, list.len() as i64], &list, &vec![2.0; list.len()], 0..n_weights).len()
    }

    #[test]
    fn sets_outgrow_a_matrix_only_when_weights_fill_it() {
        let full = (WORKING_SET_FULL * GRAM_COLUMNS as f64) as usize;
        assert_eq!(len_of_set(full - 1), GRAM_COLUMNS);
        assert_eq!(len_of_set(full), 2 * full);
        assert_eq!(len_of_set(GRAM_COLUMNS + 1), 2 * (GRAM_COLUMNS + 1));
    }

    #[test]
    fn sets_double_their_columns_or_their_entries() {
        // One of a hundred entries: a hundred of one entry join.
        let expected: Vec<u32> = std::iter::once(0).chain(101..201).collect();
        assert_eq!(chosen_of_unequal(0..1), expected);
        // Thirty of one: as many join, the worst.
        let expected: Vec<u32> = (1..31).chain(171..201).collect();
        assert_eq!(chosen_of_unequal(1..31), expected);
        // None at all, or few: twenty.
        assert_eq!(chosen_of_unequal(0..0), (181..201).collect::<Vec<u32>>());
        let expected: Vec<u32> = (1..3).chain(181..201).collect();
        assert_eq!(chosen_of_unequal(1..3), expected);
    }
}
