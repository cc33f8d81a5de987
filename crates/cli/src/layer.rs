//! `sublet layer`: finds the Vulkan layer that records programs, and describes it to the Vulkan loader.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::json;

use crate::answer::Answer;
use crate::arguments::LayerArguments;
use crate::failure::CommandFailure;

/// The name by which programs enable the layer.
pub(crate) const LAYER_NAME: &str = "VK_LAYER_SUBLET_memory";
/// The description that the Vulkan loader reads.
const MANIFEST: &str = "sublet_layer.json";
/// Names the shared object, or its folder.
const VARIABLE: &str = "SUBLET_LAYER_PATH";

/// The layer's file and the folder of its description.
pub(crate) struct FoundLayer {
    library: PathBuf,
    /// The folder for `VK_ADD_LAYER_PATH`.
    pub(crate) folder: PathBuf,
    is_temporary: bool,
}

impl Drop for FoundLayer {
    /// Removes the description if it is in a temporary folder.
    fn drop(&mut self) {
        if self.is_temporary {
            // Another program may have cleaned the folder.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

pub(crate) fn run(arguments: &LayerArguments) -> Result<Answer, CommandFailure> {
    let mut layer = find()?;
    // The user runs programs with it.
    layer.is_temporary = false;
    let folder = layer.folder.display();
    let text = if arguments.only_folder {
        format!("{folder}\n")
    } else {
        format!(
            "layer    {LAYER_NAME}\nlibrary  {}\nfolder   {folder}\n\nTo load it without `sublet watch`:\n  \
             VK_ADD_LAYER_PATH={folder} VK_INSTANCE_LAYERS={LAYER_NAME} SUBLET_WATCH=watched.trace PROGRAM\n",
            layer.library.display()
        )
    };
    let content = json!({ "name": LAYER_NAME, "library": layer.library, "folder": layer.folder });
    Ok(Answer::new("sublet-layer", 1, text, &content))
}

/// Finds the layer, and writes its description unless it is installed with one.
pub(crate) fn find() -> Result<FoundLayer, CommandFailure> {
    let named = variable(VARIABLE).map(PathBuf::from);
    let library = match library(named.as_deref(), env::current_exe()) {
        Ok(library) => library,
        Err(missing) if named.is_some() => return Err(missing),
        Err(missing) => return installed().ok_or(missing),
    };
    let (folder, is_temporary) = describe(&library)
        .map_err(|error| CommandFailure::file(format!("{MANIFEST} cannot be written"), error))?;
    Ok(FoundLayer { library, folder, is_temporary })
}

/// Returns a variable of the environment. `None` for one without a value.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The name of the shared object on this system.
fn library_name() -> OsString {
    format!("{}sublet_layer{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX).into()
}

/// Returns the path of the shared object: the named one, or that in the named folder or beside this command, whose path
/// is unknown on a Linux without `/proc`.
fn library(named: Option<&Path>, command: io::Result<PathBuf>) -> Result<PathBuf, CommandFailure> {
    let name = library_name();
    let place = match named {
        Some(folder) if folder.is_dir() => Ok(folder.join(&name)),
        Some(file) => Ok(file.to_owned()),
        None => command.map(|command| command.with_file_name(&name)),
    };
    let missing = |place: PathBuf| io::Error::new(io::ErrorKind::NotFound, place.display().to_string());
    let found = place.and_then(|place| match place.canonicalize() {
        Ok(library) if library.is_file() => Ok(library),
        _ => Err(missing(place)),
    });
    found.map_err(|missing| {
        CommandFailure::file("the Vulkan layer is not there", missing).hint(format!(
            "`cargo build --release -p sublet-layer` builds {}; put it beside `sublet`, set {VARIABLE}, or run packaging/install",
            Path::new(&name).display()
        ))
    })
}

/// Returns the layer of the first description in the data folders of this command and of the system, where
/// `packaging/install` puts it.
fn installed() -> Option<FoundLayer> {
    let own = env::current_exe().ok().and_then(|path| Some(path.parent()?.join("../share")));
    let of_user = variable("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let of_user = variable("XDG_DATA_HOME").map(PathBuf::from).or(of_user);
    let of_system = variable("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let all = own.into_iter().chain(of_user).chain(env::split_paths(&of_system));
    // A relative one, which the standard of these variables forbids, would be below any folder in which the user works.
    let all = all.filter(|data| data.is_absolute());
    all.map(|data| data.join("vulkan/explicit_layer.d")).find_map(|folder| {
        let text = fs::read_to_string(folder.join(MANIFEST)).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
        // Relative to the description.
        let library = folder.join(manifest["layer"]["library_path"].as_str()?).canonicalize().ok()?;
        Some(FoundLayer { library, folder: folder.canonicalize().ok()?, is_temporary: false })
    })
}

/// Writes the description beside the shared object, or into a new temporary folder. Returns the folder, and true if it is
/// temporary.
fn describe(library: &Path) -> io::Result<(PathBuf, bool)> {
    let manifest = json!({
        "file_format_version": "1.2.0",
        "layer": {
            "name": LAYER_NAME,
            "type": "GLOBAL",
            "library_path": library,
            "api_version": "1.3.281",
            "implementation_version": "1",
            "description": "Records what a program does with device memory",
        },
    });
    let text = serde_json::to_string_pretty(&manifest)?;
    let beside = library.parent().unwrap_or(Path::new("."));
    let path = beside.join(MANIFEST);
    if fs::read_to_string(&path).is_ok_and(|there| there == text) || crate::files::write(&path, &text).is_ok()
    {
        return Ok((beside.to_path_buf(), false));
    }
    // The folder must be new: in one that exists, another user might have put a layer.
    let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let folder = env::temp_dir().join(format!("sublet-layer-{random:016x}"));
    fs::create_dir(&folder)?;
    fs::write(folder.join(MANIFEST), text)?;
    Ok((folder, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_layer_has_a_reason_without_the_path_of_the_command() {
        let unknown = io::Error::other("no /proc/self/exe available");
        let missing = library(None, Err(unknown)).unwrap_err();
        assert_eq!(missing.source.unwrap().to_string(), "no /proc/self/exe available");
        let missing = library(None, Ok("/nonexistent/sublet".into())).unwrap_err();
        assert_eq!(
            Path::new(&missing.source.unwrap().to_string()),
            Path::new("/nonexistent").join(library_name())
        );
    }
}
