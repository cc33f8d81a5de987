//! Finds the error types and their variants in the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Types that are displayed inside errors and are no errors themselves.
const SHOWN: [&str; 2] = ["Damage", "SnapshotFault"];

/// Returns names such as `error::memory::MemoryError::HeapLimit` for variants and `device::error::DriverError` for
/// structs.
pub(crate) fn names() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    visit(&root.join("src"), "", &mut names);
    visit(&root.join("crates/report/src"), "report::", &mut names);
    visit(&root.join("crates/descriptors/src"), "descriptors::", &mut names);
    names
}

fn visit(folder: &Path, module: &str, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = format!("{module}{stem}::");
        match path.extension() {
            None if module.is_empty() && stem == "guide" => {}
            None => visit(&path, &inner, names),
            Some(extension) if extension == "rs" => {
                let module = if stem == "mod" { module } else { &inner };
                enter(&fs::read_to_string(&path).unwrap(), module, names);
            }
            Some(_) => {}
        }
    }
}

fn enter(text: &str, module: &str, names: &mut BTreeSet<String>) {
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let types = text.lines().filter_map(|line| {
        let name = match line.strip_prefix("sublet_engines::errors! { ") {
            Some(table) => table.strip_prefix("struct ").unwrap_or(table),
            None => {
                let (before, name) = line.strip_prefix("impl")?.split_once("Error for ")?;
                (before.is_empty() || before.ends_with([' ', ':'])).then_some(name)?
            }
        };
        name.split(|c| !is_name(c)).next()
    });
    for name in types.chain(SHOWN) {
        let mut variants =
            text.lines().skip_while(|line| !starts(line, &format!("pub enum {name}"))).skip(1).peekable();
        if variants.peek().is_some() {
            for variant in variants.take_while(|line| *line != "}") {
                let Some(variant) = variant
                    .strip_prefix("    ")
                    .filter(|it| it.starts_with(|c: char| c.is_ascii_uppercase()))
                else {
                    continue;
                };
                names.insert(format!("{module}{name}::{}", variant.split(|c| !is_name(c)).next().unwrap()));
            }
        } else if text.lines().any(|line| starts(line, &format!("pub struct {name}"))) {
            names.insert(format!("{module}{name}"));
        }
    }
}

/// Returns true if the line starts with the item and not with a longer name.
fn starts(line: &str, item: &str) -> bool {
    line.strip_prefix(item).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}
