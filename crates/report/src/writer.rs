//! Writes JSON in the layout of VMA's strings: indented by two blanks, one value per line, small objects on one line.

use std::fmt::Write;

/// The layout of a list or an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListLayout {
    /// One value per line.
    Lines,
    /// Everything on one line.
    OneLine,
}

/// A list or an object in progress.
#[derive(Debug)]
struct OpenElement {
    layout: ListLayout,
    is_empty: bool,
}

/// The text written so far. Methods with a key write members of an object; those named `_element` write list elements.
#[derive(Debug)]
pub(super) struct JsonWriter {
    text: String,
    open: Vec<OpenElement>,
}

impl JsonWriter {
    /// Writes an object with the members that `fill` adds, and returns the text.
    pub(super) fn document(fill: impl FnOnce(&mut Self)) -> String {
        let mut writer = Self { text: String::new(), open: Vec::new() };
        writer.within('{', '}', ListLayout::Lines, fill);
        writer.text
    }

    pub(super) fn number(&mut self, key: &str, value: impl Into<u64>) {
        self.key(key);
        self.digits(value.into());
    }

    pub(super) fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quoted(value);
    }

    pub(super) fn object(&mut self, key: &str, fill: impl FnOnce(&mut Self)) {
        self.key(key);
        self.within('{', '}', ListLayout::Lines, fill);
    }

    /// Writes a list with the elements that `fill` adds.
    pub(super) fn list(&mut self, key: &str, layout: ListLayout, fill: impl FnOnce(&mut Self)) {
        self.key(key);
        self.within('[', ']', layout, fill);
    }

    pub(super) fn object_element(&mut self, layout: ListLayout, fill: impl FnOnce(&mut Self)) {
        self.next();
        self.within('{', '}', layout, fill);
    }

    pub(super) fn number_element(&mut self, value: u32) {
        self.next();
        self.digits(value.into());
    }

    pub(super) fn string_element(&mut self, value: &str) {
        self.next();
        self.quoted(value);
    }

    fn within(&mut self, first: char, last: char, layout: ListLayout, fill: impl FnOnce(&mut Self)) {
        self.text.push(first);
        self.open.push(OpenElement { layout, is_empty: true });
        fill(self);
        let is_empty = self.open.pop().is_none_or(|open| open.is_empty);
        match layout {
            _ if is_empty => {}
            ListLayout::Lines => self.line(),
            ListLayout::OneLine => self.text.push(' '),
        }
        self.text.push(last);
    }

    fn key(&mut self, key: &str) {
        self.next();
        self.quoted(key);
        self.text.push_str(": ");
    }

    /// Begins the next value of the innermost list or object.
    fn next(&mut self) {
        let Some(open) = self.open.last_mut() else { return };
        let is_first = std::mem::replace(&mut open.is_empty, false);
        let layout = open.layout;
        if !is_first {
            self.text.push(',');
        }
        match layout {
            ListLayout::Lines => self.line(),
            ListLayout::OneLine => self.text.push(' '),
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.open.iter().for_each(|_| self.text.push_str("  "));
    }

    fn digits(&mut self, value: u64) {
        // Writing into a string does not fail.
        let _ = write!(self.text, "{value}");
    }

    /// Escapes quotes, backslashes and control characters, and nothing else.
    fn quoted(&mut self, value: &str) {
        self.text.push('"');
        for c in value.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                c if u32::from(c) < 0x20 => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}
