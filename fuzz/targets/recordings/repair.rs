//! Makes a file of a recording from any bytes.
//!
//! An input is a file without the parts that mutations would have to keep consistent: lengths, numbers and checksums of
//! chunks are computed, a chunk ends before the next mark, and the segments of a foreign recording follow each other
//! without padding.

use sublet::private::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK};
use sublet::trace::{Damage, Trace};

const MAGIC_BYTES: usize = 8;
const CHUNK_HEADER_BYTES: usize = 36;
/// Segments above this number change nothing.
const MOST_SEGMENTS: usize = 6;

/// Returns the start of the first of these marks after `from`, or the end of the bytes.
fn next_mark(bytes: &[u8], from: usize, marks: &[[u8; 4]]) -> usize {
    let is_mark = |at: &usize| marks.iter().any(|mark| bytes[*at..].starts_with(mark));
    (from.min(bytes.len())..bytes.len()).find(is_mark).unwrap_or(bytes.len())
}

fn put(bytes: &mut [u8], at: usize, number: usize) {
    bytes[at..at + 4].copy_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Completes the header of a chunk.
fn close(chunk: &mut [u8], number: usize) {
    let payload = chunk.len() - CHUNK_HEADER_BYTES;
    put(chunk, 4, number);
    put(chunk, 8, payload);
    let mut crc = crc32fast::Hasher::new();
    crc.update(&chunk[..32]);
    crc.update(&chunk[CHUNK_HEADER_BYTES..]);
    chunk[32..36].copy_from_slice(&crc.finalize().to_le_bytes());
}

/// Splits the chunks after the magic, each with a whole header.
fn chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let marks = [*b"CALL", *b"LAST"];
    let mut chunks = Vec::new();
    let mut at = MAGIC_BYTES;
    while bytes.len() - at >= CHUNK_HEADER_BYTES {
        let end = next_mark(bytes, at + CHUNK_HEADER_BYTES, &marks);
        chunks.push(bytes[at..end].to_vec());
        at = end;
    }
    chunks
}

fn file_of(magic: &[u8], chunks: &mut [Vec<u8>]) -> Vec<u8> {
    chunks.iter_mut().enumerate().for_each(|(number, chunk)| close(chunk, number));
    [magic, &chunks.concat()].concat()
}

/// Corrects the number of records in each chunk, as far as the reader counts them.
fn repaired_chunks(bytes: &[u8]) -> Vec<u8> {
    let (magic, mut chunks) = (&bytes[..MAGIC_BYTES], chunks(bytes));
    for _ in 0..chunks.len() {
        let file = file_of(magic, &mut chunks);
        let end = Trace::read_prefix(&file).ok().and_then(|prefix| prefix.end);
        let Some(error) = end else { return file };
        let Damage::Count { counted, .. } = error.damage else { return file };
        let Some(chunk) = chunks.get_mut(usize::try_from(error.chunk).unwrap_or(0)) else { return file };
        if !chunk.starts_with(b"CALL") {
            return file;
        }
        put(chunk, 12, usize::try_from(counted).unwrap_or(0));
    }
    file_of(magic, &mut chunks)
}

/// Puts each segment where it belongs. The bytes of a segment are those before the next mark.
fn repaired_segments(bytes: &[u8]) -> Vec<u8> {
    let mut at = next_mark(bytes, MAGIC_BYTES, &[SEGMENT_MARK]);
    if at < MAGIC_BYTES + CHUNK_HEADER_BYTES {
        return bytes.to_vec();
    }
    let mut file = file_of(&bytes[..MAGIC_BYTES], &mut [bytes[MAGIC_BYTES..at].to_vec()]);
    for _ in 0..MOST_SEGMENTS {
        if bytes.len() - at < SEGMENT_HEADER_BYTES {
            break;
        }
        let end = next_mark(bytes, at + SEGMENT_HEADER_BYTES, &[SEGMENT_MARK]).min(at + SEGMENT_BYTES);
        file.resize(file.len().next_multiple_of(SEGMENT_BYTES), 0);
        let start = file.len();
        file.extend(&bytes[at..end]);
        put(&mut file, start + 4, end - at - SEGMENT_HEADER_BYTES);
        at = end;
    }
    file
}

/// Returns `None` if the bytes are not meant to be a recording.
pub(crate) fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    match *bytes.get(..MAGIC_BYTES)? {
        [0x89, b'S', b'T', b'R', b'A', b'C', b'E', 1] => Some(repaired_chunks(bytes)),
        [0x89, b'S', b'T', b'R', b'A', b'C', b'E', 2] => Some(repaired_segments(bytes)),
        _ => None,
    }
}
