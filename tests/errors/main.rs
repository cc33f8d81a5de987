//! Every public error states in one line the request, the available amount and the driver's answer. Its sources repeat
//! nothing of that line.
#![allow(clippy::unwrap_used, reason = "a test")]

mod descriptors;
mod device;
mod memory;
mod reading;
mod source;
mod uploads;
mod vectors;

use std::any::type_name;
use std::collections::BTreeSet;
use std::error::Error;

use ash::vk;
use sublet::device::DriverError;

/// One variant of one error type, and its messages.
struct RenderedError {
    /// The type's path without the crate and without generic arguments.
    path: String,
    /// The variant, or an empty string for a struct.
    debug: String,
    /// The error's own line, followed by those of its sources.
    lines: Vec<String>,
    /// The last line is that of a `vk::Result`.
    ends_in_result: bool,
    /// The substrings that the first line must contain.
    parts: Vec<String>,
}

/// An error whose first line must contain each of its numbers, names and results.
fn rendered<E: Error + 'static>(error: E) -> RenderedError {
    let debug = format!("{error:?}");
    let parts = parts_of(&debug);
    RenderedError { parts, ..saying(error, &[]) }
}

fn each<E: Error + 'static, const N: usize>(errors: [E; N]) -> [RenderedError; N] {
    errors.map(rendered)
}

/// Errors whose first lines express their contents in other words.
fn unnumbered<E: Error, const N: usize>(errors: [E; N]) -> [RenderedError; N] {
    errors.map(|error| saying(error, &[]))
}

/// An error whose first line expresses its contents in these words.
fn saying<E: Error>(error: E, parts: &[&str]) -> RenderedError {
    let (mut lines, mut ends_in_result) = (vec![error.to_string()], false);
    let mut source = error.source();
    while let Some(cause) = source {
        lines.push(cause.to_string());
        ends_in_result = cause.is::<vk::Result>();
        source = cause.source();
    }
    let path = type_name::<E>()
        .split('<')
        .next()
        .unwrap()
        .trim_start_matches('&')
        .trim_start_matches("sublet::")
        .replace("sublet_report::", "report::")
        .replace("sublet_descriptors::", "descriptors::");
    let parts = parts.iter().map(|&part| part.to_owned()).collect();
    RenderedError { path, debug: format!("{error:?}"), lines, ends_in_result, parts }
}

/// Returns the numbers, strings and Vulkan results in the `Debug` output.
fn parts_of(debug: &str) -> Vec<String> {
    let texts = debug.split('"').skip(1).step_by(2);
    let outside: String = debug.split('"').step_by(2).collect();
    let words = outside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let rendered = words.filter(|word| word.starts_with("ERROR_") || word.parse::<u64>().is_ok());
    texts.chain(rendered).map(str::to_owned).collect()
}

/// Returns true if the line contains the part. A number may have any of the usual forms.
fn has(line: &str, part: &str) -> bool {
    let number = part.parse::<u64>().is_ok_and(|number| {
        [format!("{number:#b}"), format!("{number:#x}"), format!("{number:#010x}")]
            .iter()
            .any(|form| line.contains(form))
    });
    number || line.contains(part)
}

impl RenderedError {
    /// Returns for example `error::memory::MemoryError::HeapLimit`.
    fn name(&self) -> String {
        let variant = self.debug.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
        match self.path.ends_with(&format!("::{variant}")) {
            true => self.path.clone(),
            false => format!("{}::{variant}", self.path),
        }
    }
}

fn all() -> Vec<RenderedError> {
    [memory::all(), uploads::all(), descriptors::all(), device::all(), reading::all(), vectors::all()]
        .into_iter()
        .flatten()
        .collect()
}

const DRIVER: DriverError =
    DriverError { call: "vkBindBufferMemory", result: vk::Result::ERROR_OUT_OF_DEVICE_MEMORY };

#[test]
fn the_first_line_says_it_all() {
    let mut faults = Vec::new();
    for rendered in all() {
        let line = &rendered.lines[0];
        if line.len() < 12 || !line.contains(' ') {
            faults.push(format!("{} says nothing: {line:?}", rendered.name()));
        }
        let missing = rendered.parts.iter().filter(|part| !has(line, part));
        faults.extend(missing.map(|part| format!("{} does not say {part}: {line:?}", rendered.name())));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_line_is_one_that_others_can_go_around() {
    for rendered in all() {
        let line = &rendered.lines[0];
        assert!(
            !line.contains('\n') && !line.ends_with('.') && line.trim() == line,
            "{}: {line:?}",
            rendered.name()
        );
    }
}

/// A program that prints the source chain must not print a text twice. So the only source is the driver's result, which
/// programs may search for.
#[test]
fn sources_say_nothing_twice() {
    for rendered in all() {
        let lines = &rendered.lines;
        for (at, line) in lines.iter().enumerate().skip(1) {
            assert!(
                !lines[..at].iter().any(|before| before.contains(line)),
                "{}: {lines:?}",
                rendered.name()
            );
        }
        let most = 1 + usize::from(rendered.ends_in_result);
        assert!(lines.len() == most, "{}: {lines:?}", rendered.name());
    }
}

#[test]
fn no_variant_is_missing() {
    let rendered: BTreeSet<String> = all().iter().map(RenderedError::name).collect();
    let missing: Vec<String> = source::names().into_iter().filter(|name| !rendered.contains(name)).collect();
    assert!(missing.is_empty(), "no error of the list is one of these: {missing:#?}");
}

/// Guards against a search that misses types.
#[test]
fn the_list_of_the_source_is_not_short() {
    let names = source::names();
    for known in [
        "device::error::DriverError",
        "error::memory::MemoryError::HeapLimit",
        "allocator::defragment::errors::FreeMoveError",
        "report::snapshot::error::SnapshotFault::TooLarge",
    ] {
        assert!(names.contains(known), "{known} is not among {names:#?}");
    }
    assert!(names.len() > 150, "{}", names.len());
}
