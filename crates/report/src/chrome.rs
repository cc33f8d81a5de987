//! Writes JSON in the Trace Event Format, which Chrome's `about:tracing` and Perfetto read.
//!
//! Source: "Trace Event Format", Google, which lists the phases and the members of each.

use serde::Serialize;
use serde::ser::Serializer;

/// A time, in the format's microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    Micros(u64),
    #[cfg(feature = "trace")]
    Nanos(u64),
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Micros(micros) => to.serialize_u64(micros),
            #[cfg(feature = "trace")]
            // Exact up to 2^53 nanoseconds, which is 104 days.
            Self::Nanos(nanos) => to.serialize_f64(super::figures::float(nanos) / 1000.0),
        }
    }
}

/// One event. Members that its phase does not have are `None`.
#[derive(Serialize)]
struct ChromeEvent<'a, A> {
    /// The phase: X a slice with its end, C a counter, b and e the ends of an asynchronous slice, i an instant, M a
    /// name for something.
    ph: char,
    name: &'a str,
    cat: &'static str,
    ts: Time,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The scope of an instant: g global, p process, t thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<char>,
    args: A,
}

/// The arguments of an event that has none.
#[cfg(feature = "trace")]
#[derive(Serialize)]
pub(crate) struct NoArguments {}

/// An asynchronous slice. Two events with the same category and number begin and end it.
#[cfg(feature = "trace")]
pub(crate) struct AsyncSlice<'a> {
    pub(crate) pid: u32,
    pub(crate) cat: &'static str,
    pub(crate) name: &'a str,
    pub(crate) number: u32,
}

/// The file written so far.
pub(crate) struct ChromeEvents {
    text: String,
    is_empty: bool,
}

impl ChromeEvents {
    pub(crate) fn new() -> Self {
        Self { text: "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n".to_owned(), is_empty: true }
    }

    fn add<A: Serialize>(&mut self, event: &ChromeEvent<'_, A>) {
        // Serialising into a string fails only for map keys that are not strings. There are none.
        if let Ok(text) = serde_json::to_string(event) {
            if !std::mem::take(&mut self.is_empty) {
                self.text.push_str(",\n");
            }
            self.text.push_str(&text);
        }
    }

    /// A slice with its end.
    pub(crate) fn slice<A: Serialize>(
        &mut self,
        (pid, tid): (u32, u32),
        (ts, dur): (Time, Time),
        cat: &'static str,
        name: &str,
        args: A,
    ) {
        self.add(&ChromeEvent { ph: 'X', name, cat, ts, pid, tid, dur: Some(dur), id: None, s: None, args });
    }

    /// An instant, drawn across everything (`g`), its process (`p`) or its thread (`t`).
    #[cfg(feature = "trace")]
    pub(crate) fn instant<A: Serialize>(
        &mut self,
        (pid, tid): (u32, u32),
        ts: Time,
        cat: &'static str,
        (name, over): (&str, char),
        args: A,
    ) {
        self.add(&ChromeEvent { ph: 'i', name, cat, ts, pid, tid, dur: None, id: None, s: Some(over), args });
    }

    #[cfg(feature = "trace")]
    pub(crate) fn begin<A: Serialize>(&mut self, ts: Time, slice: &AsyncSlice<'_>, args: A) {
        self.end_of('b', ts, slice, args);
    }

    #[cfg(feature = "trace")]
    pub(crate) fn end(&mut self, ts: Time, slice: &AsyncSlice<'_>) {
        self.end_of('e', ts, slice, NoArguments {});
    }

    #[cfg(feature = "trace")]
    fn end_of<A: Serialize>(&mut self, ph: char, ts: Time, slice: &AsyncSlice<'_>, args: A) {
        let AsyncSlice { pid, cat, name, number } = *slice;
        let id = Some(format!("{number:#x}"));
        self.add(&ChromeEvent { ph, name, cat, ts, pid, tid: 0, dur: None, id, s: None, args });
    }

    /// Sets the value of a counter from this time on.
    pub(crate) fn counter(&mut self, pid: u32, ts: Time, name: &str, bytes: u64) {
        #[derive(Serialize)]
        struct CounterArguments {
            bytes: u64,
        }
        let args = CounterArguments { bytes };
        let cat = "memory";
        self.add(&ChromeEvent { ph: 'C', name, cat, ts, pid, tid: 0, dur: None, id: None, s: None, args });
    }

    /// Names a process and sets its position among the others.
    pub(crate) fn process(&mut self, pid: u32, name: &str, place: u32) {
        #[derive(Serialize)]
        struct ProcessOrder {
            sort_index: u32,
        }
        self.meta((pid, 0), "process_name", NameArguments { name });
        self.meta((pid, 0), "process_sort_index", ProcessOrder { sort_index: place });
    }

    /// Names a thread.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, name: &str) {
        self.meta((pid, tid), "thread_name", NameArguments { name });
    }

    fn meta<A: Serialize>(&mut self, (pid, tid): (u32, u32), name: &str, args: A) {
        let (ts, cat) = (Time::Micros(0), "__metadata");
        self.add(&ChromeEvent { ph: 'M', name, cat, ts, pid, tid, dur: None, id: None, s: None, args });
    }

    /// Returns the whole file. `about` describes its origin.
    pub(crate) fn finish<A: Serialize>(mut self, about: &A) -> String {
        let about = serde_json::to_string(about).unwrap_or_else(|_| "{}".to_owned());
        self.text.push_str("\n],\"otherData\":");
        self.text.push_str(&about);
        self.text.push_str("}\n");
        self.text
    }
}

#[derive(Serialize)]
struct NameArguments<'a> {
    name: &'a str,
}
