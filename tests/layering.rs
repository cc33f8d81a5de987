//! Rules that the compiler does not check: the layers of `src/`, the files that ARCHITECTURE.md names, and the lengths
//! of files.
//!
//! The tests search each line, outside comments, for paths that start with `crate::` or `super::`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

/// The page with the table of layers.
const PAGE: &str = "ARCHITECTURE.md";

/// Modules that must not name Vulkan.
const WITHOUT_VULKAN: &[&str] = &["base", "engine", "retire", "vector", "virtual_block"];

/// The maximum number of lines of code in a file. Comments, blank lines and a module of tests do not count.
const MAX_LINES: usize = 750;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The Rust files of a folder: their relative paths, with slashes, and their text. Empty if the folder does not exist,
/// because the published package does not contain the other packages.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(ROOT).join(folder);
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    files
}

/// The part of a line before its comment, or before `//` in a string.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap()
}

/// For each path in `code` that begins with `start`: the text after `start`.
fn paths<'a>(code: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.match_indices(start)
        .filter(move |(at, _)| !code[..*at].ends_with(inside))
        .map(move |(at, _)| &code[at + start.len()..])
}

fn first_name(path: &str) -> &str {
    path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()
}

fn room(path: &str) -> &str {
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The rows of the table of layers, the highest first. Modules that a comma separates may import from each other.
/// Modules that a bar separates may not.
struct Layers<'a>(Vec<(Vec<&'a str>, bool)>);

impl<'a> Layers<'a> {
    fn new(page: &'a str) -> Self {
        let section = page.split("\n# Layers of `sublet`\n").nth(1).expect("there is a section of layers");
        let table = section.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let row = |line: &'a str| {
            let names = line.split("  ").next().unwrap();
            (names.split([',', '|']).map(str::trim).collect(), names.contains(','))
        };
        Self(table.lines().map(row).collect())
    }

    fn row(&self, module: &str) -> Option<usize> {
        self.0.iter().position(|(modules, _)| modules.contains(&module))
    }

    /// The reason why a file may not import a module of the root; `None` if it may.
    fn fault(&self, path: &str, module: &str) -> Option<String> {
        let own = room(path);
        let (Some(from), Some(to)) = (self.row(own), self.row(module)) else {
            return Some(format!("src/{path} imports `{module}`: name one module of {PAGE} in each `use`"));
        };
        let allowed = own == module || to > from || (to == from && self.0[from].1);
        (!allowed).then(|| format!("src/{path} imports `{module}`, which is not below `{own}`"))
    }

    /// The faults of one line.
    fn faults(&self, path: &str, line: &str) -> Vec<String> {
        let code = code(line);
        let mut modules: Vec<&str> = paths(code, "crate::").map(first_name).collect();
        // From a file, `depth` times `super` leads to the root. From a module inside the file, one more is needed; with
        // `depth` of them, the path names an item of the file, which is not a layer.
        let depth = path.trim_end_matches("/mod.rs").split('/').count();
        for rest in paths(code, "super::") {
            let path = rest.trim_start_matches("super::");
            let ups = 1 + (rest.len() - path.len()) / "super::".len();
            modules.extend(Some(first_name(path)).filter(|name| ups >= depth && self.row(name).is_some()));
        }
        modules.into_iter().filter_map(|module| self.fault(path, module)).collect()
    }
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn imports_point_downwards() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let layers = Layers::new(&page);
    let files = sources("src");
    assert!(files.len() > 100, "only {} files", files.len());
    let mut faults = Vec::new();
    for (path, text) in &files {
        if path == "lib.rs" {
            let modules = text.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
            let missing = modules.filter(|(_, module)| layers.row(module).is_none());
            faults.extend(missing.map(|(_, module)| format!("{PAGE} has no layer for {module}")));
        } else {
            faults.extend(text.lines().flat_map(|line| layers.faults(path, line)));
        }
    }
    report(&faults);
}

#[test]
fn some_modules_name_no_vulkan() {
    for (path, text) in sources("src").iter().filter(|(path, _)| WITHOUT_VULKAN.contains(&room(path))) {
        for line in text.lines().map(code) {
            let mut starts = ["ash::", "vk::"].iter();
            assert!(starts.all(|start| paths(line, start).next().is_none()), "src/{path}: {line}");
        }
    }
}

/// Only packages that replace the interface of another library use `private`. Unit tests may write recordings with it.
#[test]
fn other_packages_use_the_public_interface() {
    for folder in ["crates/cli/src", "crates/descriptors/src", "crates/frame/src", "crates/report/src"] {
        for (path, text) in sources(folder).iter().filter(|(path, _)| !path.ends_with("tests.rs")) {
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            assert!(!text.contains("sublet::private"), "{folder}/{path} names private items");
        }
    }
}

/// Every file that the page names exists.
#[test]
fn the_page_names_what_exists() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| text.contains('/') && !text.contains(char::is_whitespace));
    let faults: Vec<String> = paths
        .filter(|path| !Path::new(ROOT).join(path).exists())
        .map(|path| format!("{PAGE} names {path}"))
        .collect();
    report(&faults);
}

/// Returns true if a line declares a module in another file.
fn declares_module(line: &str) -> bool {
    let Some((before, name)) = line.trim().strip_suffix(';').and_then(|line| line.split_once("mod ")) else {
        return false;
    };
    (before.is_empty() || before.starts_with("pub")) && first_name(name) == name
}

/// Returns true if a file expects or allows `unsafe` code, and so do its child modules.
fn opens_its_children(text: &str) -> bool {
    let mut attributes = text.split("\n#![").skip(1).map(|rest| rest.split(")]").next().unwrap());
    let opens = ["expect", "allow"];
    attributes.any(|it| it.contains("unsafe_code") && opens.iter().any(|word| it.starts_with(word)))
        && text.lines().map(code).any(declares_module)
}

#[test]
fn unsafe_code_is_in_files_without_children() {
    let mut faults = Vec::new();
    for folder in ["src", "tests", "crates", "compat", "benches", "examples", "fuzz"] {
        let files = sources(folder);
        let open = files.iter().filter(|(_, text)| opens_its_children(text));
        faults.extend(open.map(|(path, _)| format!("{folder}/{path} expects unsafe code for its children")));
    }
    report(&faults);
}

#[test]
fn a_file_that_opens_its_children_is_found() {
    let open = "//! Doc.\n#![expect(\n    unsafe_code,\n    reason = \"calls Vulkan\"\n)]\n";
    for child in ["mod a;", "pub mod b_2;", "    pub(crate) mod c; // why"] {
        assert!(opens_its_children(&format!("{open}{child}\n")), "{child}");
        assert!(!opens_its_children(&format!("//! Doc.\n#![deny(unsafe_code)]\n{child}\n")));
    }
    for other in ["mod tests {", "use a::mod_b;", "// mod a;", "let text = \"mod a\";"] {
        assert!(!opens_its_children(&format!("{open}{other}\n")), "{other}");
    }
}

#[test]
fn no_file_is_too_long() {
    for folder in ["src", "crates", "compat", "benches", "examples", "fuzz"] {
        for (path, text) in sources(folder) {
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = text.lines().filter(|line| !code(line).trim().is_empty()).count();
            assert!(lines <= MAX_LINES, "{folder}/{path} has {lines} lines of code");
        }
    }
}

#[test]
fn wrong_imports_are_found() {
    let page = "\n# Layers of `sublet`\n```text\nguide   a book\npool, error   words\ndevice | retire   b\nbase  c\n```";
    let layers = Layers::new(page);
    let faults = |path, line| layers.faults(path, line).len();
    for line in
        ["use crate::device::Device;", "x(crate::error::Error)", "use super::growth;", "// crate::guide"]
    {
        assert_eq!(faults("pool/mod.rs", line), 0, "{line}");
    }
    assert_eq!(faults("pool/growth.rs", "use super::guide;"), 0, "an item of `pool`");
    for (path, line) in [
        ("device/mod.rs", "    pub(crate) use crate::error::{A, B};"),
        ("device/mod.rs", "fn f() -> crate::retire::Point {"),
        ("device/mod.rs", "use super::guide;"),
        ("device.rs", "use super::retire::Point;"),
        ("base/sync/lock.rs", "use super::super::super::error::Error;"),
        ("pool/mod.rs", "use crate::Allocator;"),
        ("pool/mod.rs", "use crate::{base, device};"),
    ] {
        assert_eq!(faults(path, line), 1, "{path}: {line}");
    }
}
