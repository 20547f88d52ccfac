//! The constants that choose between ways to the same solution, each with the measurement it comes from;
//! those without numbers are estimates.
//!
//! They decide how long a fit takes, not what it proves. `benches/routes.py` measures where Newton and dual
//! coordinate descent cross on this machine. What a loss costs by dual descent is in the loss's own
//! file ([`crate::loss::Loss::expected_passes`]); whether columns are packed, in [`crate::presolve`].

use super::penalised::quadratic::InnerStop;

/// How slow a descent may be before another solver takes over, in visits of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Visits before which nothing is judged.
    pub before: f64,
    /// Visits that the gap, extrapolated, may still need.
    pub further: f64,
}

impl Patience {
    /// Whether it is, after so many visits if so many are left.
    pub fn is_over(self, done: f64, left: f64) -> bool {
        done >= self.before && left > self.further
    }
}

// Newton or dual coordinate descent.

/// Rows times columns up to which problems go to Newton whatever the loss: its answer does not depend on the
/// order of rows, and time does not matter there.
pub const SMALL: usize = 100_000;
/// Entries per column from which Newton, over lanes or for one fit, is the better way for a smooth loss
/// although a factorisation is too dear: passes then outweigh the vectors of columns x lanes (5 folds,
/// squared hinge, one thread: 480 entries per column on flights, 4 s against 69 s by dual fits; 14 on 20news,
/// 1.4 s against 1.0 s; 17 on imdb, 24 s against 6 s). Many rows per column also contradict each other, which
/// takes dual descent hundreds of passes.
pub const LANE_ENTRIES: usize = 64;
/// Problems of classes that dual descent solves at once at most (dual/classes.rs): the numbers of a cache
/// line.
pub const CLASS_LANES: usize = 8;
/// The time of a descent on two of them at once, over that on one by itself, by which groups are made as
/// large as the threads allow. One core, whole fits at C = 1 to 1e-3, logistic loss and squared hinge:
/// sector, two 1.1 and 1.4, eight 3.3 and 4.8; 20news, four 2.05 and 2.6, eight 3.8 and 4.6.
pub const CLASS_PAIR: f64 = 1.25;
/// See [`CLASS_PAIR`].
pub const CLASS_FOUR: f64 = 2.2;
/// See [`CLASS_PAIR`].
pub const CLASS_EIGHT: f64 = 4.0;
/// Classes from which problems are solved so. 20news with its other classes as one, C = 1, squared hinge to
/// 1e-3, seconds one by one and at once: one thread, 4 classes 0.102 and 0.066, 8 0.201 and 0.117; two
/// threads, 5 classes 0.065 and 0.070, 8 0.081 and 0.082, 16 0.175 and 0.128. Hinge, one thread, 4 classes
/// 0.15 and 0.17, 8 0.29 and 0.23.
pub const CLASSES_FROM: usize = 12;
/// The same for the logistic loss, which shrinks no rows: 1e-4, one thread, 4 classes 0.133 and 0.096, 8
/// 0.249 and 0.105; two threads 0.068 and 0.072, 5 classes 0.092 and 0.081, 8 0.123 and 0.081.
pub const CLASSES_FROM_LOGISTIC: usize = 5;
/// Mean of `c_i |x_i|^2`, the diagonal of the dual Hessian beside its 1 of the regulariser, up to which a
/// smooth loss takes dual descent few epochs. Gap 1e-2, processor seconds by Newton and by dual descent,
/// mnist one digit against the rest or against another:
///
/// ```text
///                                mean    squared hinge    logistic
/// flights, C = 2^-6               0.3     0.92    0.30     0.75   0.38
/// mnist, C = 2^-6                 1.6     1.01    0.27     0.62   0.17
/// flights in degree 2, C = 2^-6   3.3                       140   10
/// a9a in degree 2, C = 0.04       4.8     0.47    0.15     0.30   0.08
/// flights, C = 0.25               4.8     0.82    0.79     0.80   0.74
/// mnist, degree 2, C = 2^-10      5       7.9     1.4
/// mnist, C = 0.06                 6       0.15    0.07     0.10   0.04
/// flights, C = 1                  19      2.0     6.0      1.6    2.5
/// mnist, C = 1                    100     0.95    8.7      1.7    1.6
/// ```
pub const EASY: f64 = 8.0;
/// The same for one fit with the squared hinge or its like where Newton has the block of the most frequent
/// columns ([`FREQUENT_COLUMNS`]). Processor seconds by dual descent and by Newton, at this mean, to gaps of
/// 1e-2 and 1e-4, without and with a free intercept (tables of 300,000 x 9,974, 60,000 x 3,134 and 100,000 x
/// 2,400 with 13, 11 and 306 ones a row):
///
/// ```text
///                   squared hinge                                 logistic
///            mean         1e-2         1e-4   1e-2, free   1e-4, free   1e-2, free   1e-4, free
/// flights     0.3   0.43  0.53   0.46  0.94   0.46  0.39   0.89  0.63   0.54  0.92   0.99  1.03
/// flights     1.2   0.60  0.84   0.92  1.50   1.00  0.55   2.03  0.81   0.74  0.84   1.29  1.01
/// flights     2.3   1.04  0.68   1.47  1.62   1.73  0.45   3.03  0.97   1.04  0.67   1.58  1.15
/// flights     4.8   1.80  0.54   3.21  2.02   3.48  0.56   5.98  0.95   1.55  0.93   2.50  1.62
/// 300,000     0.3   0.26  0.23   0.46  0.27   0.47  0.17   0.51  0.20   0.28  0.36   0.51  0.35
/// 300,000     1.3   0.47  0.19   0.89  0.30   0.68  0.19   1.21  0.17   0.41  0.44   0.81  0.40
/// 300,000     5.2   1.00  0.19   2.28  0.24   2.39  0.21   5.21  0.24   0.82  0.37   1.58  0.47
/// 60,000      0.3   0.03  0.05   0.04  0.08   0.06  0.07   0.07  0.07   0.06  0.11   0.09  0.13
/// 60,000      1.1   0.05  0.06   0.06  0.05   0.08  0.05   0.17  0.11   0.08  0.09   0.12  0.13
/// 60,000      3.3   0.12  0.07   0.16  0.06   0.18  0.07   0.37  0.08   0.12  0.09   0.20  0.15
/// 100,000     0.9   0.63  0.78   1.32  1.61   1.16  1.55   2.04  2.92   0.51  0.47   0.76  0.94
/// 100,000     3.1   1.83  0.88   2.73  0.92   2.32  0.89   5.26  2.90   0.71  0.53   1.18  1.38
/// ```
///
/// The logistic loss without a free intercept is as before: flights at 4.8 0.75 and 0.94 s to 1e-2, 1.42 and
/// 1.68 s to 1e-4.
pub const EASY_FREQUENT: f64 = 1.0;
/// The same for the logistic loss with a free intercept.
pub const EASY_FREQUENT_LOGISTIC: f64 = 2.0;
/// That mean times the entries per column, about the condition of the Hessian if all rows point one way, up
/// to which dual descent beats Newton with the squared hinge even where a factorisation is cheap. Processor
/// milliseconds by Newton and by dual descent, gaps 1e-2 and 1e-6, without intercept and with a free one:
///
/// ```text
///                  mean   times          1e-2          1e-6     1e-2, free    1e-6, free
/// w8a              0.2       390    17.4  10.1    24.4  15.9    26.0  13.2    31.4  21.5
/// w8a              0.4       770    18.0  11.1    23.4  19.1    32.1  16.3    45.0  28.1
/// a9a              0.2       730    10.4   5.9    13.4   8.6    12.8   8.9    15.0  14.0
/// a9a              0.4     1,470    10.2   6.7    13.5  10.4    12.3   9.8    15.4  17.8
/// w8a              0.8     1,540    20.6  13.3    29.5  28.8    23.8  20.8    29.7  41.7
/// a9a              0.8     2,900    10.9   8.1    13.1  13.2    11.0  12.7    15.2  26.8
/// covtype          0.05    6,500     150   122     187   269     163   201     212   364
/// covtype          0.4    52,000     166   265     282   571     151   375     298   907
///
/// One-hot columns, popular ones first, drawn at random; gaps 1e-2 and 1e-4:
/// 60,000 x 500              400    43.4  11.7    53.8  16.1    49.5  17.1    60.6  22.2
/// 60,000 x 500              900    42.4  14.8    52.0  19.0    47.1  22.3    57.1  32.3
/// 20,000 x 300              100     8.3   2.9     7.5   4.0     6.9   5.0     8.2   7.1
/// 20,000 x 300              900     7.7   6.4     9.5   9.4     9.1  13.6     9.2  20.5
/// 5,000 x 100               100     1.2   0.9     1.6   1.1     1.6   1.3     1.9   1.8
/// 5,000 x 100               900     1.7   1.9     1.6   2.9     1.6   3.7     2.0   5.9
/// ```
///
/// Tried: 1,200, and 400 with a free intercept, where a9a and w8a still gain since Newton's matrix follows
/// the rows that change; but small tables lose as much (4,000 rows of ten one-hot columns of 120). Gaps 1e-2
/// and 1e-4:
///
/// ```text
///                  mean   times          1e-2          1e-4     1e-2, free    1e-4, free
/// w8a              0.1       270                              37.2  18.8    40.2  24.4
/// w8a              0.5       900    26.5  17.2    33.1  23.7
/// a9a              0.3     1,020    14.0   8.5    14.7  10.7
/// a9a              0.1       410                              14.6  12.1    16.3  16.3
/// 4,000 x 120      3       1,000     2.7   3.3     2.9   5.0
/// 4,000 x 120      1         330                               2.4   3.2     2.7   4.5
/// ```
///
/// Not in a search, which goes on to larger values of C.
pub const EASY_CHEAP: f64 = 800.0;
/// The same with a free intercept, which costs dual descent more epochs, and the squared hinge.
pub const EASY_CHEAP_FREE: f64 = 200.0;
/// Relative gap down to which it goes for the logistic loss, too, whose variables take more: Newton's last
/// digits are cheaper. w8a and a9a at C = 2^-6, gap 1e-4, 45 and 19 ms by Newton, 41 and 28 by dual descent.
/// By Newton and by dual descent, tables as above:
///
/// ```text
///                  mean   times          1e-2          1e-3     1e-2, free    1e-3, free
/// w8a              0.03       50    23.2  36.0    45.0  36.5    46.4  34.5    39.4  47.7
/// w8a              0.1       200    52.4  27.7    43.9  35.1    58.4  34.1    53.2  47.6
/// w8a              0.4       800    48.6  27.4    60.4  34.3    44.9  34.3    69.3  47.5
/// a9a              0.01       50    23.6  16.7    23.0  21.1    14.1  24.1    27.4  29.1
/// a9a              0.05      200    23.9  16.0    20.7  21.8    29.4  21.1    24.6  27.0
/// a9a              0.2       800    17.7  15.6    18.1  20.6    24.6  19.9    28.9  28.2
/// 60,000 x 500     0.2       200    56.4  29.1    76.8  37.5    64.4  35.4    89.8  47.5
/// 60,000 x 500     0.7       800    69.1  41.1    70.2  48.3    83.0  53.6    81.7  64.6
/// 20,000 x 300     0.3       200    17.3   9.9    23.2  12.5    20.3  13.3    27.9  17.5
/// 20,000 x 300     1.2       800    21.3  13.9    18.7  16.0    25.1  17.8    23.1  25.1
/// 4,000 x 120      0.6       200     2.6   2.2     2.5   3.3     3.2   3.4     3.3   4.2
/// 4,000 x 120      2.4       800     3.7   2.9     3.1   4.0     4.8   4.4     4.1   5.8
/// ```
pub const EASY_LOGISTIC: f64 = 1e-3;
/// Passes that a Newton step's factorisation takes at least where dual descent can be quicker: 3.5 on a9a and
/// w8a. 35,000 rows of ijcnn1, 0.9 passes, take 4.2 ms by Newton and 3.9 by dual descent at a mean of 0.01,
/// gap 1e-4, with a free intercept 3.4 and 5.8.
pub const EASY_FROM: f64 = 2.0;
/// Rows from which that mean is estimated.
pub const EASY_SAMPLE: usize = 4096;
/// Square of the mean of `c_i |x_i|^2`, if that is not below 1, times the entries per column, from which a
/// fit with the hinge begins with its sequence of smooth problems, where steps are factorised for fewer than
/// [`DEAR`] passes. The time by descent, which hands over where it is slow ([`PATIENCE_DIRECT`]), over that
/// of the sequence at once, to gaps of 1e-2 and 1e-4; below them rows of random numbers (and the share of
/// the entries that are not zero) whose labels are those of a plane but for 2 % and 30 %:
///
/// ```text
///                                    mean     square     1e-2   1e-4
/// w8a                                  12    260,000     0.51   0.52
/// w8a                                  47  4,200,000     0.90   1.34
/// a9a                                 4.2     64,000     0.72   0.82
/// a9a                                  14    710,000     1.47   1.77
/// a9a                                  56  11,000,000    1.82   1.60
/// ijcnn1 (14,990)                     3.4    100,000     0.77   0.70
/// ijcnn1 (14,990)                     6.8    410,000     1.08   0.96
/// ijcnn1 (14,990)                      14  1,600,000     1.43   1.32
/// 20,000 x 100, 20,000 x 40             4    320,000     0.59 to 1.33
/// 50,000 x 200, a twentieth             4     40,000     0.76 to 1.64
/// 5,000 x 60                            4     80,000     0.58 to 1.05
/// 100,000 x 100, a tenth                4    160,000     0.91 to 1.92
/// all of these                         16  640,000 on    0.98 to 3.14
/// covtype                               4  1,700,000      1.7    2.6
/// 1,000,000 x 28                        1  1,000,000      0.8    1.3
/// ```
///
/// In a search, whose fits go on from one C to the next, only after one of more than [`SLOW_LANE`] visits.
pub const HARD_HINGE: f64 = 400_000.0;
/// The same with a free intercept, which costs dual descent more epochs:
///
/// ```text
/// w8a                                 1.2      2,600     0.68   1.48
/// w8a                                 2.3     10,000     0.93   1.80
/// w8a                                 5.8     66,000     1.55   1.40
/// w8a                                  12    260,000     1.78   1.11
/// a9a                                 1.4      7,000     0.91   1.19
/// a9a                                 4.2     64,000     1.41   1.88
/// ijcnn1 (14,990)                     1.7     25,000     0.99   0.93
/// ijcnn1 (14,990)                     3.4    100,000     1.43   1.57
/// 20,000 x 100, 20,000 x 40           1.1     22,000     0.59 to 2.06
/// 50,000 x 200, 5,000 x 60            1.1  to  5,500     0.73 to 1.33
/// the same                              4  from 40,000   1.02 to 3.41
/// covtype                               1    100,000      1.3    1.8
/// ```
pub const HARD_HINGE_FREE: f64 = 24_000.0;
/// Readings of its rows by a lane of a search with a smooth loss and many columns, on average over the lanes,
/// above which all of them go on with Newton ([`crate::search::handover`]). 20news, squared hinge, 100 lanes,
/// two threads, seconds at C by descent, its readings a lane, and by Newton: 2 0.76, 8.5, 1.28; 4 1.1, 11,
/// 1.5; 8 1.4, 15, 0.9; 32 4.3, 36, 1.7; 128 13, 84, 2.3.
pub const SLOW_DESCENTS: f64 = 12.0;
/// Visits of all rows that a fit of a search with the hinge takes, from the solution at the `C` before, above
/// which the next one begins with the sequence where [`HARD_HINGE`] says so. Seconds of searches over five
/// folds without this and with 12, 8 and 6 (no link-time optimisation): a9a 3.8, 2.6, 2.5 and 3.6, covtype
/// 42, 30, 33 and 34, ijcnn1 (14,990) 0.60, 0.52, 0.47 and 0.78; 200,000 x 28, whose fits take 2 to 5 visits,
/// and w8a, which goes over before, 15 and 12 with any.
pub const SLOW_LANE: f64 = 10.0;
/// Gain of a visit of dual descent after a quarter of the rows over that after a tenth of them, above which
/// Newton is the better way where its steps are products ([`crate::fit::dual::trial`]). The ratio; then
/// seconds by Newton and by dual descent, gap 1e-2, at means of `c_i |x_i|^2` of 10 and 160 (paths: 300,000
/// of them, hashed; a free intercept, no link-time optimisation):
///
/// ```text
///                                                 squared hinge          logistic
/// flights                          1.04         1.0  8.8  1.5   99    1.6  3.3  2.0   36
/// 300,000 x 10,400, 13 ones        0.84         0.3  4.4              0.9  1.8
/// 200,000 x 8,000, 40 ones         0.85         0.4  3.1              0.8  1.3
/// paths, 3-grams, 4,096 columns    0.85         2.4  3.0  2.8   39    4.4  2.2  6.7   26
/// paths, 3-grams, 16,384 columns   0.75         3.4  3.3  6.4   15    5.1  2.2  8.4   20
/// paths, 5-grams, 16,384 columns   0.65         2.8  1.6   12  3.3    4.8  2.0  8.6  9.9
/// paths, 3-5-grams, 2^18 columns   0.61          14  4.1
/// ```
pub const TRIAL_LEFT: f64 = 0.83;
/// Where a descent then begins: gain of its second epoch over that of the first above which Newton goes on
/// from there. That ratio and Newton's time over that of a descent to its end, for the rows of the table
/// above and others: 0.46 and 3.4, 0.60 and 1.7, 0.62 and 2.2, 0.69 and 1.03, 0.72 and 0.42, 0.75 and 0.55,
/// 0.81 and 0.79, 0.84 and 0.07, 0.86 and 0.12.
pub const GROWTH: f64 = 0.7;
/// The same for the logistic loss: 0.07 and 2.4, 0.10 and 1.3 or 0.51, 0.13 and 0.87, 0.14 and 0.49, 0.16 and
/// 0.68 or 0.41, 0.20 and 0.25, 0.28 and 0.06.
pub const GROWTH_LOGISTIC: f64 = 0.11;
/// When Newton takes over from coordinate descent where it is the better way for most problems of this shape:
/// it needs 40 to 150 passes. So it is for the hinge where there is a block of the most frequent columns
/// ([`FREQUENT_COLUMNS`]), although Newton takes 100 to 700 passes there. C = 1, gaps of 1e-2, 1e-4 and 1e-6,
/// processor seconds with the patience of [`PATIENCE`], with 10 and 100, 10 and 40, 5 and 30:
///
/// ```text
/// flights                   5.2 18.0 29      4.9  7.7 20      4.2  8.0 18      4.8  7.1 17
/// flights, free intercept   7.6 16.7         6.4  7.5 17      3.4  8.2 17      2.3  7.0 17
/// 300,000 x 9,974           4.0  3.1  8      3.4  2.6 10      2.8  1.9 10      3.0  2.3 11
/// the same, free intercept  3.0  5.7 23      2.6  2.7 13      1.0  2.1 12      1.1  2.0 11
/// ```
pub const PATIENCE_DIRECT: Patience = Patience { before: 10.0, further: 40.0 };
/// The same where they need conjugate gradient, hundreds to thousands of passes, while the descent speeds up
/// towards the end (imdb, hinge, C = 16: 400 visits predicted after 10, 43 needed). Tried: to finish the
/// descent by rounds of conjugate gradient on the variables strictly inside the box with two epochs between
/// them. imdb, hinge, C = 16, gap 1e-6: 179 passes against 181 without; 20news 838 against 211;
/// phishing_urls, gap 1e-4: more than 1000 against 475, as nearly every round meets a bound after a hundredth
/// of its step.
pub const PATIENCE: Patience = Patience { before: 60.0, further: 600.0 };
/// The same for the softmax of all classes, where Newton needs 15 to 30 passes from the end of the fit
/// before. Passes of five folds of 20news from C = 32 to 64, 128 and so on up to 1,024, by descent until it
/// is slow, and by Newton: 131, 295, 185, 240, 200, and 75, 118, 149, 144, 124; up to C = 32 it is 57 and 99.
pub const PATIENCE_SOFTMAX: Patience = Patience { before: 8.0, further: 16.0 };
/// Checks in a row that must find a descent slow: the primal value, and with it the gap, may rise for a
/// while.
pub const SLOW_CHECKS: usize = 2;

// A factorisation or conjugate gradient for Newton's steps.

/// Columns (intercept included) up to which a dense factorisation is considered: two matrices of 20 MB. The
/// 1,539 pairs of covtype are the case in point.
pub const MAX_CHOLESKY_COLUMNS: usize = 1600;
/// Cost in passes up to which forming and factorising the Hessian beats conjugate gradient. A Newton step by
/// conjugate gradient costs five to fifty products, two random accesses an entry; the products of a Hessian
/// are mostly sequential.
pub const MAX_CHOLESKY_PASSES: f64 = 60.0;
/// A row with at least one entry per this many columns is treated as dense in the products of a Hessian.
pub const DENSE_SHARE: usize = 4;
/// Share by which the curvatures in the matrix of a step in the dual may be off, and less where what they
/// leave would count. Tried: for steps of the weights, too; covtype, logistic, C = 1 and 16, 1e-4, 0.41 and
/// 0.48 s, but where a fit is cut into its steps they are others, and so is the end within the tolerance.
pub const HESSIAN_OFF: f64 = 0.2;
/// Share of the entries with curvature from which a matrix is made anew instead of being brought up to date.
/// Milliseconds of a fit with the squared hinge, new matrices and products, and matrices that follow: a9a,
/// C = 16, 1e-2 and C = 1, 1e-6 22.4 and 15.8, 26.3 and 16.4; covtype, C = 1, 1e-4 and C = 16, 1e-6 331 and
/// 252, 404 and 256; w8a, C = 1, 1e-6 44.1 and 44.5, as matrices are a fifth of it.
pub const HESSIAN_ANEW: f64 = 0.6;
/// Share of the rows with curvature up to which products with the Hessian ask for the memory of such rows
/// ahead of time, past those without. Hinge, gap 1e-4, never and for shares up to 0.3, 0.6 and 1: flights,
/// C = 1, 6.6, 6.4, 5.7 and 6.1 s.
pub const SPARSE_ROWS: f64 = 0.6;
/// Multiplications over contiguous memory that cost as much as one elsewhere.
pub const VECTORISED: f64 = 6.0;
/// Cost of a factorisation, in passes, from which even a fit keeps one for several steps, and from which easy
/// problems go to dual descent. mnist (781 columns, 40 passes) is above; w8a, whose whole fits take 18 to 25,
/// below.
pub const DEAR: f64 = 10.0;
/// Columns whose block preconditions where they are too many for a matrix
/// ([`crate::fit::newton::frequent`]).
pub const FREQUENT_COLUMNS: usize = 500;
/// Rows for each of them that the block is made of: with more rows every so many-th. Tried, passes over
/// flights to a gap of 1e-2, squared hinge C = 1 and 16, logistic C = 1 and 16 (40, 77, 38 and 52 by the
/// diagonal alone): 500 columns, all rows 27, 41, 22 and 37, 112 rows a column 27, 38, 22 and 37; 1,000
/// columns 32, 74, 24 and 32, and 56 rows a column 32, 64, 21 and 32, with a factor that takes 8 times as
/// long.
pub const FREQUENT_ROWS: usize = 100;
/// Passes up to which such a block pays: half a pass on flights. For a9a in degree 2 (5,438 columns, some
/// ten passes), C = 1 and 16, gaps of 1e-2 and 1e-4, seconds by the diagonal alone and with a block: squared
/// hinge 0.51, 3.2, 3.6, 9.0 and 0.54, 2.1, 3.6, 9.0; logistic 0.49, 1.24, 1.24, 2.9 and 0.80, 1.41, 1.33,
/// 2.6.
pub const FREQUENT_PASSES: f64 = 2.0;
/// Products after which such a block is made anew. Tried: 64; flights, squared hinge, C = 16, 1e-4, 1,000
/// columns: 235 instead of 159 passes.
pub const STALE_BLOCK: usize = 16;
/// Products after which a diagonal preconditioner is made anew: it costs one more.
pub const STALE_DIAGONAL: usize = 4;

// An epoch of dual descent from Newton's slopes (flights and 100,000 rows of it, a9a, w8a, covtype, C = 1 to
// 16). How much smaller than theirs its gap is: squared hinge 3 to 200 times, flights 26 to 89; logistic loss
// 3 to 80 times, flights 6 to 82; on w8a least of all. On flights a step of conjugate gradient costs as much
// as 5 to 20 epochs with the squared hinge, and 2 to 4 with the logistic loss; where steps are factorised
// (covtype), one or two.

/// Gap of the slopes over the tolerance at which it is tried first, for a loss of curvature 1; it grows as
/// the square root. With two products before the epoch; tried, flights, 18 fits to 1e-3 and 1e-4, seconds in
/// the geometric mean: 20, 1.89; 40, 1.72; 80, 1.75; without the products 1.97. A made-up one-hot table of
/// 300,000 rows, 24 fits from 1e-1 to 1e-4: 40, 0.73; 80 and 160, 0.71; without 0.71. 60 stands between.
pub const POLISH_AT: f64 = 60.0;
/// It is tried again at this share of the gap of the slopes at which the last one's gain would be enough.
pub const POLISH_CLOSER: f64 = 0.7;
/// Tolerances up to which a gap after an epoch gets another one, which leaves 0.7 of it (0.70 and 0.74 on
/// flights), before steps go on. Over two shards, flights, squared hinge, gap 1e-4: C = 1 59 rounds instead
/// of 122, C = 16 115 instead of 164. In memory one fit in 20 comes to it.
pub const POLISH_AGAIN: f64 = 1.4;
/// Passes from which it is worth its price even though the gap of the slopes is small enough: it then takes
/// about a third of the passes at most, and less of the time, as packing rows takes as long as some passes,
/// for a gap that is closer to the truth. Tried: 20; flights and the made-up table, C = 0.25 to 16, gaps of
/// 1e-1 and 1e-2: four ratios of gap and distance between 118 and 411 instead of 2.4 to 10, those fits take
/// 0.01 to 0.19 s less.
pub const POLISH_LATE: f64 = 10.0;

// A Newton step in the dual, where steps are factorised. a9a, w8a and covtype, 180 fits from C = 2^-6 to 16,
// gaps 1e-1 to 1e-6: the gap is 1.1 times the distance in the median, 108 times at worst and above 100 times
// in that one fit, of covtype at a gap of 1e-1, where the step had two products; with a third (FAR_PASSES) 43
// at worst, in as much time (300 fits of the squared hinge and the logistic loss). Without POLISH_FAR 1.0,
// 201 and 3 fits, and 2 % more time, or 6 % of the 59 fits that differ; with 15 there as with 50. By products
// with the Hessian, as where there is no matrix to follow, and without it 2.8, 485 and 10 fits, with 4 % more
// passes of covtype with the squared hinge, 13 % of a9a, and 3 % fewer of covtype with the logistic loss.
// Without any step 47 on a9a and w8a, and 12,306 at worst. Tried, by products: steps instead of all epochs,
// one product and no dual point for the sample: 4 % more time; a step below a dual value of 0, too, for up to
// half a step of the fit: 5 %, as many tries come too early; a share of 0.07 and a nearness of 0.03: a worst
// of 2,118. By the matrix: no step further, a worst of 3,009 and 13 fits above 100; a share of 0.1 also where
// an epoch is due, 919 and 12, as epochs then end fits.

/// Estimated distance to the optimum over the tolerance at which it is tried.
pub const POLISH_NEAR: f64 = 0.1;
/// Gap of the slopes over the estimated distance from which it is made although the gap is small enough.
pub const POLISH_LOOSE: f64 = 4.0;
/// Share of the passes so far, factorisations included, that it may take.
pub const POLISH_SHARE: f64 = 0.1;
/// or more where the gap is small enough, but far from the truth. Tried, by products: that share also for
/// steps that are to end a fit; covtype 18 % more passes, as they come too early.
pub const POLISH_SHARE_ENOUGH: f64 = 0.4;
/// Gap of the slopes over the estimated distance from which a step may take [`FAR_PASSES`], whatever the
/// passes so far.
pub const POLISH_FAR: f64 = 50.0;
/// Readings that a step may then take.
pub const FAR_PASSES: f64 = 4.0;
/// Half the squared gradient that rows which get or lose their curvature leave along it, in distances, from
/// which it goes a step further.
pub const POLISH_FURTHER: f64 = 10.0;
/// Share of the squared gradient left by the step before that one may leave, to be followed by another. It is
/// a fiftieth to a hundredth on covtype, C = 16 and 256, where two or three steps are enough, and a seventh
/// on w8a, C = 256, free intercept, where four are not.
pub const POLISH_FALL: f64 = 0.1;
/// Readings that take as long as an epoch, instead of which a step may be made.
pub const EPOCH_PASSES: f64 = 3.0;

// A start for Newton from a sample of the rows: a9a and w8a, logistic, C = 2^-6, gap 1e-2, 19 instead of 39
// ms and 45 instead of 94 ms.

/// Rows of which one is sampled.
pub const SAMPLED_ONE_IN: usize = 8;
/// Sampled rows per column at least: the minimisers of sample and whole differ by about `d / n` of the
/// objective.
pub const SAMPLED_PER_COLUMN: usize = 20;

// Crammer and Singer: Newton steps for all classes, the classes that a visit reads, and threads.

/// Newton steps that a fit takes, about.
pub const CLASS_STEPS: f64 = 60.0;
/// Share of the rows with curvature, on average over the steps: all at the beginning, as many as the solution
/// has corners at the end.
pub const CLASS_CURVED: f64 = 0.25;
/// Multiplications of a factorisation that take the time of one in a visit.
pub const CLASS_VECTORISED: f64 = 3.0;
/// Epochs before which a descent is not judged.
pub const CLASS_LEAST_BEFORE: f64 = 10.0;
/// Checks in a row that must find the descent slow: with a free intercept the gap goes up and down.
pub const CLASS_SLOW_CHECKS: usize = 3;
/// Cache lines of classes up to which every visit computes all scores: vector arithmetic on whole lines costs
/// no more than picking a few classes.
pub const FULL_LINES: usize = 4;
/// Epochs at the beginning that read all classes however many there are. Tried: one, 26 epochs instead of 25.
pub const FULL_EPOCHS: usize = 2;
/// Numbers that a second thread must save a visit, so that two are faster than one: an exchange costs as much
/// as some 150 of them (20news, three cache lines of classes, 158 entries a row: 0.9 to 1.0 times as fast).
pub const LEAST_SAVED: usize = 300;
/// Numbers that an epoch reads, so that several threads are begun for it.
pub const LEAST_READ: usize = 1 << 20;
/// Share of the time lost by waiting for threads without a core from which one thread alone is faster: sector
/// beside work for three cores on two took 4.3 s on one thread and 3.8 s on two, without this 7 to 15 s.
pub const MAX_LOST: f64 = 0.3;
/// Half the number of epochs that one thread does alone the first time; the number doubles each time.
pub const LEAST_ALONE: usize = 4;

// Rows at shards.

/// Entries of a row beyond which a store that stays on the disk is descended on where costs are small
/// ([`EASY`]): decoding a reading takes what an epoch or two take, and descent comes there in two readings.
/// Half of the rows in memory, gap 1e-2, squared hinge, seconds by descent and by Newton: mnist, 150 entries
/// a row, C = 2^-6, 0.6 and 3.4; 40,000 rows of 100 numbers each, a mean of `c_i |x_i|^2` of 0.1 and 1, 0.45
/// and 0.63, 0.84 and 0.65; 60,000 rows of 50 ones 0.28 and 0.23, 0.44 and 0.24; covtype (12), C = 2^-10 to
/// 2^-4, 1.8 and 0.4, 1.8 and 0.3, 1.8 and 0.3.
pub const STORE_LONG_ROWS: f64 = 64.0;
/// Entries of the pieces in which the rows of a store that stays on disk come into memory: 64 MB in single
/// precision, beside which what begins anew with each piece is nothing.
pub const SHARD_PIECE_ENTRIES: usize = 8 << 20;
/// The same for each column: every piece has vectors of its own to make and to add. `contents`, 4,194,304
/// columns, 70 million nonzeros, squared hinge: a round takes 0.29 s with 9 pieces that are all in memory,
/// 0.17 with two, 0.08 by rows in memory as one.
pub const SHARD_PIECE_COLUMNS: usize = 32;
/// The most that a piece takes of the room for rows: one part in so many, but for the least of columns.
/// mnist, one class against the rest, C = 1, within 120 MB: 3.7 s with 2, of which a piece of five stays, 2.3
/// with 8.
pub const SHARD_PIECE_SHARE: usize = 8;
/// Columns with which a matrix of curvatures may travel: 1 MB a shard, as many bytes as 256 products.
pub const SHARD_MATRIX_COLUMNS: usize = 512;
/// Entries of all shards up to which each fits all its rows for a start, in a tenth of a second; where there
/// are more it fits a sample of its rows if there are many per column ([`SAMPLED_PER_COLUMN`]). Two shards,
/// C = 1, gap 1e-4, squared hinge and logistic: covtype 16 and 17 instead of 27 and 23 rounds, 14 and 15
/// instead of 29 and 26 passes, those of the samples counted; a9a 14 and 14 instead of 23 and 23 rounds, 23
/// and 27 instead of 20 and 26 passes of which most are the shards' own. Tried: as many entries of each
/// shard; flights in 16 shards took 0 and 11 rounds less of 59 and 57, and 6 and 15 times as long, a store on
/// the disk in 13 pieces 17 and 67 s instead of 4.7 and 4.9. All rows of larger ones; flights, two shards, 86
/// and 52 rounds instead of 145 and 96, but twice the time: a fit of half the rows costs as much as one. By
/// the tolerance of these fits (1e-3 to 1e-1) it is 88 to 167 instead of 110 and 59 to 94 instead of 98 with
/// today's rounds; imdb, logistic, 19 to 23 instead of 38, but squared hinge 43 to 53 instead of 45.
pub const SHARD_START_ENTRIES: f64 = 1e6;

/// Products that cost as much as the way of the block of the most frequent columns, which has 1 MB a shard.
/// flights, two shards, C = 1 and 16, gaps of 1e-2 and 1e-4: without a block 77 rounds in the geometric mean,
/// with 1, 4 and 8 for this 70, 61 and 63; the hinge, C = 1, 230 and 849 without, 122 and 610, 133 and 564,
/// 175 and 597 with.
pub const SHARD_BLOCK: f64 = 4.0;

/// Columns per row from which a smooth loss begins with an ascent in the dual. Measured on imdb only (61
/// columns a row); where it comes to nothing, Newton takes over after some rounds.
pub const SHARD_ASCENT_COLUMNS: usize = 2;

/// Columns from which shards number their own anew, and from which those that are proportional travel as one:
/// below, weights are in the second-level cache in any order, and a vector has 320 KB.
pub const SHARD_OWN_COLUMNS: usize = 40_000;
/// Columns times shards up to which that is asked for: 3 GB of the client's memory, 24 bytes each.
pub const SHARD_MERGED_MOST: usize = 1 << 27;
/// Share of the columns above which all travel: to say which ones takes as many bytes as half a vector.
pub const SHARD_MERGED_SHARE: f64 = 0.9;

// Penalties on absolute values, bounds and factors.

// A fit that makes little way is given up for fits at smaller costs (penalised/ladder.rs): 20news and sector,
// one group against the rest, squared hinge, C = 100 and 1,000, gap 1e-4.

/// Share of a Newton step that counts as a fraction of it (tried: 0.25; 20news, one group at C = 61 62 steps
/// instead of 38, others as long, 3,000 random rows x 2,500 columns, C = 100, 7.7 s instead of 9.7),
pub const LADDER_FRACTION: f64 = 0.125;
/// fractions in a row after which a fit is given up (tried: 5; 20news, another group at C = 1,000 187 steps
/// instead of 131, those random rows 21 s),
pub const LADDER_FRACTIONS: usize = 3;
/// while its relative gap is larger.
pub const LADDER_FAR: f64 = 1.0;
/// Costs of a fit over those of the easier one before it,
pub const LADDER_FACTOR: f64 = 4.0;
/// and below which a fit is not given up any more.
pub const LADDER_LEAST_FACTOR: f64 = 1.5;
/// Relative gap of the fits on the way. Tried: 0.1; 20news, C = 100 1.6 s instead of 1.2.
pub const LADDER_TOL: f64 = 1.0;

/// Columns from which on it is worth knowing which of them are out of reach: a reading of all entries, once.
pub const REACH_COLUMNS: usize = 1000;
/// How many times as large as at its start the dual variables of a fit may be before more columns count.
/// Tried, seconds of paths of 20 values on imdb (squared hinge), 100 on 20news (the same) and 100 on sector
/// (logistic): 1.3 2.9, 0.78, 0.97; 2 2.9, 0.73, 0.92; 3 3.1, 0.77, 0.93; 4 3.6, 0.83, 0.98.
pub const REACH_GUESS: f64 = 2.0;

/// Share of the gap at which Newton steps on a working set end. Tried, 20news, one group against the rest,
/// logistic loss, 560 weights, gap 1e-4: 0.01 takes 25 steps and 151 passes, 0.3 17 and 101.
pub const WORKING_SET_AIM: f64 = 0.3;
/// Columns that join a working set, as a multiple of those that stay (3 times: 155 passes there, 101 by 1),
pub const WORKING_SET_GROWTH: usize = 1;
/// or as many as have this multiple of their entries: where columns are of very different lengths, hundreds
/// of short ones read no more than the few long ones at hand. One thread, before and after, gap 1e-2:
/// flights, logistic, 2,620 weights 11 and 7 steps, imdb, squared hinge, 814 weights 9 and 7, phishing_urls,
/// squared hinge, 988 weights 13 and 10; 20news, squared hinge, C = 10, 1e-4 24 and 21. Longer: sector,
/// squared hinge, C = 20, 1e-4 21 and 20 steps in 0.131 and 0.14 s.
pub const WORKING_SET_ENTRIES: usize = 1;
/// and at least so many for each class. 50 or 25 instead, two classes, one thread, to 1e-4 in seconds:
/// flights, squared hinge, 2,640 weights 3.6 or 3.2 instead of 2.0, phishing_urls, squared hinge, 1,720
/// weights 3.0 or 2.5 instead of 2.6, imdb, logistic, 1,609 weights 1.5 or 1.4 instead of 1.7, flights,
/// 20news and sector with up to 200 weights the same. Tried: as many more as have 2 % or 10 % of all
/// entries; flights, logistic, 2,620 weights 8.6 and 7.8 instead of 5.5 then, the others the same. Softmax,
/// 20 in all instead, or 5 or 20 for each class: 20news, 20 classes, 493 weights, gap 1e-3 2.6, 2.0 or 1.7
/// s instead of 1.8, 2,080 weights 4.8, 6.5 or 3.3 instead of 3.8; mnist, 5,000 rows, standardised, 907
/// weights, gap 1e-2 4.1, 13.6 or 11.1 instead of 4.3 to 7.8.
pub const WORKING_SET_LEAST_PER_CLASS: usize = 10;
/// Share of the columns that a matrix may have from which those of nonzero weight make a set outgrow it. L1,
/// one thread, seconds to gaps of 1e-2 and 1e-4, where a set with a matrix never does and by 0.5, 0.75 and
/// 0.9 (flights with 6,300 and 6,400 weights, imdb with 6,000 and 7,300):
///
/// ```text
/// flights, logistic, C = 0.25     7.8  8.7      3.4  4.3      3.2  4.0      3.3  3.9
/// flights, squared, C = 0.06      3.3  2.9      1.9  2.1      1.8  2.3      2.0  2.2
/// imdb, logistic, C = 22          10   15       7.4  16       7.4  17       7.9  17
/// imdb, squared, C = 5.5          17   17       7.4  8.9      6.7  7.9      7.5  13
/// ```
///
/// The one that is slower, imdb, logistic, to 1e-4, depends on C: 16, 22 and 40 take 14, 17 and 13 s instead
/// of 14, 13 and 26 in another run.
///
/// With 2,600 to 3,000 weights, as much as a matrix may have there, within a tenth; with fewer as before.
/// Tried, besides: half as many more of the columns that are as near to their condition as three tenths of
/// the worst violation; to 1e-2 flights with 65 weights 0.44 s instead of 0.62, imdb with 330 1.1 instead of
/// 1.5, phishing_urls with 3,000, squared, 2.3 instead of 6.2, but to 1e-4 6 to 8 % slower in the mean over
/// six sets, sector by up to a half. Three times the columns that stay: phishing_urls alike, imdb with 330
/// 1.7 s.
pub const WORKING_SET_FULL: f64 = 0.75;
/// Columns up to which the matrix of a quadratic model is formed, 32 MB, and 40 MB for its factor,
pub const GRAM_COLUMNS: usize = 2048;
/// and more as long as it has at most one number for so many entries: a copy of them takes as much. flights,
/// 8.5 million entries, squared hinge, 2,640 weights, gap 1e-4: 3.1 s with the matrix, 27 s where sets of
/// more than 2,064 columns have none.
pub const GRAM_ENTRIES: usize = 1;
/// but never more, 134 MB: a factorisation of so many takes two to three seconds on one thread.
pub const GRAM_COLUMNS_AT_MOST: usize = 4096;
/// Products of the matrix per entry up to which it is formed at once; else a descent on the entries that has
/// not come to its end after as many epochs goes on with it. Tried: 8, 16; the same times on a9a, madelon,
/// sector, phishing_urls and flights, imdb 1.9 and 2.0 s instead of 1.8.
pub const GRAM_PRICE: f64 = 4.0;
/// The same where a fit starts from a solution nearby, as those of a search and the smooth problems of the
/// hinge do: most columns are known, and a step by the matrix is the last one. Searches to `C` = 1,024, five
/// folds, L1, logistic, one thread, seconds with 4, 16, 40 and 100: a9a 1.96, 1.40, 1.54, 1.37, madelon 14.7,
/// 7.9, 9.6, 8.0, sector 2.2, 1.8, 2.1, 1.9, 20news, one group, 10.7, 9.3, 8.7, 8.6, imdb to 8 35, -, 31, 34,
/// flights to 0.1 15.0, -, 13.1, 16.5. Any price: 20news 18.0 instead of 13.8.
pub const GRAM_PRICE_OF_STARTS: f64 = 40.0;
/// Products of a factorisation per entry, by [`VECTORISED`], from which they count, too: of hundreds of short
/// columns the entries are far fewer. Milliseconds without and with it, rows of random columns, l1:
///
/// ```text
///                                     weights       gap 1e-2         gap 1e-4
/// 1,000 x 2,000, 5 %, squared, C = 1      618     251     85       243     97
/// 1,000 x 2,000, 5 %, squared, C = 10     662   2,284    997     2,274  1,055
/// 1,000 x 2,000, 5 %, logistic, C = 10    543      83     43        89     47
/// 3,000 x 2,500, 2 %, squared, C = 1    1,372     767    119       856    140
/// 3,000 x 2,500, 2 %, squared, C = 10   1,427  11,440  2,433    12,586  2,450
/// imdb, squared, C = 1                  2,730   4,683  2,951     5,312  3,165
/// 20news, one group, squared, C = 30      864   2,240  1,754     2,244  1,752
/// ```
///
/// flights and w8a as before. Tried: 32; flights, squared, C = 0.02, 1.6 s instead of 1.1. All, and up to
/// 2,000 epochs also where there is no matrix; sector, C = 100, 173 ms instead of 92, flights with 9,252
/// weights 48 s instead of 14.
pub const FACTOR_PRICE: f64 = 100.0;
/// Products of tiles in the time of one product of two entries by their places, which decides between them.
/// 5,000 rows x 1,920 columns without zeros: the 9.2 billion of tiles take 0.63 s, as long as 29 epochs on
/// the entries, which are two products for each of 9.6 million.
pub const TILE_PRODUCTS: f64 = 20.0;
/// Columns from which a descent on the matrix goes through its epochs twice before the first factorisation:
/// of 1,700 columns that takes 0.1 to 0.2 s, as long as 50 to 100 epochs. What follows it costs 4 epochs a
/// step. Waiting four times as long or not at all: the same within the noise (phishing_urls, flights, imdb).
pub const JUMP_COLUMNS: usize = 512;
/// Price of a matrix, as in [`GRAM_PRICE`], from which descents on losses that are half parabolas come
/// before the model's. Tried, without turns of the model, seconds to a gap of 1e-2: 4; 1,000 random rows x
/// 2,000 columns at C = 1 0.10 as with 100, 500 x 2,000 without zeros 0.84 instead of 2.0, but 20news 5.3
/// instead of 4.5 and a9a not within 1,000 steps. 30; sector 0.8 instead of 0.5.
pub const LOSSES_PRICE: f64 = 100.0;
/// Prices of the matrix that they may take in epochs before it is the model's turn. 1,000 random rows x
/// 2,000 columns, C = 10, seconds to 1e-2 and 1e-6: with 2 0.68 and 1.8, with 6 0.47 and 1.6, without the
/// model 0.41 and 3.3.
pub const LOSSES_TURN: f64 = 6.0;
/// Columns from which a descent on the entries goes along conjugate gradients. Tried, gap 1e-4: 512; flights,
/// logistic, 2,620 weights 4.6 s instead of 3.2. Only where there is no matrix: imdb, logistic, 1,609 weights
/// 1.9 s instead of 1.5.
pub const DIRECTED_COLUMNS: usize = 1024;
/// Readings of all entries that a round must have been worth for its model's dual point, which takes one.
pub const MODEL_DUAL_PRICE: f64 = 3.0;
/// When a descent on entries ends. L1, one thread, seconds to gaps of 1e-2 and 1e-4, where it leaves 0.2 and
/// 0.05 of the decrease:
///
/// ```text
/// flights, logistic, 200 weights      0.60  0.60      0.50  0.57
/// flights, logistic, 2,625 weights    1.26  1.32      1.12  1.40
/// imdb, squared, 1,733 weights        1.46  1.66      1.24  1.49
/// 20news, logistic, 89 weights        0.12  0.14      0.12  0.12
/// 20news, squared, 533 weights        0.28  0.30      0.30  0.32
/// ```
///
/// 0.01 takes as long, but flights, squared, 2,640 weights, 0.95 and 1.14 instead of 0.78 and 0.96.
pub const ENTRIES_STOP: InnerStop = InnerStop { share: 0.05, epochs: 200, between_jumps: 1, noise: 0.0 };
/// The same on the losses themselves, where they are half parabolas (tried, seconds to 1e-2 and 1e-4, 1,000
/// random rows x 2,000 columns, C = 10: 0.2 1.2 and 2.3, 0.05 0.57 and 1.5, 0.01 0.42 and 1.3, 0.001 0.56 and
/// 1.0),
pub const LOSSES_STOP: InnerStop = InnerStop { share: 0.005, epochs: 2000, between_jumps: 1, noise: 0.0 };
/// and on a matrix, whose share is a part of that of the entries. Tried: 1e-6 however far those go; imdb
/// and phishing_urls, squared hinge, 1e-2, 3.8 and 3.5 s instead of 3.1 and 2.5.
pub const GRAM_STOP: InnerStop = InnerStop { share: 0.1, epochs: 2000, between_jumps: 10, noise: 0.0 };
/// Columns over which a descent on entries minimises together (penalised/heavy.rs). L1, one thread, seconds
/// to a gap of 1e-2 / 1e-4 / 1e-6, before and with blocks of 256 (flights has 2,620 weights, imdb 2,730):
///
/// ```text
/// flights, logistic, C = 0.124    3.9 / 4.3 / 4.4    1.3 / 1.7 / 2.3
/// flights, squared, C = 0.031     3.3 / 3.8 / 4.8    1.3 / 1.5 / 1.4
/// imdb, squared, C = 1            4.0 / 7.1          1.9 / 3.3
/// ```
///
/// 20news and sector as before within the noise or a tenth more. Of 128 columns flights takes 2.3 / 2.6 / 5.3
/// and 2.3 / 2.6 / 3.9, of 512 1.9 / 2.2 / 2.5 and 1.3 / 1.6 / 2.6; after three epochs without a block 1.7 /
/// 1.7 / 2.5 and 1.5 / 1.9 / 2.0.
pub const HEAVY_COLUMNS: usize = 256;
/// of sets of at least so many times as many,
pub const HEAVY_SETS: usize = 2;
/// with at least so many entries for each number of their matrix. Random tables without: 3,000 rows x 2,500
/// columns of 60 entries (150,000 in all) 5.3 s instead of 0.4; 500 x 2,000 without zeros 1.3 instead of 3.1.
pub const HEAVY_ENTRIES: usize = 6;
/// Epochs of such a descent for each product of the matrix of a whole set and its factorisation per entry.
pub const HEAVY_EPOCHS: f64 = 0.33;
/// When the descent on the matrix of those columns ends.
pub const HEAVY_STOP: InnerStop = InnerStop { share: 1e-6, epochs: 50, between_jumps: 5, noise: 0.0 };
