//! `sublet watch`: runs a program with the layer that records it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, iter};

use serde_json::json;
use sublet::trace::ForeignRecords;

use crate::answer::Answer;
use crate::arguments::WatchArguments;
use crate::failure::CommandFailure;
use crate::files;
use crate::growing::{FoundRecording, GrowingRecordings, HEAD};
use crate::layer::{self, FoundLayer, LAYER_NAME};
use crate::live::LiveThread;
use crate::signals;
use crate::totals::WatchTotals;

/// The first bytes of a recording of any program.
const MAGIC: &[u8; 8] = b"\x89STRACE\x02";

pub(crate) fn run(arguments: &WatchArguments) -> Result<Answer, CommandFailure> {
    let layer = layer::find()?;
    let path = std::path::absolute(&arguments.output)
        .map_err(|error| CommandFailure::file("the recording has no path", error))?;
    if path.to_string_lossy().contains("%p") {
        return Err(CommandFailure::usage(
            "the path of the recording contains %p, which stands for a process",
        ));
    }
    remove_previous(&path)?;
    let live = arguments.live.then(|| live_page(arguments, &path)).transpose()?;
    let status = run_program(command(arguments, &layer, &path)?)
        .map_err(|error| CommandFailure::file(format!("{} cannot be run", program(arguments)), error))?;
    if let Some(live) = live {
        live.finish();
    }
    let recordings = recordings(&path);
    let totals: Vec<_> = recordings.iter().map(|path| WatchTotals::read(path)).collect();
    let mut text: String = recordings.iter().zip(&totals).map(|(path, totals)| line(path, totals)).collect();
    if recordings.is_empty() {
        text = format!("nothing is recorded: {} created no Vulkan device\n", program(arguments));
    }
    let files = recordings.iter().zip(&totals);
    let files: Vec<_> =
        files.map(|(path, totals)| json!({ "path": path, "bytes": size(path), "totals": totals })).collect();
    let content = json!({ "program": program(arguments), "exit_code": code(status), "recordings": files });
    Ok(Answer::new("sublet-watch", 1, text, &content).aside().code(code(status)))
}

/// Serves the page of all devices while the program runs.
fn live_page(arguments: &WatchArguments, path: &Path) -> Result<LiveThread, CommandFailure> {
    let title = program(arguments);
    let path = path.to_owned();
    LiveThread::start(GrowingRecordings::new(title, move || newest_parts(&path)))
}

/// Returns the newest part of the recording of each device and process.
fn newest_parts(path: &Path) -> Vec<FoundRecording> {
    let mut newest: Vec<FoundRecording> = Vec::new();
    for found in recordings(path) {
        let suffix = suffix(path, &found).unwrap_or_default();
        let device = suffix.split_once(".part").map_or(&*suffix, |(device, _)| device);
        match newest.iter_mut().find(|known| known.device == device) {
            Some(known) => known.path = found,
            None => newest.push(FoundRecording { device: device.to_owned(), path: found }),
        }
    }
    newest
}

fn program(arguments: &WatchArguments) -> String {
    arguments.program.first().map_or(String::new(), |program| program.to_string_lossy().into())
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn line(path: &Path, totals: &WatchTotals) -> String {
    format!("{}: {totals}\n", path.display())
}

/// Returns the program's command with the environment that loads the layer.
fn command(arguments: &WatchArguments, layer: &FoundLayer, path: &Path) -> Result<Command, CommandFailure> {
    let Some((program, rest)) = arguments.program.split_first() else {
        return Err(CommandFailure::usage("there is no program to run"));
    };
    let mut command = Command::new(program);
    command.args(rest).env("SUBLET_WATCH", path);
    // The loader ignores the first variable if the program has the second.
    for name in ["VK_ADD_LAYER_PATH", "VK_LAYER_PATH"] {
        let there = layer::variable(name);
        if there.is_some() || name == "VK_ADD_LAYER_PATH" {
            let folders = there.iter().flat_map(env::split_paths);
            let joined = env::join_paths(iter::once(layer.folder.clone()).chain(folders));
            command.env(name, joined.map_err(|error| CommandFailure::usage(error.to_string()))?);
        }
    }
    // First, so that it is next to the program, and records the program's calls instead of those of other layers.
    let mut layers = OsString::from(LAYER_NAME);
    if let Some(there) = layer::variable("VK_INSTANCE_LAYERS") {
        layers.push(if cfg!(windows) { ";" } else { ":" });
        layers.push(there);
    }
    command.env("VK_INSTANCE_LAYERS", layers);
    if let Some(limit) = arguments.limit {
        command.env("SUBLET_WATCH_LIMIT", limit.saturating_mul(1 << 20).to_string());
    }
    if arguments.no_names {
        command.env("SUBLET_WATCH_NAMES", "0");
    }
    Ok(command)
}

/// Runs the program to its end, and passes signals to it.
fn run_program(mut command: Command) -> io::Result<ExitStatus> {
    // Before the program runs, which may be the reason for a signal.
    let caught = signals::catch()?;
    let mut child = command.spawn()?;
    let passing = caught.pass_to(&child);
    let status = child.wait();
    passing.stop();
    status
}

/// Returns the exit code of the program, or that of a shell for a program that a signal ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + signals::signal(status).unwrap_or(0));
    // Windows has codes beyond a byte.
    u8::try_from(code).unwrap_or(if code == 0 { 0 } else { u8::MAX })
}

/// Returns true if a file is a recording of any program.
fn is_recording(path: &Path) -> bool {
    files::read_head(path, 8).is_ok_and(|start| start == MAGIC)
}

/// Returns the recordings of a run: one for each device, process and part.
fn recordings(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_ours = |candidate: &PathBuf| suffix(path, candidate).is_some() && is_recording(candidate);
    let mut found: Vec<_> = names.filter(is_ours).collect();
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    found
}

/// Returns the text that the layer added to the name of a recording: `[-pPROCESS][-DEVICE][.partPART]`. `None` for a
/// file that is not of this recording.
fn suffix(path: &Path, candidate: &Path) -> Option<String> {
    let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = text(candidate.file_name());
    let rest = name.strip_prefix(&text(path.file_stem()))?;
    let suffix = match path.extension() {
        Some(extension) => rest.strip_suffix(&text(Some(extension)))?.strip_suffix('.')?,
        None => rest,
    };
    let after_all = ["-p", "-", ".part"].into_iter().fold(suffix, after_number);
    after_all.is_empty().then(|| suffix.to_owned())
}

/// Returns the text after a prefix and digits, or all of it if it does not begin with them.
fn after_number<'a>(text: &'a str, prefix: &str) -> &'a str {
    let Some(number) = text.strip_prefix(prefix) else { return text };
    let rest = number.trim_start_matches(|digit: char| digit.is_ascii_digit());
    if rest.len() == number.len() { text } else { rest }
}

/// Removes the recordings of an earlier run. A file of another kind, or one that a program still writes, is an error, and
/// so is a folder in which the layer could not create it.
fn remove_previous(path: &Path) -> Result<(), CommandFailure> {
    if path.exists() && !is_recording(path) {
        let other = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(CommandFailure::file(format!("{} is no recording to replace", path.display()), other));
    }
    let previous = recordings(path);
    if let Some((busy, process)) = previous.iter().find_map(|path| Some((path, writer(path)?))) {
        let error = io::Error::new(io::ErrorKind::ResourceBusy, format!("process {process} still writes it"));
        let failure = CommandFailure::file(format!("{} cannot be replaced", busy.display()), error);
        return Err(failure.hint("choose another file with -o".to_owned()));
    }
    for previous in previous {
        fs::remove_file(&previous).map_err(|error| {
            CommandFailure::file(format!("{} cannot be removed", previous.display()), error)
        })?;
    }
    File::create_new(path)
        .and_then(|_| fs::remove_file(path))
        .map_err(|error| CommandFailure::file(format!("{} cannot be created", path.display()), error))
}

/// Returns the process that maps a recording into its memory to write it. `None` if that is unknown.
fn writer(path: &Path) -> Option<u32> {
    let head = files::read_head(path, HEAD).ok()?;
    let process = ForeignRecords::new(&head).ok()?.header().process;
    let maps = fs::read(format!("/proc/{process}/maps")).ok()?;
    let end = format!(" {}", path.canonicalize().ok()?.display());
    let is_mapped = String::from_utf8_lossy(&maps).lines().any(|line| line.ends_with(&end));
    is_mapped.then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_layer_belong_to_a_recording() {
        let of = |path: &str, name: &str| suffix(Path::new(path), Path::new(name));
        for known in ["", "-2", "-p71", "-p71-2", ".part3", "-2.part3", "-p71-2.part3"] {
            assert_eq!(of("a/w.trace", &format!("a/w{known}.trace")).as_deref(), Some(known));
            assert_eq!(of("w", &format!("w{known}")).as_deref(), Some(known));
        }
        for other in ["-baseline", "-", "-p", ".part", ".old", "-2-3", "2", "-2.part3.part4"] {
            assert_eq!(of("w.trace", &format!("w{other}.trace")), None, "{other}");
        }
        assert_eq!(of("w.trace", "w-2"), None);
    }
}
