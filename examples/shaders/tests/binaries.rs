//! The SPIR-V that other packages include is compiled from the WGSL beside it. They include it so that their tests build
//! without a compiler of shaders.
//!
//! `SUBLET_BLESS=1 cargo test -p sublet-shader-examples` writes the files again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use naga::back::spv::WriterFlags;
use sublet_shader_examples::compile_with;

/// Files below the root of the repository, without their extensions.
const SHADERS: [&str; 13] = [
    "crates/frame/src/list/downsample",
    "crates/frame/tests/frames/paint",
    "crates/frame/tests/layer/add",
    "crates/frame/tests/layer/shaders",
    "crates/frame/tests/layer/texels",
    "crates/sim/tests/hazards/painter",
    "tests/vulkan/descriptors/add",
    "tests/vulkan/descriptors/add_from_heap",
    "tests/vulkan/descriptors/add_in_heap",
    "tests/vulkan/descriptors/draw",
    "tests/vulkan/descriptors/look",
    "tests/vulkan/descriptors/rays",
    "tests/vulkan/descriptors/texels",
];

#[test]
fn binaries_match_their_sources() {
    for shader in SHADERS {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(shader);
        let source = fs::read_to_string(path.with_extension("wgsl")).unwrap();
        // Without the names that only a debug build writes.
        let words = compile_with(&source, WriterFlags::empty()).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let binary = path.with_extension("spv");
        if std::env::var_os("SUBLET_BLESS").is_some() {
            fs::write(&binary, &bytes).unwrap();
        }
        assert!(fs::read(&binary).unwrap() == bytes, "{shader}.spv is not what {shader}.wgsl becomes");
    }
}
