//! Tests of the C interface: the header against the library, and clients in C11 and C++17 against both.
//!
//! They need a C and a C++ compiler and the headers of Vulkan. Without these the tests print a message and pass, unless
//! `SUBLET_REQUIRE_C` is set. `cargo` builds the libraries into `target/c`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the folder for everything that these tests build.
fn workshop() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = root().join(target).join("c");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn header() -> String {
    without_comments(&fs::read_to_string(root().join("include/vk_mem_alloc.h")).unwrap())
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        rest = rest[at..].split_once("*/").unwrap().1;
    }
    code + rest
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the names of functions in a text: `vma…` or `sublet…` before a parenthesis.
fn functions_in(text: &str) -> BTreeSet<String> {
    let words = text.split('(').filter_map(|before| before.rsplit(|c| !is_word(c)).next());
    words.filter(|word| word.starts_with("vma") || word.starts_with("sublet")).map(str::to_owned).collect()
}

/// Every function of VMA 3.4.
const FUNCTIONS: &str = "vmaImportVulkanFunctionsFromVolk vmaCreateAllocator vmaDestroyAllocator vmaGetAllocatorInfo \
    vmaGetPhysicalDeviceProperties vmaGetMemoryProperties vmaGetMemoryTypeProperties vmaSetCurrentFrameIndex \
    vmaCalculateStatistics vmaGetHeapBudgets vmaFindMemoryTypeIndex vmaFindMemoryTypeIndexForBufferInfo \
    vmaFindMemoryTypeIndexForImageInfo vmaCreatePool vmaDestroyPool vmaGetPoolStatistics vmaCalculatePoolStatistics \
    vmaCheckPoolCorruption vmaGetPoolName vmaSetPoolName vmaAllocateMemory vmaAllocateMemoryPages vmaAllocateMemoryForBuffer \
    vmaAllocateMemoryForImage vmaAllocateDedicatedMemory vmaFreeMemory vmaFreeMemoryPages vmaGetAllocationInfo \
    vmaGetAllocationInfo2 vmaSetAllocationUserData vmaSetAllocationName vmaGetAllocationMemoryProperties \
    vmaGetMemoryWin32Handle vmaGetMemoryWin32Handle2 vmaMapMemory vmaUnmapMemory vmaFlushAllocation vmaInvalidateAllocation \
    vmaFlushAllocations vmaInvalidateAllocations vmaCopyMemoryToAllocation vmaCopyAllocationToMemory vmaCheckCorruption \
    vmaBeginDefragmentation vmaEndDefragmentation vmaBeginDefragmentationPass vmaEndDefragmentationPass vmaBindBufferMemory \
    vmaBindBufferMemory2 vmaBindImageMemory vmaBindImageMemory2 vmaCreateBuffer vmaCreateBufferWithAlignment \
    vmaCreateDedicatedBuffer vmaCreateImage vmaCreateDedicatedImage vmaCreateAliasingBuffer vmaCreateAliasingBuffer2 \
    vmaCreateAliasingImage vmaCreateAliasingImage2 vmaDestroyBuffer vmaDestroyImage vmaCreateVirtualBlock \
    vmaDestroyVirtualBlock vmaIsVirtualBlockEmpty vmaGetVirtualAllocationInfo vmaVirtualAllocate vmaVirtualFree \
    vmaClearVirtualBlock vmaSetVirtualAllocationUserData vmaGetVirtualBlockStatistics vmaCalculateVirtualBlockStatistics \
    vmaBuildStatsString vmaFreeStatsString vmaBuildVirtualBlockStatsString vmaFreeVirtualBlockStatsString";

/// The functions that VMA does not have.
const OWN_FUNCTIONS: [&str; 6] = [
    "subletSetLogCallback",
    "subletSetAssertions",
    "subletSetDebugSettings",
    "subletSetMaxMappedSize",
    "subletReserve",
    "subletMaintain",
];

/// The function that the header also defines if volk.h is included.
const IN_THE_HEADER: &str = "vmaImportVulkanFunctionsFromVolk";

fn all_functions() -> BTreeSet<String> {
    FUNCTIONS.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_header_declares_every_function_and_no_other() {
    let mut wanted = all_functions();
    assert_eq!(wanted.len(), 76);
    wanted.extend(OWN_FUNCTIONS.map(str::to_owned));
    assert_eq!(functions_in(&header()), wanted);
}

#[test]
fn the_library_defines_what_the_header_declares() {
    let mut defined = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates/capi/src/functions")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let name =
                line.trim_start().strip_prefix("fn ").and_then(|rest| rest.split(|c| !is_word(c)).next());
            if let Some(name) = name.filter(|name| name.starts_with("vma") || name.starts_with("sublet")) {
                assert!(defined.insert(name.to_owned()), "{name} is defined twice");
            }
        }
    }
    let mut declared = all_functions();
    declared.extend(OWN_FUNCTIONS.map(str::to_owned));
    assert_eq!(defined, declared);
}

/// Returns the members of a structure in the header, in order.
fn members(code: &str, structure: &str) -> Vec<String> {
    let after = code.split_once(&format!("typedef struct {structure} {{")).unwrap().1;
    let body = after.split_once(&format!("}} {structure};")).unwrap().0;
    let mut members = Vec::new();
    for statement in
        body.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ").split(';')
    {
        let declared = statement.split('[').next().unwrap().trim();
        if let Some(name) = declared.rsplit(|c| !is_word(c)).next().filter(|name| !name.is_empty()) {
            // A member with two types stands in two branches of the preprocessor.
            if members.last().map(String::as_str) != Some(name) && !members.contains(&name.to_owned()) {
                members.push(name.to_owned());
            }
        }
    }
    members
}

#[test]
fn structures_have_the_members_that_the_header_names() {
    let code = header();
    let mut count = 0;
    for layout in sublet_capi::layouts() {
        let mut declared = members(&code, layout.name);
        if cfg!(sublet_vma_3_3) {
            declared.retain(|name| name != "minAlignment" && name != "vkGetPhysicalDeviceProperties2KHR");
        }
        let known: Vec<&str> = layout.members.iter().map(|(name, _)| *name).collect();
        assert_eq!(declared, known, "{}", layout.name);
        count += 1;
    }
    assert_eq!(count, code.matches("typedef struct").count());
}

/// Runs a command, and prints its output if it fails.
fn run(command: &mut Command) -> Output {
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
enum Language {
    C11,
    Cpp17,
}

impl Language {
    fn compiler(self) -> Command {
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
fn can_compile() -> bool {
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

/// `.ci/c` builds and runs it as the chapter describes.
#[test]
fn the_first_program_of_the_book_compiles_as_c11() {
    let file = root().join("src/guide/buffer.c");
    if can_compile() {
        let mut compiler = Language::C11.compiler();
        compiler.arg("-pedantic").arg("-I").arg(root().join("include")).arg("-fsyntax-only").arg(&file);
        run(&mut compiler);
    }
}

/// A library for clients.
struct Library {
    file: PathBuf,
    /// The system libraries that a static library needs.
    native: Vec<String>,
}

/// Builds a library. `structures` is the value of `SUBLET_VMA_3_3`.
fn build(features: &str, structures: &str, kind: &str, file: &str) -> Library {
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
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| build("sim", "0", "staticlib", "libsublet_capi.a"))
}

/// Returns the library with the structures of VMA 3.3.
fn old_library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| build("sim", "1", "staticlib", "libsublet_capi.a"))
}

/// Compiles and links the client.
fn client(name: &str, language: Language, includes: &[&Path], flags: &[&str], library: &Library) -> PathBuf {
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

/// Runs a client on a simulated GPU, which must report no errors.
fn run_simulated(program: &Path, profile: &str, version: &str, way: &str) {
    let output = Command::new(program)
        .args(["sim", way])
        .env("SUBLET_SIM_PROFILE", profile)
        .env("SUBLET_SIM_API_VERSION", version)
        // The debug build logs wrong calls, and the client makes many of them.
        .env("SUBLET_LOG", "off")
        .output()
        .unwrap();
    let (said, reported) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.is_empty() && reported.is_empty(),
        "{} on {profile} with Vulkan {version}, {way}: {}\n{said}{reported}",
        program.display(),
        output.status
    );
}

/// Profiles that differ in heaps, coherence and granularity.
const PROFILES: [&str; 5] =
    ["lavapipe", "nvidia-rtx-5070-ti", "amd-rx-6800-windows", "arm-mali-g52", "broadcom-raspberry-pi-4"];

fn run_everywhere(program: &Path) {
    for profile in PROFILES {
        for (version, way) in [("1.4", "table"), ("1.3", "lookup"), ("1.0", "table"), ("1.1", "lookup")] {
            run_simulated(program, profile, version, way);
        }
    }
}

#[test]
fn a_client_in_c11_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-pedantic"];
        run_everywhere(&client("client-c11", Language::C11, &[], &flags, library()));
    }
}

#[test]
fn a_client_in_cpp17_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-pedantic"];
        run_everywhere(&client("client-cpp17", Language::Cpp17, &[], &flags, library()));
    }
}

#[test]
fn a_client_with_the_old_structures_runs_on_simulated_gpus() {
    if can_compile() {
        let flags = ["-DCLIENT_WITH_SIM", "-DVMA_SUBLET_3_3"];
        run_everywhere(&client("client-old", Language::C11, &[], &flags, old_library()));
    }
}

/// Runs a program that makes a mistake and has no log callback. Returns true if it continues, and its lines on standard
/// error.
fn with_mistake(which: &str, variables: &[(&str, &str)]) -> (bool, Vec<String>) {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-DCLIENT_WITH_SIM"];
    let program = PROGRAM.get_or_init(|| client("client-mistakes", Language::C11, &[], &flags, library()));
    let mut command = Command::new(program);
    command.args(["sim", "table", which]).env("SUBLET_SIM_PROFILE", "lavapipe");
    for variable in ["SUBLET_LOG", "SUBLET_ASSERT", "SUBLET_DEBUG"] {
        command.env_remove(variable);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{which} {variables:?}");
    let lines = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines)
}

/// Warnings and errors go to standard error if the environment asks for it or in a debug build, as here. Assertions
/// stop the program if they are on.
#[test]
fn what_is_wrong_is_said_on_standard_error_and_stops_who_wants_it() {
    if !can_compile() {
        return;
    }
    let (went_on, lines) = with_mistake("leak", &[]);
    assert!(went_on);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("sublet: WARN: allocation was never freed (allocation: left behind"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("sublet: ERROR: vmaDestroyAllocator: leak")
            && lines[1].ends_with("holds: allocations, count: 1)"),
        "{lines:?}"
    );
    let last = vec![lines[1].clone()];
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "error")]), (true, last.clone()));
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "off")]), (true, Vec::new()));
    // A program that stops prints the reason at any log level.
    assert_eq!(with_mistake("leak", &[("SUBLET_LOG", "off"), ("SUBLET_ASSERT", "1")]), (false, last));
    assert_eq!(with_mistake("leak", &[("SUBLET_ASSERT", "0")]), (true, lines));
}

/// A failed VMA assertion stops a program with assertions on. Otherwise it is logged as an error.
#[test]
fn wrong_usages_are_errors_and_stop_who_wants_it() {
    if !can_compile() {
        return;
    }
    let mistakes = [
        ("auto", "sublet: ERROR: vmaAllocateMemory: wrong call"),
        ("find-auto", "sublet: ERROR: vmaFindMemoryTypeIndex: wrong call"),
        ("usage", "sublet: ERROR: vmaAllocateMemory: wrong call"),
    ];
    for (which, begins) in mistakes {
        let (went_on, lines) = with_mistake(which, &[]);
        assert!(went_on && lines.len() == 1 && lines[0].starts_with(begins), "{which}: {lines:?}");
        assert_eq!(with_mistake(which, &[("SUBLET_ASSERT", "yes")]), (false, lines.clone()));
        // `subletSetAssertions` overrides the environment.
        let asserted = format!("asserted-{which}");
        assert_eq!(with_mistake(&asserted, &[("SUBLET_LOG", "off")]), (false, lines.clone()));
        assert_eq!(with_mistake(&asserted, &[("SUBLET_ASSERT", "0")]), (false, lines));
    }
    assert_eq!(with_mistake("asserted-none", &[]), (true, Vec::new()));
}

/// Damaged margins also stop the program. Errors of other targets do not.
#[test]
fn damage_stops_who_wants_it_and_errors_of_others_do_not() {
    if !can_compile() {
        return;
    }
    let damage = [
        ("damage", "sublet: ERROR: something wrote beyond the end"),
        ("checked-damage", "sublet: ERROR: vmaCheckCorruption: memory is damaged"),
    ];
    for (which, begins) in damage {
        let (went_on, lines) = with_mistake(which, &[]);
        assert!(went_on && lines.len() == 1 && lines[0].starts_with(begins), "{which}: {lines:?}");
        let asserted = [("SUBLET_ASSERT", "1"), ("SUBLET_LOG", "off")];
        assert_eq!(with_mistake(which, &asserted), (false, lines.clone()));
        // A callback that receives nothing suppresses log lines, but not the reason for a stop.
        assert_eq!(with_mistake(&format!("deaf-{which}"), &[]), (true, Vec::new()));
        assert_eq!(with_mistake(&format!("asserted-deaf-{which}"), &[]), (false, lines));
    }
    let (went_on, lines) = with_mistake("vulkan", &[("SUBLET_ASSERT", "1")]);
    assert!(went_on && lines.iter().any(|line| line.starts_with("sublet: ERROR: ")), "{lines:?}");
}

/// An unknown value of a variable is reported on standard error at any level.
#[test]
fn variables_that_are_not_understood_are_named() {
    if !can_compile() {
        return;
    }
    let strange = [
        ("SUBLET_LOG", "loud"),
        ("SUBLET_LOG", "9"),
        ("SUBLET_ASSERT", "perhaps"),
        ("SUBLET_DEBUG", "margins=64"),
        ("SUBLET_DEBUG", "fill=much"),
    ];
    for (variable, value) in strange {
        for quiet in [false, true] {
            let mut variables = vec![(variable, value)];
            if quiet && variable != "SUBLET_LOG" {
                variables.push(("SUBLET_LOG", "off"));
            }
            let (went_on, lines) = with_mistake("none", &variables);
            assert!(went_on && lines.len() == 1, "{variables:?}: {lines:?}");
            let named =
                format!("sublet: WARN: the environment variable is not understood (variable: {variable}, ");
            assert!(lines[0].starts_with(&named) && lines[0].contains(value), "{variables:?}: {lines:?}");
        }
    }
    // A value with a line break is printed as one line.
    let (_, lines) =
        with_mistake("none", &[("SUBLET_ASSERT", "a\nsublet: ERROR: forged"), ("SUBLET_LOG", "off")]);
    assert!(lines.len() == 1 && lines[0].contains("a\\nsublet"), "{lines:?}");
    // These values are valid.
    let plain = [
        ("SUBLET_LOG", "WARN"),
        ("SUBLET_LOG", "2"),
        ("SUBLET_ASSERT", "False"),
        ("SUBLET_DEBUG", " fill, "),
    ];
    for one in plain {
        assert_eq!(with_mistake("none", &[one]), (true, Vec::new()), "{one:?}");
    }
}

/// Compiles a file with these lines, with warnings as errors. Returns true on success, and the compiler's output.
fn compiled(language: Language, lines: &[String]) -> (bool, String) {
    // Tests run in parallel, so each call has its own file.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let source = workshop().join(format!("lines-{}.c", CALLS.fetch_add(1, Ordering::Relaxed)));
    fs::write(&source, lines.join("\n") + "\nint main(void) { return 0; }\n").unwrap();
    let mut compiler = language.compiler();
    let output = compiler.args(["-pedantic", "-fsyntax-only"]).arg(&source).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_header_notes_macros_that_have_no_effect() {
    if !can_compile() {
        return;
    }
    let include = format!("#include \"{}\"", root().join("include/vk_mem_alloc.h").display());
    for language in [Language::C11, Language::Cpp17] {
        assert_eq!(
            compiled(language, std::slice::from_ref(&include)),
            (true, String::new()),
            "nothing to note"
        );
        for name in
            ["VMA_IMPLEMENTATION", "VMA_DEBUG_MARGIN", "VMA_ASSERT", "VMA_DEBUG_LOG", "VMA_MIN_ALIGNMENT"]
        {
            let define = format!("#define {name} 1");
            let (taken, said) = compiled(language, &[define.clone(), include.clone()]);
            assert!(taken && said.contains(&format!("{name} has no effect")), "{said}");
            let quiet = "#define VMA_SUBLET_NO_NOTES".to_owned();
            assert_eq!(compiled(language, &[quiet, define, include.clone()]), (true, String::new()));
        }
        // VMA's usual pattern: declared at the top, and compiled in one file further down.
        let define = "#define VMA_IMPLEMENTATION".to_owned();
        let (taken, said) = compiled(language, &[include.clone(), define, include.clone()]);
        assert!(taken && said.contains("VMA_IMPLEMENTATION has no effect"), "{said}");
        let wanted =
            "#if !VMA_GET_PHYSICAL_DEVICE_PROPERTIES2 || !defined(VMA_SUBLET)\n#error \"missing\"\n#endif";
        assert_eq!(compiled(language, &[include.clone(), wanted.to_owned()]), (true, String::new()));
    }
}

/// Two headers have the same name. A program that still compiles VMA would use VMA unnoticed.
#[test]
fn the_header_stops_a_file_that_would_compile_vma() {
    let Some(folder) = header_of_vma() else {
        println!("SKIPPED: VMA's header is not here");
        return;
    };
    if !can_compile() {
        return;
    }
    let own = format!("#include \"{}\"", root().join("include/vk_mem_alloc.h").display());
    let vmas = format!("#include \"{}\"", folder.join("vk_mem_alloc.h").display());
    let define = "#define VMA_IMPLEMENTATION".to_owned();
    let (taken, said) = compiled(Language::Cpp17, &[own.clone(), define.clone(), vmas.clone()]);
    assert!(!taken && said.contains("VMA_IMPLEMENTATION compiles VMA beside Sublet"), "{said}");
    // With the macro before both, this header undefines it. VMA's header, which declares nothing any more, then
    // compiles nothing.
    let (taken, said) = compiled(Language::Cpp17, &[define.clone(), own.clone(), vmas.clone()]);
    assert!(taken && said.contains("VMA_IMPLEMENTATION has no effect"), "{said}");
    let (taken, said) = compiled(Language::Cpp17, &[define, vmas, own]);
    assert!(!taken && said.contains("the program would use VMA"), "{said}");
}

/// VMA's own header declares this function if volk.h comes before it. The library exports it.
#[test]
fn the_functions_of_volk_are_imported_with_vmas_own_header() {
    let Some(folder) = header_of_vma() else {
        println!("SKIPPED: VMA's header is not here");
        return;
    };
    if !can_compile() {
        return;
    }
    let source = workshop().join("volk-vma.c");
    let text = "#define VOLK_HEADER_VERSION 1\n#define VK_NO_PROTOTYPES\n#include <dlfcn.h>\n#include <vk_mem_alloc.h>\n\
        #include <stdio.h>\nint main(void) {\n    VmaAllocatorCreateInfo info = {0};\n    VmaVulkanFunctions functions = {0};\n\
        if (vmaImportVulkanFunctionsFromVolk(&info, &functions) != VK_ERROR_INITIALIZATION_FAILED) return 1;\n\
        void *library = dlopen(\"libvulkan.so.1\", RTLD_NOW);\n    if (library == NULL) { puts(\"no loader\"); return 0; }\n\
        PFN_vkGetInstanceProcAddr of_instance = (PFN_vkGetInstanceProcAddr)dlsym(library, \"vkGetInstanceProcAddr\");\n\
        VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};\n\
        PFN_vkCreateInstance make = (PFN_vkCreateInstance)of_instance(NULL, \"vkCreateInstance\");\n\
        if (make(&create, NULL, &info.instance) != VK_SUCCESS) { puts(\"no driver\"); return 0; }\n\
        if (vmaImportVulkanFunctionsFromVolk(&info, &functions) != VK_SUCCESS) return 2;\n\
        if (functions.vkGetInstanceProcAddr != of_instance) return 3;\n\
        void *device = (void *)of_instance(info.instance, \"vkGetDeviceProcAddr\");\n\
        return (void *)functions.vkGetDeviceProcAddr == device ? 0 : 4;\n}\n";
    fs::write(&source, text).unwrap();
    let program = workshop().join("volk-vma");
    let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=gnu11", "-w"]).arg("-I").arg(&folder).arg(&source).arg(&old_library().file);
    run(compiler.args(&old_library().native).arg("-ldl").arg("-o").arg(&program));
    let output = run(Command::new(&program).env("SUBLET_LOG", "off"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.is_empty() || env::var_os("SUBLET_REQUIRE_VULKAN").is_none(), "{said}");
}

/// `SUBLET_TRACE` names a file for each allocator. This works for a client that does not use recordings.
#[test]
fn a_client_is_recorded_where_the_environment_says_so() {
    use sublet::trace::{Event, Trace};

    if !can_compile() {
        return;
    }
    let library = build("sim,trace", "0", "staticlib", "libsublet_capi.a");
    let program = client("client-recorded", Language::C11, &[], &["-DCLIENT_WITH_SIM"], &library);
    let folder = workshop().join("recordings");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let output = Command::new(&program)
        .args(["sim", "table"])
        .env("SUBLET_SIM_PROFILE", "nvidia-rtx-5070-ti")
        .env("SUBLET_TRACE", folder.join("client.trace"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let mut largest: Option<Trace> = None;
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let trace = Trace::read(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        assert_eq!(&*trace.header.program, "client-recorded");
        files += 1;
        if largest.as_ref().is_none_or(|largest| largest.records.len() < trace.records.len()) {
            largest = Some(trace);
        }
    }
    assert!(files > 2, "{files} allocators");
    // The main test allocator: its recording has most operations.
    let trace = largest.unwrap();
    let copied = trace.records.iter().filter(|record| matches!(record.event, Event::Move { .. })).count();
    assert!(trace.unknown_events <= copied.try_into().unwrap(), "what is copied to where moves go");
    let has = |wanted: fn(&Event) -> bool| trace.records.iter().any(|record| wanted(&record.event));
    assert!(has(|event| matches!(event, Event::Allocate(made) if made.wanted.pool.is_some())));
    assert!(has(|event| matches!(event, Event::Allocate(made) if made.granted.dedicated)));
    assert!(has(|event| matches!(event, Event::AllocateFailed(_))));
    assert!(has(|event| matches!(event, Event::Map { .. })));
    assert!(has(|event| matches!(event, Event::Flush { .. })));
    assert!(has(|event| matches!(event, Event::CopyTo { .. })));
    assert!(has(|event| matches!(event, Event::SetName { .. })));
    assert!(has(|event| matches!(event, Event::DestroyPool { .. })));
    assert!(has(|event| matches!(event, Event::Move { .. })));
}

/// Returns the folder of VMA's own header, version 3.3, from a package that the benchmarks use.
fn header_of_vma() -> Option<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--offline", "--all-features"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = path.into_iter().find(|path| path.contains("vk-mem-0.5."))?;
    let folder = Path::new(manifest).parent()?.join("vendor/VulkanMemoryAllocator/include");
    folder.join("vk_mem_alloc.h").is_file().then_some(folder)
}

#[test]
fn a_client_with_vmas_own_header_runs_on_simulated_gpus() {
    let Some(folder) = header_of_vma() else {
        println!("SKIPPED: VMA's header is not here");
        return;
    };
    if can_compile() {
        // Warnings in VMA's own header are ignored.
        let flags = ["-DCLIENT_WITH_SIM", "-DCLIENT_OF_VMA_3_3", "-Wno-error"];
        run_everywhere(&client("client-vma", Language::Cpp17, &[&folder], &flags, old_library()));
    }
}

#[test]
fn clients_run_on_the_vulkan_of_this_machine() {
    if !can_compile() {
        return;
    }
    let program = client("client-vulkan", Language::C11, &[], &[], library());
    for way in ["table", "lookup", "loaded"] {
        let output = Command::new(&program).args(["vulkan", way]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.code() == Some(3) {
            assert!(env::var_os("SUBLET_REQUIRE_VULKAN").is_none(), "{said}");
            println!("SKIPPED: {said}");
            return;
        }
        assert!(output.status.success() && said.is_empty(), "{way}: {}\n{said}", output.status);
    }
}

/// The same client with the shared library.
#[test]
fn a_client_of_the_shared_library_runs() {
    if !can_compile() || !cfg!(target_os = "linux") {
        return;
    }
    let library = build("sim", "0", "cdylib", "libsublet_capi.so");
    let program = client("client-shared", Language::C11, &[], &["-DCLIENT_WITH_SIM"], &library);
    let output = Command::new(&program)
        .args(["sim", "lookup"])
        .env("LD_LIBRARY_PATH", library.file.parent().unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{}\n{said}", output.status);
}

/// Sizes and offsets match Rust's in both languages, and all functions link.
#[test]
fn layouts_and_symbols_are_those_of_the_library() {
    if !can_compile() || cfg!(sublet_vma_3_3) {
        return;
    }
    let mut text = String::from("#include <stddef.h>\n#include <vk_mem_alloc.h>\n#ifdef __cplusplus\n");
    text +=
        "#define ASSERT(c) static_assert(c, #c)\n#else\n#define ASSERT(c) _Static_assert(c, #c)\n#endif\n";
    for layout in sublet_capi::layouts() {
        text += &format!("ASSERT(sizeof({}) == {});\n", layout.name, layout.size);
        for (member, offset) in &layout.members {
            text += &format!("ASSERT(offsetof({}, {member}) == {offset});\n", layout.name);
        }
    }
    text += "typedef void (*Function)(void);\nFunction const all[] = {\n";
    for name in all_functions() {
        // These are declared only with volk.h, or only on Windows.
        if name != IN_THE_HEADER && !name.contains("Win32") {
            text += &format!("    (Function){name},\n");
        }
    }
    text += "};\nint main(void) { for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) { if (!all[i]) return 1; } return 0; }\n";
    let source = workshop().join("layouts.c");
    fs::write(&source, text).unwrap();
    for language in [Language::C11, Language::Cpp17] {
        let program = workshop().join(format!("layouts-{language:?}"));
        let mut compiler = language.compiler();
        compiler.arg("-Wno-cast-function-type").arg("-I").arg(root().join("include")).arg(&source);
        compiler.args(["-xnone"]).arg(&library().file).args(&library().native).arg("-o").arg(&program);
        run(&mut compiler);
        run(&mut Command::new(&program));
    }
}

/// The part of volk.h that the header uses.
#[test]
fn the_functions_of_volk_are_imported() {
    if !can_compile() {
        return;
    }
    let source = workshop().join("volk.c");
    let text = "#define VOLK_HEADER_VERSION 1\n#define VK_NO_PROTOTYPES\n#include <vulkan/vulkan.h>\n\
        static PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;\nstatic PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr;\n\
        #include <vk_mem_alloc.h>\n\
        static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_instance(VkInstance i, const char *n) { (void)i; (void)n; return NULL; }\n\
        static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice d, const char *n) { (void)d; (void)n; return NULL; }\n\
        int main(void) {\n    VmaAllocatorCreateInfo info;\n    VmaVulkanFunctions functions;\n\
        vkGetInstanceProcAddr = of_instance;\n    vkGetDeviceProcAddr = of_device;\n    info.flags = 0;\n\
        if (vmaImportVulkanFunctionsFromVolk(&info, &functions) != VK_SUCCESS) return 1;\n\
        return functions.vkGetInstanceProcAddr == of_instance && functions.vkGetDeviceProcAddr == of_device\n\
            && functions.vkAllocateMemory == NULL ? 0 : 2;\n}\n";
    fs::write(&source, text).unwrap();
    for language in [Language::C11, Language::Cpp17] {
        let program = workshop().join(format!("volk-{language:?}"));
        let mut compiler = language.compiler();
        run(compiler.arg("-I").arg(root().join("include")).arg(&source).arg("-o").arg(&program));
        run(&mut Command::new(&program));
    }
}
