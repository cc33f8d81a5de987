//! Reads the source: the lists, and the functions that answer an allocation.
//!
//! A function **answers an allocation** if its name starts with `allocate` or `try_allocate`, or if its result, without
//! the error, holds an allocation or a part of one: see [`ANSWERS`]. It is **on the path** if a public call of
//! `Allocator` reaches it through such functions. Calls are found by name alone, so a few functions count that are not
//! called. Tests, defragmentation and engines that no memory uses do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The folders and files with the path.
const FOLDERS: &[&str] = &["src/allocator", "src/blocks", "src/engine.rs", "crates/engines/src"];
/// Parts of them that are not on it.
const EXCLUDED: &[&str] = &["/tests", "/modelled/", "/defragment/", "/recording/", "/counted/"];

/// Parts of a result that make a function count: of the allocator, of a visitor of placements, of a vector, and of an
/// engine. A fallible result with a block counts as well.
const ANSWERS: &[&str] = &["Allocation", "W::Answer", "Grant", "(Key,", "Option<Key>"];

/// The most functions on the path, and the most lines of one of them.
const MOST_FUNCTIONS: usize = 60;
const MOST_LINES: usize = 60;

/// The file with the lists.
const LISTS: &str = "src/allocator/route.rs";

struct Function {
    file: String,
    line: usize,
    name: String,
    /// The text before `fn`.
    qualifiers: String,
    /// From the name to the body.
    signature: String,
    body: String,
    /// Lines that are not blank and no comment.
    lines: usize,
}

impl Function {
    /// The result type without the error; empty if there is none.
    fn result(&self) -> &str {
        let mut depth = 0;
        let arrow = self.signature.char_indices().find(|&(at, character)| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0 && self.signature[at..].starts_with("->")
        });
        let Some((at, _)) = arrow else { return "" };
        let result = self.signature[at + 2..].trim();
        let Some(inner) = result.strip_prefix("Result<") else { return result };
        let mut depth = 0;
        let end = inner.char_indices().find(|&(_, character)| {
            match character {
                '<' | '(' => depth += 1,
                '>' | ')' => depth -= 1,
                _ => {}
            }
            depth == 0 && character == ','
        });
        end.map_or(inner, |(at, _)| &inner[..at])
    }

    fn answers(&self) -> bool {
        let is_named = ["allocate", "try_allocate"].iter().any(|word| self.name.starts_with(word));
        let result = self.result();
        let is_part = ANSWERS.iter().any(|part| words(result, part)) && !result.contains("impl Iterator");
        let is_stored = self.signature.contains("&mut Option<Allocation>");
        is_named || is_part || is_stored || self.signature.contains("Result<DeviceBlock,")
    }

    fn calls(&self, name: &str) -> bool {
        self.body.match_indices(name).any(|(at, _)| {
            let before = self.body[..at].chars().next_back();
            let after = &self.body[at + name.len()..];
            !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
                && (after.starts_with('(') || after.starts_with("::<"))
        })
    }
}

/// Returns true if `text` contains `part` as a whole word.
fn words(text: &str, part: &str) -> bool {
    let is_inside = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(part).any(|(at, _)| {
        let whole_end =
            !part.ends_with(char::is_alphanumeric) || !is_inside(text[at + part.len()..].chars().next());
        whole_end && !is_inside(text[..at].chars().next_back())
    })
}

/// The code of a file: no comments, no text in strings, no module of tests.
fn code(path: &str) -> String {
    let text = fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|_| panic!("{path}"));
    let text = text.split("\nmod tests {").next().unwrap();
    let line = |line: &str| {
        let mut parts = line.split('"');
        let mut code = parts.next().unwrap().to_owned();
        // Text between quotes, so that its braces do not count.
        for (at, part) in parts.enumerate() {
            code.push_str(if at % 2 == 0 { "\"\"" } else { part });
        }
        code.split("//").next().unwrap().trim_end().to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

/// The functions with a body in a file.
fn functions(path: &str) -> Vec<Function> {
    let code = code(path);
    let starts =
        code.match_indices("fn ").filter(|&(at, _)| at == 0 || code[..at].ends_with([' ', '(', '\n']));
    starts.filter_map(|(at, _)| function(path, &code, at)).collect()
}

/// The function whose `fn` is at `at`; `None` if it has no body.
fn function(path: &str, code: &str, at: usize) -> Option<Function> {
    let rest = &code[at + 3..];
    let name: String = rest.chars().take_while(|&it| it.is_alphanumeric() || it == '_').collect();
    let mut depth = 0;
    let end = rest.char_indices().find(|&(_, character)| {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && matches!(character, '{' | ';')
    });
    let (open, _) = end.filter(|&(_, character)| character == '{' && !name.is_empty())?;
    let mut depth = 0;
    let close = rest[open..].char_indices().find(|&(_, character)| {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let close = open + close?.0 + 1;
    let start = code[..at].rfind('\n').map_or(0, |at| at + 1);
    let whole = &code[start..at + 3 + close];
    Some(Function {
        file: path.to_owned(),
        line: code[..start].matches('\n').count() + 1,
        name,
        qualifiers: code[start..at].trim().to_owned(),
        signature: rest[..open].to_owned(),
        body: rest[open..close].to_owned(),
        lines: whole.lines().filter(|line| !line.trim().is_empty()).count(),
    })
}

/// The Rust files in a folder, or the file itself.
fn files(path: &str) -> Vec<String> {
    let full = Path::new(ROOT).join(path);
    if full.is_file() {
        return vec![path.to_owned()];
    }
    let names = fs::read_dir(full).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    let is_source = |path: &String| Path::new(ROOT).join(path).is_dir() || path.ends_with(".rs");
    let paths = names.into_iter().map(|name| format!("{path}/{name}")).filter(is_source);
    paths
        .filter(|path| !EXCLUDED.iter().any(|part| format!("{path}/").contains(part) || path.contains(part)))
        .flat_map(|path| files(&path))
        .collect()
}

#[test]
fn the_path_is_short() {
    let all = FOLDERS.iter().flat_map(|folder| files(folder)).flat_map(|file| functions(&file));
    let all: Vec<Function> = all.filter(Function::answers).collect();
    let is_public = |function: &&Function| {
        let result = function.result();
        function.file.starts_with("src/allocator/")
            && ["pub", "pub unsafe"].contains(&&*function.qualifiers)
            && words(result, "Allocation")
    };
    let mut todo: Vec<&Function> = all.iter().filter(is_public).collect();
    assert!(todo.len() >= 10, "only {} public calls allocate", todo.len());
    let mut path = BTreeMap::new();
    while let Some(function) = todo.pop() {
        if path.insert((&function.file, function.line), function).is_none() {
            todo.extend(all.iter().filter(|called| function.calls(&called.name)));
        }
    }
    for Function { file, line, name, lines, .. } in path.values() {
        println!("{lines:4} {file}:{line}: {name}");
    }
    println!("{} functions answer an allocation", path.len());
    assert!(path.len() <= MOST_FUNCTIONS, "{} functions are on the path of an allocation", path.len());
    for Function { file, name, lines, .. } in path.values() {
        assert!(*lines <= MOST_LINES, "{file}: {name} has {lines} lines");
    }
}

/// The steps of a list: file and function.
fn steps(title: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(Path::new(ROOT).join(LISTS)).unwrap();
    let docs: String = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    let section =
        docs.split(&format!("\n# {title}\n")).nth(1).unwrap_or_else(|| panic!("{LISTS} has no {title}"));
    let lines = section.split("\n# ").next().unwrap().lines();
    let mut steps = Vec::new();
    for line in lines.filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        assert!(line.starts_with(&format!("{}. `", steps.len() + 1)), "the number of {line}");
        let mut parts = line.split('`').skip(1);
        let (file, between, name) = (parts.next(), parts.next(), parts.next());
        assert_eq!(between, Some(", "), "{line}");
        steps.push((file.unwrap().to_owned(), name.unwrap().to_owned()));
    }
    steps
}

/// Each step exists in its file, and calls the next one.
#[test]
fn each_step_calls_the_next() {
    for (title, first, least) in [
        ("One allocation", "create_buffer", 8),
        ("One growth", "allocate_slow", 9),
        ("One free", "free_memory", 5),
    ] {
        let steps = steps(title);
        assert!(steps.len() >= least && steps[0].1 == first, "{title}: {steps:?}");
        for (at, (file, name)) in steps.iter().enumerate() {
            let here: Vec<Function> =
                functions(file).into_iter().filter(|function| function.name == *name).collect();
            assert!(!here.is_empty(), "{title}: {file} has no function {name}");
            if let Some((_, next)) = steps.get(at + 1) {
                let calls = here.iter().any(|function| function.calls(next));
                assert!(calls, "{title}: {name} in {file} does not call {next}");
            }
        }
    }
}
