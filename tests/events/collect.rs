//! A subscriber that collects all events of the library.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::table::{Row, Rows};

thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

/// An event or the start of a span.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) metadata: &'static Metadata<'static>,
    pub(crate) values: BTreeMap<String, String>,
}

impl Seen {
    pub(crate) fn name(&self) -> &'static str {
        self.metadata.name()
    }

    /// Returns a field's value as text, or an empty string if it was not recorded.
    pub(crate) fn get(&self, field: &str) -> &str {
        self.values.get(field).map_or("", |value| &**value)
    }

    pub(crate) fn number(&self, field: &str) -> u64 {
        self.get(field).parse().unwrap_or_else(|_| panic!("{field} of {self:?}"))
    }
}

struct Values<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Values<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }
}

/// Collects events in order, separately for each thread.
pub(crate) struct Collect<F: Fn(&Seen) + Send + Sync + 'static> {
    then: F,
}

impl<F: Fn(&Seen) + Send + Sync + 'static> Collect<F> {
    fn take(&self, metadata: &'static Metadata<'static>, record: impl FnOnce(&mut Values<'_>)) {
        let mut values = BTreeMap::new();
        record(&mut Values(&mut values));
        let seen = Seen { metadata, values };
        (self.then)(&seen);
        SEEN.with_borrow_mut(|all| all.push(seen));
    }
}

impl<F: Fn(&Seen) + Send + Sync + 'static> Subscriber for Collect<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("sublet")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.take(span.metadata(), |values| span.record(values));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.take(event.metadata(), |values| event.record(values));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the events of this thread during `work`. Calls `then` for each while it is being emitted.
pub(crate) fn heard_with(then: impl Fn(&Seen) + Send + Sync + 'static, work: impl FnOnce()) -> Vec<Seen> {
    // With a single subscriber, `tracing` may cache a callsite as disabled if another thread reaches it first. The
    // second dispatcher prevents this.
    let _second = tracing::Dispatch::new(Collect { then: |_: &Seen| {} });
    SEEN.take();
    tracing::subscriber::with_default(Collect { then }, || {
        // Another test may have cached the callsites as disabled.
        tracing::callsite::rebuild_interest_cache();
        work();
    });
    SEEN.take()
}

/// See [`heard_with`].
pub(crate) fn heard(work: impl FnOnce()) -> Vec<Seen> {
    heard_with(|_| {}, work)
}

/// Returns the collected events in the form of the guide's tables.
pub(crate) fn rows(seen: &[Seen]) -> Rows {
    let mut rows = Rows::new();
    for Seen { metadata, .. } in seen {
        let fields: BTreeSet<_> = metadata.fields().iter().map(|field| field.name().to_owned()).collect();
        let row = Row {
            target: metadata.target().to_owned(),
            level: metadata.level().as_str().to_ascii_lowercase(),
            is_span: metadata.is_span(),
            fields: fields.into_iter().filter(|field| field != "message").collect(),
        };
        if let Some(before) = rows.insert(metadata.name().to_owned(), row.clone()) {
            assert_eq!(before, row, "{} has two forms", metadata.name());
        }
    }
    rows
}

/// Returns the names in order.
pub(crate) fn names(seen: &[Seen]) -> Vec<&'static str> {
    seen.iter().map(Seen::name).collect()
}
