//! Tests of the C interface: the header against the library, and clients in C11 and C++17 against both.
//!
//! They need a C and a C++ compiler and the headers of Vulkan. Without these the tests print a message and pass, unless
//! `SUBLET_REQUIRE_C` is set. `cargo` builds the libraries into `target/c`.
#![allow(clippy::unwrap_used, reason = "a test")]

mod clients;
mod header;
mod mistakes;
mod vma;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the folder for everything that these tests build.
pub(crate) fn workshop() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = root().join(target).join("c");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command, and prints its output if it fails.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The language of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C11,
    Cpp17,
}

impl Language {
    pub(crate) fn compiler(self) -> Command {
        let (variable, usual, arguments) = match self {
            Self::C11 => ("CC", "cc", ["-std=c11", "-xc"]),
            Self::Cpp17 => ("CXX", "c++", ["-std=c++17", "-xc++"]),
        };
        let mut command = Command::new(env::var_os(variable).unwrap_or_else(|| usual.into()));
        command.args(arguments).args(["-Wall", "-Wextra", "-Werror", "-g", "-fno-omit-frame-pointer"]);
        if self == Self::C11 {
            command.args(["-Wstrict-prototypes", "-Wmissing-prototypes", "-D_GNU_SOURCE"]);
        }
        command
    }
}

/// Returns true if compilers and headers exist. Prints what is missing.
pub(crate) fn can_compile() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let probe = workshop().join("probe.c");
        fs::write(&probe, "#include <vulkan/vulkan.h>\nint probe;\n").unwrap();
        for language in [Language::C11, Language::Cpp17] {
            let tried = language.compiler().args(["-fsyntax-only"]).arg(&probe).output();
            let fault = match tried {
                Ok(output) if output.status.success() => continue,
                Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
                Err(error) => error.to_string(),
            };
            assert!(env::var_os("SUBLET_REQUIRE_C").is_none(), "{language:?}: {fault}");
            println!("SKIPPED: {language:?} with the headers of Vulkan cannot be compiled here: {fault}");
            return false;
        }
        true
    })
}

/// A library for clients.
pub(crate) struct Library {
    pub(crate) file: PathBuf,
    /// The system libraries that a static library needs.
    pub(crate) native: Vec<String>,
}

/// Builds a library. `structures` is the value of `SUBLET_VMA_3_3`.
pub(crate) fn build(features: &str, structures: &str, kind: &str, file: &str) -> Library {
    let folder = workshop().join(format!("{}-{structures}", features.replace(',', "-")));
    let output = run(Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["rustc", "--package", "sublet-capi", "--lib", "--offline", "--features", features])
        .args(["--crate-type", kind])
        .arg("--target-dir")
        .arg(&folder)
        .args(["--", "--print", "native-static-libs"])
        .env("SUBLET_VMA_3_3", structures)
        // A sanitizer's flags for the test do not apply to the library.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"));
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let native = notes.lines().find_map(|line| line.split_once("native-static-libs: ").map(|(_, list)| list));
    let native = native.unwrap_or("-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc");
    Library {
        file: folder.join("debug").join(file),
        native: native.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Returns the library with a simulated GPU.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| build("sim", "0", "staticlib", "libsublet_capi.a"))
}

/// Returns the library with the structures of VMA 3.3.
pub(crate) fn old_library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| build("sim", "1", "staticlib", "libsublet_capi.a"))
}

/// Compiles and links the client.
pub(crate) fn client(
    name: &str,
    language: Language,
    includes: &[&Path],
    flags: &[&str],
    library: &Library,
) -> PathBuf {
    let program = workshop().join(name);
    let mut sources: Vec<PathBuf> = fs::read_dir(root().join("crates/capi/tests/c"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    assert!(sources.len() >= 10);
    let mut compiler = language.compiler();
    for include in includes {
        compiler.arg("-I").arg(include);
    }
    compiler.arg("-I").arg(root().join("include")).args(flags).args(&sources);
    compiler.args(["-xnone"]).arg(&library.file).args(&library.native).arg("-ldl").arg("-o").arg(&program);
    run(&mut compiler);
    program
}
