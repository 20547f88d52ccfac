//! Records of a log: `u64 length | u64 checksum | payload of that length`, little-endian, the checksum
//! being the xxh3 of the payload, seeded by the number of the record.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use twox_hash::XxHash3_64;

use crate::memory;

/// Bytes of a frame before its payload.
pub const FRAME: u64 = 16;

/// A frame of this number.
pub fn frame(number: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = memory::with_capacity(FRAME as usize + payload.len());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&XxHash3_64::oneshot_with_seed(number, payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The payload of the frame at `offset`, if it is whole and has the checksum of its number.
///
/// # Errors
/// Those of the file.
pub fn read_frame_at(file: &mut File, offset: u64, number: u64) -> std::io::Result<Option<Vec<u8>>> {
    let left = file.metadata()?.len().saturating_sub(offset);
    if left < FRAME {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::new(file);
    let mut head = [0; FRAME as usize];
    reader.read_exact(&mut head)?;
    let [length, checksum] =
        [0, 8].map(|k| u64::from_le_bytes(head[k..k + 8].try_into().expect("eight bytes")));
    if length > left - FRAME {
        return Ok(None);
    }
    let mut payload = memory::zeros(length as usize);
    reader.read_exact(&mut payload)?;
    Ok((XxHash3_64::oneshot_with_seed(number, &payload) == checksum).then_some(payload))
}
