//! The arguments that all examples take.

use clap::{Arg, ArgMatches, Command};
use sublet::sim;

use super::{Context, Result, chain, note};

/// Which device is wanted.
pub(crate) enum Choice {
    /// A driver's best, else a simulated one.
    Any,
    /// A driver's best, or nothing.
    Vulkan,
    /// The simulated device of this name.
    Simulated(String),
}

/// Reads the command line, with what the example takes by itself. `None` if all that was asked for is done: the list
/// was printed.
pub(super) fn parse(own: Vec<Arg>) -> Result<Option<(Choice, ArgMatches)>> {
    let device = Arg::new("device")
        .long("device")
        .value_name("DEVICE")
        .default_value("any")
        .help("any: a driver's best device, else a simulated one; vulkan: only a driver's; sim:NAME: a simulated one; list");
    let matches = Command::new("example")
        .about("An example of the Vulkan memory allocator Sublet")
        .arg(device)
        .args(own)
        .get_matches();
    let device = matches.get_one::<String>("device").map_or("any", String::as_str);
    let choice = match device.strip_prefix("sim:") {
        Some(name) => Choice::Simulated(name.to_owned()),
        None => match device {
            "any" => Choice::Any,
            "vulkan" => Choice::Vulkan,
            "list" => {
                list();
                return Ok(None);
            }
            other => return Err(format!("no device {other:?}: say any, vulkan, sim:NAME or list").into()),
        },
    };
    Ok(Some((choice, matches)))
}

fn list() {
    note("--device vulkan takes the first of these:");
    match Context::driver_devices() {
        Ok(names) => names.iter().for_each(|name| note(&format!("  {name}"))),
        Err(error) => note(&format!("  (none: {})", chain(&*error))),
    }
    note("--device sim:NAME simulates one of these:");
    for name in sim::Profile::names() {
        note(&format!("  sim:{name}"));
    }
}
