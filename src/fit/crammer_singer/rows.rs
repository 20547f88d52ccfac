//! Dual variables of all rows, sparse: per row the classes with a positive one and those that are candidates.
//!
//! `u_im` is the share of the row's cost `c_i` that lies on class `m`: `u_im >= 0`, `sum_m u_im = c_i`. A row
//! without loss has all of it on its own class. The lists lie in one vector; a list that outgrows its room
//! moves to the end, and the vector is packed when half of it is holes.

use crate::fit::checks::check_length;
use crate::memory;
use crate::memory::CollectLarge;

/// A class in the list of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Its dual variable; 0 for a mere candidate.
    pub u: f64,
    /// The class.
    pub class: u32,
}

/// What fills spare room.
const NOTHING: Entry = Entry { u: 0.0, class: 0 };

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: usize,
    len: u32,
    capacity: u32,
}

/// The lists of all rows.
#[derive(Debug)]
pub struct Lists {
    places: Vec<Place>,
    entries: Vec<Entry>,
    holes: usize,
    /// Spare entries of a list that has moved.
    spare: u32,
}

/// Excess of a row's variables over its cost, relatively, that is the rounding of their sum.
const ROUNDING: f64 = 1e-12;
/// Spare entries of a list to which candidates are added.
const SPARE: u32 = 2;

impl Clone for Lists {
    fn clone(&self) -> Self {
        Self { places: memory::copy(&self.places), entries: memory::copy(&self.entries), ..*self }
    }
}

impl Lists {
    /// One entry per row: the whole cost on the row's own class.
    pub fn new(class: &[u32], cost: &[f64]) -> Self {
        let places = (0..class.len()).map(|start| Place { start, len: 1, capacity: 1 }).collect_large();
        let entries = class.iter().zip(cost).map(|(&class, &u)| Entry { u, class }).collect_large();
        Self { places, entries, holes: 0, spare: SPARE }
    }

    /// An empty list per row; to be replaced, not added to.
    pub fn empty(n_rows: usize) -> Self {
        Self { places: memory::filled(Place::default(), n_rows), entries: Vec::new(), holes: 0, spare: 0 }
    }

    /// Adds empty lists up to so many rows.
    pub fn grow(&mut self, n_rows: usize) {
        memory::resize(&mut self.places, n_rows, Place::default());
    }

    /// Lists with `factor` times the variables that `others` appends for a row, scaled down where their sum
    /// would exceed the row's cost, and the rest on its own class; with or without room for candidates.
    pub fn completed(
        factor: f64,
        class: &[u32],
        cost: &[f64],
        has_room: bool,
        mut others: impl FnMut(usize, &mut Vec<Entry>),
    ) -> Self {
        let spare = if has_room { SPARE } else { 0 };
        let (places, entries) = (memory::with_capacity(class.len()), memory::with_capacity(class.len()));
        let mut lists = Self { places, entries, holes: 0, spare };
        let mut list = Vec::new();
        for (&class, &cost) in class.iter().zip(cost) {
            list.clear();
            others(lists.places.len(), &mut list);
            let is_alone = list.is_empty();
            let sum = factor * list.iter().map(|entry| entry.u).sum::<f64>();
            let is_outside = sum > cost * (1.0 + ROUNDING);
            let factor = if is_outside { factor * cost / sum } else { factor };
            list.iter_mut().for_each(|entry| entry.u *= factor);
            let rest = (cost - sum).max(0.0);
            if rest > 0.0 || is_alone {
                list.insert(0, Entry { u: if is_alone { cost } else { rest }, class });
            }
            lists.append(&list);
        }
        lists
    }

    /// The list of one more row.
    fn append(&mut self, list: &[Entry]) {
        let spare = if list.len() > 1 { self.spare } else { 0 };
        let place =
            Place { start: self.entries.len(), len: list.len() as u32, capacity: list.len() as u32 + spare };
        self.places.push(place);
        memory::extend_from_slice(&mut self.entries, list);
        memory::extend(&mut self.entries, (0..spare).map(|_| NOTHING));
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.places.len()
    }

    /// The sum of all variables that are not on their row's own class.
    pub fn sum_of_others(&self, class: &[u32]) -> f64 {
        let others = |(i, own): (usize, &u32)| {
            self.get(i).iter().filter(|entry| entry.class != *own).map(|entry| entry.u).sum::<f64>()
        };
        class.iter().enumerate().map(others).sum()
    }

    /// The list of row `i`, in no particular order.
    #[inline(always)]
    pub fn get(&self, i: usize) -> &[Entry] {
        let place = self.places[i];
        &self.entries[place.start..place.start + place.len as usize]
    }

    /// Replaces the list of row `i`.
    pub fn set(&mut self, i: usize, list: &[Entry]) {
        let place = self.places[i];
        let len = list.len() as u32;
        if len > place.capacity {
            self.holes += place.capacity as usize;
            let capacity = len + self.spare;
            self.places[i] = Place { start: self.entries.len(), len, capacity };
            memory::extend_from_slice(&mut self.entries, list);
            memory::extend(&mut self.entries, (0..self.spare).map(|_| NOTHING));
        } else {
            self.places[i].len = len;
            self.entries[place.start..place.start + list.len()].copy_from_slice(list);
        }
    }

    /// Appends a candidate to the list of row `i`.
    pub fn push(&mut self, i: usize, class: u32) {
        let place = self.places[i];
        let entry = Entry { u: 0.0, class };
        if place.len < place.capacity {
            self.entries[place.start + place.len as usize] = entry;
            self.places[i].len += 1;
        } else {
            let mut list = self.get(i).to_vec();
            list.push(entry);
            self.set(i, &list);
        }
    }

    /// Packs the vector where half of it is holes.
    pub fn tidy(&mut self) {
        if self.holes * 2 <= self.entries.len() {
            return;
        }
        let mut entries = memory::with_capacity(self.entries.len() - self.holes);
        for place in &mut self.places {
            let start = entries.len();
            entries.extend_from_slice(&self.entries[place.start..place.start + place.capacity as usize]);
            place.start = start;
        }
        self.entries = entries;
        self.holes = 0;
    }

    /// Prefetches where row `i`'s list is.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        crate::matrix::kernels::prefetch(&self.places, i, size_of::<Place>());
    }

    /// Prefetches the list of row `i`.
    #[inline(always)]
    pub fn prefetch_list(&self, i: usize) {
        crate::matrix::kernels::prefetch(&self.entries, self.places[i].start, 1);
    }
}

/// The positive dual variables off the rows' own classes, by row: what a later fit starts from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alpha {
    /// Row `i` owns the entries `starts[i] .. starts[i + 1]`.
    pub starts: Vec<usize>,
    /// Classes, rising within a row.
    pub classes: Vec<u32>,
    /// Dual variables, above 0.
    pub values: Vec<f64>,
}

impl Alpha {
    /// Those of `lists`.
    pub fn of(lists: &Lists, class: &[u32]) -> Self {
        let mut alpha = Self { starts: vec![0], ..Self::default() };
        for (i, own) in class.iter().enumerate() {
            let mut list: Vec<Entry> =
                lists.get(i).iter().filter(|entry| entry.u > 0.0 && entry.class != *own).copied().collect();
            list.sort_unstable_by_key(|entry| entry.class);
            memory::extend(&mut alpha.classes, list.iter().map(|entry| entry.class));
            memory::extend(&mut alpha.values, list.iter().map(|entry| entry.u));
            alpha.starts.push(alpha.classes.len());
        }
        alpha
    }

    /// Those of a table with a row of `n_classes` dual variables for each row of the problem.
    pub fn of_table(table: &[f64], class: &[u32], n_classes: usize) -> Self {
        let mut alpha = Self { starts: vec![0], ..Self::default() };
        for (row, own) in table.chunks(n_classes).zip(class) {
            let others = (0..).zip(row).filter(|(class, u)| class != own && **u > 0.0);
            for (class, u) in others {
                alpha.classes.push(class);
                alpha.values.push(*u);
            }
            alpha.starts.push(alpha.classes.len());
        }
        alpha
    }

    /// Checks what did not come from [`Self::of`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for starts that do not tile the entries and for classes that do not exist.
    pub fn check(&self, n_classes: usize) -> crate::Result<()> {
        check_length("dual variables", self.classes.len(), self.values.len())?;
        check_length(
            "starts of dual variables",
            self.values.len(),
            self.starts.last().copied().unwrap_or(0),
        )?;
        let is_rising =
            self.starts.first() == Some(&0) && self.starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let largest = self.classes.iter().max().map_or(0, |class| *class as usize);
        if !is_rising || largest >= n_classes {
            return Err(crate::Error::Shape {
                what: "classes of dual variables",
                expected: n_classes,
                found: largest + 1,
            });
        }
        Ok(())
    }

    /// Lists with `factor` times these variables, scaled down in a row where their sum would exceed its cost.
    pub fn lists(&self, factor: f64, class: &[u32], cost: &[f64]) -> Lists {
        Lists::completed(factor, class, cost, true, |i, list| {
            let entries = (self.starts[i]..self.starts[i + 1]).map(|k| (self.classes[k], self.values[k]));
            list.extend(entries.map(|(class, u)| Entry { u, class }));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_shrink_and_survive_packing() {
        let class = [3, 1, 2];
        let mut lists = Lists::new(&class, &[1.0, 2.0, 4.0]);
        let mut plain: Vec<Vec<Entry>> = (0..3).map(|i| lists.get(i).to_vec()).collect();
        for step in 0..60 {
            let i = step % 3;
            if step % 5 == 4 {
                plain[i].truncate(1 + step % 3);
                lists.set(i, &plain[i].clone());
            } else {
                plain[i].push(Entry { u: 0.0, class: 10 + step as u32 });
                lists.push(i, 10 + step as u32);
            }
            if step % 7 == 0 {
                lists.tidy();
            }
            assert!((0..3).all(|i| lists.get(i) == plain[i]));
        }
        assert!(lists.entries.len() < 200);
    }

    #[test]
    fn alpha_goes_there_and_back() {
        let class = [0, 1, 1];
        let mut lists = Lists::new(&class, &[1.0, 2.0, 3.0]);
        lists.set(1, &[Entry { u: 0.5, class: 2 }, Entry { u: 1.0, class: 1 }, Entry { u: 0.5, class: 0 }]);
        lists.set(2, &[Entry { u: 3.0, class: 0 }]);
        let alpha = Alpha::of(&lists, &class);
        assert_eq!(
            alpha,
            Alpha { starts: vec![0, 0, 2, 3], classes: vec![0, 2, 0], values: vec![0.5, 0.5, 3.0] }
        );
        let back = alpha.lists(1.0, &class, &[1.0, 2.0, 3.0]);
        assert_eq!(Alpha::of(&back, &class), alpha);
        let doubled = alpha.lists(2.0, &class, &[2.0, 4.0, 6.0]);
        assert_eq!(Alpha::of(&doubled, &class).values, [1.0, 1.0, 6.0]);
        let capped = alpha.lists(4.0, &class, &[1.0, 2.0, 3.0]);
        assert_eq!(Alpha::of(&capped, &class).values, [1.0, 1.0, 3.0]);
        assert!(capped.get(1).iter().map(|e| e.u).sum::<f64>() == 2.0);
    }
}
