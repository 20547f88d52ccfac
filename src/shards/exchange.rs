//! The way of requests to the shards: what carries them is the caller's affair.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::wire::{Request, ShardAnswer};
use crate::Result;

/// A way to all shards and back.
pub trait Exchange {
    /// Hands `request` to all shards and returns the reduced answers. `restore` makes the request that
    /// brings a shard that begins anew to the state before `request`.
    ///
    /// # Errors
    /// Those of the transport: a shard that is lost for good, an error of a shard's own.
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer>;

    /// The same for a request whose answers are not added: the sums of each shard, in their order.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>>;
}

/// The way to the shards for users that take turns on it.
pub struct Link<'a> {
    exchange: RefCell<&'a mut dyn Exchange>,
    /// Who has asked last, and whose problems the shards therefore have.
    owner: Cell<usize>,
    n_users: Cell<usize>,
}

impl<'a> Link<'a> {
    /// For users that share this exchange.
    pub fn new(exchange: &'a mut dyn Exchange) -> Rc<Self> {
        Rc::new(Self { exchange: RefCell::new(exchange), owner: Cell::new(0), n_users: Cell::new(0) })
    }

    /// The number of one more user, from 1 on.
    pub fn enlist(&self) -> usize {
        self.n_users.set(self.n_users.get() + 1);
        self.n_users.get()
    }

    /// Whether this user has asked last.
    pub fn is_of(&self, user: usize) -> bool {
        self.owner.get() == user
    }

    /// The reduced answers to a request of this user, to whose problems `restore` brings a shard that begins
    /// anew.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn ask(&self, user: usize, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let answer = self.exchange.borrow_mut().ask(request, restore)?;
        self.owner.set(user);
        Ok(answer)
    }

    /// The same for a request whose answers are not added.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn gather_for(
        &self,
        user: usize,
        request: &Request,
        restore: &dyn Fn() -> Vec<f64>,
    ) -> Result<Vec<Vec<f64>>> {
        let answers = self.exchange.borrow_mut().gather(request, restore)?;
        self.owner.set(user);
        Ok(answers)
    }

    /// The answer of each shard to a request that needs no problem.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn gather(&self, request: &Request) -> Result<Vec<Vec<f64>>> {
        self.exchange.borrow_mut().gather(request, &Vec::new)
    }
}
