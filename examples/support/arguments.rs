//! The arguments of all examples.

use clap::{Arg, ArgMatches, Command};
use sublet::sim;

use super::{Context, Result, chain, note};

/// The requested device.
pub(crate) enum Choice {
    /// A driver's best device, or else a simulated one.
    Any,
    /// A driver's best device, or an error.
    Vulkan,
    /// The simulated device with this name.
    Simulated(String),
}

/// Parses the command line, with the example's own arguments. Returns `None` if it only asked for the list, which is
/// then printed.
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
