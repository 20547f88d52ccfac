//! The largest of some numbers.

/// The largest of some numbers without their signs.
pub fn largest_size(numbers: &[f64]) -> f64 {
    numbers.iter().fold(0.0, |a, b| a.max(b.abs()))
}

/// The largest of some numbers, in vector arithmetic.
pub fn largest(numbers: &[f64]) -> f64 {
    let (lines, rest) = numbers.as_chunks::<8>();
    let mut sums = [f64::NEG_INFINITY; 8];
    for line in lines {
        for l in 0..8 {
            sums[l] = if line[l] > sums[l] { line[l] } else { sums[l] };
        }
    }
    sums.iter().chain(rest).fold(f64::NEG_INFINITY, |a, b| a.max(*b))
}
