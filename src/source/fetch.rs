//! Stored bytes of blocks: read ahead by a thread, or kept once read. A call of one thread reads them when
//! they are needed.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::Scope;

use crate::fit::Monitor;
use crate::store::reader::{PageBytes, Store};
use crate::{Error, Result, memory};

type Bytes = Vec<Vec<u8>>;

/// Name of the thread that reads.
pub const THREAD: &str = "hinge-reader";

/// The reader of blocks.
pub struct Fetch<'a> {
    store: &'a Store,
    blocks: &'a [Vec<u32>],
    keeps: bool,
    /// Stored bytes by page, empty where they are not kept.
    kept: Vec<Vec<u8>>,
    monitor: &'a dyn Monitor,
    /// The thread that reads ahead; none where there is one thread in all.
    ahead: Option<Ahead>,
    /// The block that the thread is at.
    under_way: Option<usize>,
    /// A block that has come, until it is asked for.
    arrived: Option<(usize, Bytes)>,
    bytes_read: u64,
}

/// The ends of the channels to the thread.
struct Ahead {
    requests: Sender<usize>,
    answers: Receiver<(usize, Result<Bytes>)>,
}

impl<'a> Fetch<'a> {
    /// Starts the thread, which ends with the value. `kept` is what was kept before, by page; empty for
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        store: &'a Store,
        blocks: &'a [Vec<u32>],
        mut kept: Vec<Vec<u8>>,
        keeps: bool,
        monitor: &'a dyn Monitor,
    ) -> Result<Self>
    where
        'a: 'scope,
    {
        let ahead = if rayon::current_num_threads() == 1 {
            None
        } else {
            let read = move |block: usize| memory::catch(|| read(store, &blocks[block], monitor));
            Some(Ahead::start(scope, read)?)
        };
        kept.resize(if keeps { store.pages().len() } else { 0 }, Vec::new());
        Ok(Self { store, blocks, keeps, kept, monitor, ahead, under_way: None, arrived: None, bytes_read: 0 })
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
        let has_arrived = self.arrived.as_ref().is_some_and(|(number, _)| *number == block);
        let Some(ahead) = &self.ahead else { return };
        if self.under_way.is_none() && !has_arrived && !self.has(block) && ahead.requests.send(block).is_ok()
        {
            self.under_way = Some(block);
        }
    }

    /// Whether [`Self::with`] need not wait for a block. Asks for it if it is not on its way.
    ///
    /// # Errors
    /// As for [`Self::with`].
    pub fn is_ready(&mut self, block: usize) -> Result<bool> {
        self.ask(block);
        let Some(ahead) = &self.ahead else { return Ok(true) };
        match ahead.answers.try_recv() {
            Ok(answer) => self.take(answer)?,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(Error::Cancelled),
        }
        Ok(self.has(block) || self.arrived.as_ref().is_some_and(|(number, _)| *number == block))
    }

    fn take(&mut self, (number, read): (usize, Result<Bytes>)) -> Result<()> {
        self.under_way = None;
        let read = read?;
        self.bytes_read += read.iter().map(|page| page.len() as u64).sum::<u64>();
        self.arrived = Some((number, read));
        Ok(())
    }

    /// Waits for a block and calls `f` with its bytes.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`], and those of `f`.
    pub fn with<T>(&mut self, block: usize, f: impl FnOnce(&dyn PageBytes) -> Result<T>) -> Result<T> {
        if self.has(block) {
            return f(&self.kept());
        }
        // What was asked for may be another block: after a resume, or at the last step.
        let bytes = loop {
            match self.arrived.take() {
                Some((number, bytes)) if number == block => break bytes,
                _ => {
                    self.ask(block);
                    let answer = match &self.ahead {
                        Some(ahead) => ahead.answers.recv().map_err(|_| Error::Cancelled)?,
                        None => (block, read(self.store, &self.blocks[block], self.monitor)),
                    };
                    self.take(answer)?;
                }
            }
        };
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

impl Ahead {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        read: impl Fn(usize) -> Result<Bytes> + Send + 'scope,
    ) -> Result<Self> {
        let (requests, wanted) = channel::<usize>();
        let (send, answers) = channel();
        let work = move || {
            while let Ok(block) = wanted.recv() {
                if send.send((block, read(block))).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(THREAD.into());
        thread.spawn_scoped(scope, work).map_err(Error::Thread)?;
        Ok(Self { requests, answers })
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
