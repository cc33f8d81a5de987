//! The folders of `src` are layers: each imports from those before it in the list, and from none behind it.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, the lowest first. `lib.rs` is above them.
const LAYERS: [&str; 9] =
    ["facts", "hazards", "objects", "memory", "pipelines", "commands", "execution", "driver", "gpu"];

/// The files below a folder, except those of tests, which use the public interface.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = ["tests", "tests.rs"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !is_test {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_test {
            found.push(path);
        }
    }
}

#[test]
fn imports_point_downwards() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut seen, mut wrong) = (0, Vec::new());
    for (layer, name) in LAYERS.iter().enumerate() {
        let mut found = Vec::new();
        files(&source.join(name), &mut found);
        assert!(!found.is_empty(), "{name} is no folder with files");
        for path in found {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (line, after) in
                code.flat_map(|line| line.split("crate::").skip(1).map(move |after| (line, after)))
            {
                seen += 1;
                let to = after.split(|end: char| !end.is_alphanumeric() && end != '_').next().unwrap();
                if LAYERS.iter().position(|below| *below == to).is_none_or(|to| to > layer) {
                    wrong.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(seen > 500, "only {seen} imports were found");
    assert!(wrong.is_empty(), "imports that point upwards, or past the layers:\n{}", wrong.join("\n"));
}
