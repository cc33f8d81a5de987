//! The arguments that all examples take.

use clap::{Arg, Command};
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

/// Reads the command line. `None` if all that was asked for is done: the list was printed.
pub(super) fn parse() -> Result<Option<Choice>> {
    let device = Arg::new("device")
        .long("device")
        .value_name("DEVICE")
        .default_value("any")
        .help("any: a driver's best device, else a simulated one; vulkan: only a driver's; sim:NAME: a simulated one; list");
    let matches = Command::new("example")
        .about("An example of the Vulkan memory allocator Sublet")
        .arg(device)
        .get_matches();
    let device = matches.get_one::<String>("device").map_or("any", String::as_str);
    match device.strip_prefix("sim:") {
        Some(name) => Ok(Some(Choice::Simulated(name.to_owned()))),
        None => match device {
            "any" => Ok(Some(Choice::Any)),
            "vulkan" => Ok(Some(Choice::Vulkan)),
            "list" => {
                list();
                Ok(None)
            }
            other => Err(format!("no device {other:?}: say any, vulkan, sim:NAME or list").into()),
        },
    }
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
