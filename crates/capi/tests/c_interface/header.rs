//! The header against the library: functions, structures, and the macros of VMA.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Language, can_compile, library, root, run, workshop};

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

/// Compiles a file with these lines, with warnings as errors. Returns true on success, and the compiler's output.
pub(crate) fn compiled(language: Language, lines: &[String]) -> (bool, String) {
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
