//! Stored bytes of blocks: read ahead by a thread, or kept once read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use crate::solver::Monitor;
use crate::store::reader::{PageBytes, Store};
use crate::{Error, Result};

type Bytes = Vec<Vec<u8>>;

/// The reader of blocks.
pub struct Fetch<'a> {
    store: &'a Store,
    blocks: &'a [Vec<u32>],
    keeps: bool,
    /// Stored bytes by page, empty where they are not kept.
    kept: Vec<Vec<u8>>,
    requests: Sender<usize>,
    answers: Receiver<(usize, Result<Bytes>)>,
    /// The block that the thread is at.
    under_way: Option<usize>,
    bytes_read: u64,
}

impl<'a> Fetch<'a> {
    /// Starts the thread, which ends with the value. `kept` is what was kept before, by page; empty for nothing.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        store: &'a Store,
        blocks: &'a [Vec<u32>],
        mut kept: Vec<Vec<u8>>,
        keeps: bool,
        monitor: &'a dyn Monitor,
    ) -> Self
    where
        'a: 'scope,
    {
        let (requests, wanted) = channel::<usize>();
        let (send, answers) = channel();
        scope.spawn(move || {
            while let Ok(block) = wanted.recv() {
                if send.send((block, read(store, &blocks[block], monitor))).is_err() {
                    return;
                }
            }
        });
        kept.resize(if keeps { store.pages().len() } else { 0 }, Vec::new());
        Self { store, blocks, keeps, kept, requests, answers, under_way: None, bytes_read: 0 }
    }

    /// Bytes read from the file so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The bytes that are kept, by page, for another start.
    pub fn into_kept(self) -> Vec<Vec<u8>> {
        self.kept
    }

    /// The bytes that are kept.
    pub fn kept(&self) -> Kept<'_> {
        Kept(&self.kept)
    }

    fn has(&self, block: usize) -> bool {
        self.keeps && self.blocks[block].iter().all(|&page| !self.kept[page as usize].is_empty())
    }

    /// Asks for a block that will be needed next.
    pub fn ask(&mut self, block: usize) {
        if self.under_way.is_none() && !self.has(block) && self.requests.send(block).is_ok() {
            self.under_way = Some(block);
        }
    }

    /// Waits for a block and calls `f` with its bytes.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`], and those of `f`.
    pub fn with<T>(&mut self, block: usize, f: impl FnOnce(&dyn PageBytes) -> Result<T>) -> Result<T> {
        if self.has(block) {
            return f(&self.kept());
        }
        let mut bytes = None;
        // What was asked for may be another block: after a resume, or at the last step.
        while bytes.is_none() {
            self.ask(block);
            let (number, read) = self.answers.recv().map_err(|_| Error::Cancelled)?;
            self.under_way = None;
            let read = read?;
            self.bytes_read += read.iter().map(|page| page.len() as u64).sum::<u64>();
            bytes = (number == block).then_some(read);
        }
        let bytes = bytes.unwrap_or_default();
        if !self.keeps {
            return f(&Read(&bytes));
        }
        for (&page, bytes) in self.blocks[block].iter().zip(bytes) {
            self.kept[page as usize] = bytes;
        }
        f(&self.kept())
    }

    /// The store that is read.
    pub fn store(&self) -> &'a Store {
        self.store
    }
}

fn read(store: &Store, pages: &[u32], monitor: &dyn Monitor) -> Result<Bytes> {
    let one = |&page: &u32| {
        monitor.poll()?;
        let mut bytes = Vec::new();
        store.read_page(page as usize, &mut bytes)?;
        Ok(bytes)
    };
    pages.iter().map(one).collect()
}

/// Bytes in the order in which they were asked for.
struct Read<'a>(&'a [Vec<u8>]);

impl PageBytes for Read<'_> {
    fn get<'b>(&'b self, _: &Store, k: usize, _: usize, _: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        Ok(&self.0[k])
    }
}

/// Bytes by page; what is not there is read.
pub struct Kept<'a>(&'a [Vec<u8>]);

impl<'a> Kept<'a> {
    /// Bytes that a reader kept; empty for none.
    pub fn of(kept: &'a [Vec<u8>]) -> Self {
        Self(kept)
    }
}

impl PageBytes for Kept<'_> {
    fn get<'b>(&'b self, store: &Store, _: usize, page: usize, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self.0.get(page).filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => Ok(bytes),
            None => {
                store.read_page(page, buffer)?;
                Ok(buffer)
            }
        }
    }
}
