//! Set-up that examples with shaders share: a compiler of WGSL.

#![allow(clippy::missing_errors_doc, reason = "only the examples and a test use this, and print errors")]

use naga::back::spv;
use naga::front::wgsl;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use sublet_examples::Result;

/// Compiles WGSL to SPIR-V.
pub fn compile(shader: &str) -> Result<Vec<u32>> {
    compile_with(shader, spv::Options::default().flags)
}

/// Same with options of the compiler.
pub fn compile_with(shader: &str, flags: spv::WriterFlags) -> Result<Vec<u32>> {
    let module = wgsl::parse_str(shader).map_err(|error| error.emit_to_string(shader))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string(shader))?;
    // Ray queries require SPIR-V 1.4.
    let lang_version = if module.special_types.ray_desc.is_some() { (1, 4) } else { (1, 0) };
    let options = spv::Options { lang_version, flags, ..Default::default() };
    Ok(spv::write_vec(&module, &info, &options, None)?)
}
