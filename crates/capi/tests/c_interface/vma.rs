//! Programs with VMA's own header, and with volk.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::run_everywhere;
use crate::header::compiled;
use crate::{Language, can_compile, client, old_library, root, run, workshop};

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
