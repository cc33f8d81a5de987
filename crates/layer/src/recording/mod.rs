//! The recording of one device: which records are written, and where.
//!
//! ```text
//!   call ──> the thread's writer ──> its segment of the mapped file
//!              │ one lock for each thread, which no other thread takes except to start another file
//!              └─> live objects: handle -> number, and the records that created it
//! ```
//!
//! - W1: a record is complete in the file before its segment's length includes it. A program that is killed loses at
//!   most the record that each thread was writing.
//! - W2: sequence numbers follow the order of calls: if one call returned before another began, its number is less.
//! - W3: a call changes the live objects and writes its records under the lock of its writer. A thread that holds the
//!   locks of all writers sees live objects that match the records.
//! - W4: a failure ends the recording, and affects nothing else.
//! - W5: a child of `fork` records nothing. The files are those of its parent.

mod fields;
mod file;
mod fork;
mod history;
mod objects;
mod parts;
mod segment;
mod size_limit;
mod thread;
mod watch;
mod writer;

pub(crate) use self::fields::RecordFields;
pub(crate) use self::history::BLOCK_KEYS;
pub(crate) use self::objects::ObjectKey;
pub(crate) use self::watch::{RecordedAccess, WatchRecording};
