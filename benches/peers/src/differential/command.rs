//! The subcommand.

use indicatif::{ProgressBar, ProgressStyle};

use super::run::{ProgramSelection, run};
use crate::cli::Options;
use crate::output::say;

/// Runs a number of programs and prints the comparison.
///
/// # Errors
/// The shortest programs that show an unintended difference.
pub(crate) fn command(
    programs: u64,
    profile: Option<String>,
    options: &Options,
    progress: &ProgressBar,
) -> Result<(), String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.first().copied().unwrap_or(processors);
    let order =
        ProgramSelection { programs, seed: options.seed, profile, only: options.only.clone(), threads };
    progress.set_length(programs);
    if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {wide_bar} {pos} of {len} programs, {eta}") {
        progress.set_style(style);
    }
    let done = run(&order, &|| progress.inc(1));
    progress.finish_and_clear();
    say(&done?)
}
