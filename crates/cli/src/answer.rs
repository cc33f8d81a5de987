//! The result of a subcommand, and how it is printed.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::{CommandFailure, DIFFERS, USAGE};
use crate::text::is_command;

/// The result of a subcommand, as text and as JSON.
pub(crate) struct Answer {
    text: String,
    /// `None` if the text is the document.
    document: Option<Value>,
    /// True if the text is a file, which must not go to a terminal.
    is_file: bool,
    /// True if the text goes to standard error, because standard output belongs to another program.
    is_aside: bool,
    code: u8,
}

impl Answer {
    /// Creates an answer. `format` names the kind of document, and the members of the object `content` are added to it.
    pub(crate) fn new(format: &str, version: u32, text: String, content: &impl Serialize) -> Self {
        let mut document = json!({ "format": format, "version": version });
        let content = serde_json::to_value(content).unwrap_or_default();
        if let (Some(document), Value::Object(content)) = (document.as_object_mut(), content) {
            document.extend(content);
        }
        Self { text, document: Some(document), is_file: false, is_aside: false, code: 0 }
    }

    /// Marks the answer as one with a failed expectation.
    pub(crate) fn differs(mut self, differs: bool) -> Self {
        self.code = if differs { DIFFERS } else { 0 };
        self
    }

    /// Returns the text, or the document if that is all there is.
    pub(crate) fn content(&self) -> String {
        match &self.document {
            Some(_) => self.text.clone(),
            None => self.text.trim_end().to_owned() + "\n",
        }
    }

    /// Prints the document even without `--json`.
    pub(crate) fn only_document(mut self) -> Self {
        if let Some(document) = self.document.take() {
            self.text = serde_json::to_string_pretty(&document).unwrap_or_default();
        }
        self
    }

    /// Marks the text as a file.
    pub(crate) fn file(mut self) -> Self {
        self.is_file = true;
        self
    }

    /// Marks the text as one for standard error.
    pub(crate) fn aside(mut self) -> Self {
        self.is_aside = true;
        self
    }

    /// Replaces the exit code.
    pub(crate) fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Creates an answer that is a JSON document of its own. It is printed with and without `--json`.
    pub(crate) fn document(text: String) -> Self {
        Self { text, document: None, is_file: false, is_aside: false, code: 0 }
    }

    pub(crate) fn print(&self, json: bool) -> ExitCode {
        let printed = match &self.document {
            Some(document) if json => print_document(document),
            Some(_) if self.is_aside => {
                complain(self.text.trim_end());
                Ok(())
            }
            Some(_) if self.is_file => print(&self.text),
            Some(_) => print(&without_commands(&self.text)),
            None => print_json(&self.text),
        };
        ended(printed, self.code)
    }
}

fn ended(printed: io::Result<()>, code: u8) -> ExitCode {
    match printed {
        Ok(()) => ExitCode::from(code),
        Err(error) => CommandFailure::file("standard output cannot be written", error).print(false),
    }
}

/// Returns true for characters to replace in names: names are untrusted, and some characters control a terminal.
fn is_unwanted(character: char) -> bool {
    is_command(character) && !matches!(character, '\n' | '\r' | '\t')
}

fn without_commands(text: &str) -> String {
    text.replace(is_unwanted, "\u{FFFD}")
}

/// Writes to standard output. A closed pipe is not an error: `head` closes it after ten lines.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn print_document(document: &Value) -> io::Result<()> {
    print_json(&serde_json::to_string_pretty(document).unwrap_or_default())
}

/// Prints JSON with a line break. Unwanted characters occur only in its strings, so they can be escaped.
fn print_json(json: &str) -> io::Result<()> {
    let mut printed = String::with_capacity(json.len() + 1);
    for character in json.trim_end().chars() {
        if is_unwanted(character) {
            printed += &format!("\\u{:04x}", u32::from(character));
        } else {
            printed.push(character);
        }
    }
    print(&(printed + "\n"))
}

/// Prints a line to standard error, which may be closed.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", without_commands(line));
}

impl CommandFailure {
    /// Prints an error with all its causes on standard error, and as a document with `--json`.
    pub(crate) fn print(&self, json: bool) -> ExitCode {
        complain(&format!("sublet: {}", self.chain()));
        if json {
            print_error(&self.what, &self.causes(), self.code);
        }
        ExitCode::from(self.code)
    }
}

/// Prints an error as a document.
fn print_error(what: &str, why: &[String], code: u8) {
    let error = json!({ "what": what, "why": why, "exit_code": code });
    // If this fails, there is nowhere left to report it.
    let _ = print_document(&json!({ "format": "sublet-error", "version": 1, "error": error }));
}

/// Prints help, the version, or an error in the arguments.
pub(crate) fn print_usage(told: &clap::Error, json: bool) -> ExitCode {
    let text = told.render().to_string();
    if !told.use_stderr() {
        return ended(print(&text), 0);
    }
    complain(text.trim_end());
    if json {
        let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        print_error(what, &[], USAGE);
    }
    ExitCode::from(USAGE)
}
