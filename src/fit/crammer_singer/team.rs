//! Threads that visit the same rows in step, each with its own classes: how they exchange gradients.
//!
//! All of them follow the same rules with the same numbers, so they are always at the same row, and all that
//! a thread lacks are the gradients of the others' classes. An exchange takes about 0.3 microseconds on two
//! cores, one cache line there and one back, so a waiting thread spins; only where the other one has lost its
//! core does it yield its own, and measures for how long. That time decides how many threads go on, and no
//! number of the solution.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Reads of another thread's counter before the core is yielded: some 20 microseconds.
const SPINS: usize = 400;

/// Threads in step, and what they exchange.
pub struct Team {
    seats: Vec<Seat>,
    is_over: AtomicBool,
}

/// What one thread publishes. A cache line of its own, and the next one, which processors fetch
/// along with it.
#[repr(align(128))]
struct Seat {
    /// Exchanges that it has written for.
    meetings: AtomicUsize,
    /// Gradients by position, for odd and even exchanges: no thread can be more than one ahead.
    gradients: [Vec<AtomicU64>; 2],
}

/// One thread of a team.
pub struct Member<'t> {
    team: &'t Team,
    me: usize,
    meetings: usize,
    lost: Duration,
}

impl Team {
    /// Of `n_members` threads that exchange up to `n_classes` gradients at a time.
    pub fn new(n_members: usize, n_classes: usize) -> Self {
        let n_told = if n_members == 1 { 0 } else { n_classes };
        let gradients = || (0..n_told).map(|_| AtomicU64::new(0)).collect();
        let seat = || Seat { meetings: AtomicUsize::new(0), gradients: [gradients(), gradients()] };
        Self { seats: (0..n_members).map(|_| seat()).collect(), is_over: AtomicBool::new(false) }
    }

    /// Thread number `me`; once it is dropped, no other waits any more.
    pub fn member(&self, me: usize) -> Member<'_> {
        Member { team: self, me, meetings: 0, lost: Duration::ZERO }
    }
}

impl Member<'_> {
    /// Its number.
    pub fn number(&self) -> usize {
        self.me
    }

    /// Time that it has waited for threads without a core.
    pub fn lost(&self) -> Duration {
        self.lost
    }

    /// Completes gradients: those at the positions of member `owner(position)` are that one's. `false` if the
    /// team is over.
    #[inline(always)]
    pub fn complete(&mut self, gradients: &mut [f64], owner: impl Fn(usize) -> usize) -> bool {
        let Self { team: Team { seats, .. }, me, meetings, .. } = self;
        if seats.len() == 1 {
            return true;
        }
        let side = *meetings % 2;
        for (position, gradient) in gradients.iter().enumerate() {
            if owner(position) == *me {
                seats[*me].gradients[side][position].store(gradient.to_bits(), Ordering::Relaxed);
            }
        }
        if !self.meet() {
            return false;
        }
        let Self { team: Team { seats, .. }, me, .. } = self;
        for (position, gradient) in gradients.iter_mut().enumerate() {
            let owner = owner(position);
            if owner != *me {
                *gradient = f64::from_bits(seats[owner].gradients[side][position].load(Ordering::Relaxed));
            }
        }
        true
    }

    /// A barrier: waits until all have come this far; what they stored before is then seen. `false` if the
    /// team is over.
    pub fn meet(&mut self) -> bool {
        let Self { team: Team { seats, is_over }, me, meetings, lost } = self;
        *meetings += 1;
        seats[*me].meetings.store(*meetings, Ordering::Release);
        let others = seats.iter().enumerate().filter(|(other, _)| other != me);
        for (_, seat) in others {
            let has_come = || seat.meetings.load(Ordering::Acquire) >= *meetings;
            let (mut spins, mut late) = (0, None);
            while !has_come() {
                // One that came and left is not missed.
                if is_over.load(Ordering::Acquire) && !has_come() {
                    return false;
                }
                spins += 1;
                if spins < SPINS {
                    std::hint::spin_loop();
                } else {
                    late.get_or_insert_with(Instant::now);
                    std::thread::yield_now();
                }
            }
            *lost += late.map_or(Duration::ZERO, |since| since.elapsed());
        }
        true
    }
}

impl Drop for Member<'_> {
    /// However a thread ends, the others do not wait for it.
    fn drop(&mut self) {
        self.team.is_over.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n_members: usize, task: impl Fn(Member<'_>) -> usize + Sync) -> Vec<usize> {
        let (team, task) = (&Team::new(n_members, 7), &task);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..n_members).map(|me| scope.spawn(move || task(team.member(me)))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn everybody_sees_the_numbers_of_all() {
        let right = run(3, |mut member| {
            let (me, owner) = (member.number(), |position: usize| position % 3);
            let number = |round: usize, position: usize| (round * 10 + position) as f64;
            let mine = |round| (0..7).map(move |p| if owner(p) == me { number(round, p) } else { f64::NAN });
            (0..2000)
                .filter(|&round| {
                    let mut gradients: Vec<f64> = mine(round).take(1 + round % 7).collect();
                    let is_complete = member.complete(&mut gradients, owner);
                    is_complete && gradients.iter().enumerate().all(|(p, g)| *g == number(round, p))
                })
                .count()
        });
        assert_eq!(right, [2000; 3]);
    }

    #[test]
    fn nobody_waits_for_one_that_has_left() {
        let met = run(2, |mut member| {
            let rounds = if member.number() == 0 { 5 } else { 50 };
            (0..rounds).take_while(|_| member.meet()).count()
        });
        assert_eq!(met[0], 5);
        assert!((4..=5).contains(&met[1]), "{met:?}");
    }
}
