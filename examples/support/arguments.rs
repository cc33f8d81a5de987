//! The arguments of all examples.

use sublet::sim;

use super::{Context, Result, chain, note};

const HELP: &str = "An example of the Vulkan memory allocator Sublet

Options:
  --device DEVICE   any: a driver's best device, else a simulated one (the default); vulkan: only a driver's;
                    sim:NAME: a simulated one; list: lists both";

/// The requested device.
pub enum Choice {
    /// A driver's best device, or else a simulated one.
    Any,
    /// A driver's best device, or an error.
    Vulkan,
    /// The simulated device with this name.
    Simulated(String),
}

/// The arguments of the command line that the example has not taken yet.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Takes the argument `name`, and returns true if it is there.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.0.iter().position(|argument| argument == name);
        found.map(|at| self.0.remove(at)).is_some()
    }

    /// Takes the argument `name` and its value, written as `name value` or `name=value`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let value_in = |argument: &String| argument.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        for at in 0..self.0.len() {
            if let Some(value) = value_in(&self.0[at]) {
                self.0.remove(at);
                return Ok(Some(value));
            }
            if self.0[at] == name {
                if at + 1 == self.0.len() {
                    return Err(format!("{name} needs a value").into());
                }
                self.0.remove(at);
                return Ok(Some(self.0.remove(at)));
            }
        }
        Ok(None)
    }
}

/// Parses the command line. `own` takes the example's own arguments, and `help` has a line for each. Returns `None` if
/// only help or the list of devices was requested, which is then printed.
pub(super) fn parse<T>(
    help: &str,
    own: impl FnOnce(&mut Arguments) -> Result<T>,
) -> Result<Option<(Choice, T)>> {
    let mut arguments = Arguments(std::env::args().skip(1).collect());
    if arguments.flag("--help") {
        note(&format!("{HELP}{help}"));
        return Ok(None);
    }
    let device = arguments.value("--device")?.unwrap_or_else(|| "any".to_owned());
    let own = own(&mut arguments)?;
    if let Some(unknown) = arguments.0.first() {
        return Err(format!("no argument {unknown:?}: `--help` lists them").into());
    }
    let choice = match device.strip_prefix("sim:") {
        Some(name) => Choice::Simulated(name.to_owned()),
        None => match &*device {
            "any" => Choice::Any,
            "vulkan" => Choice::Vulkan,
            "list" => {
                list();
                return Ok(None);
            }
            other => return Err(format!("no device {other:?}: say any, vulkan, sim:NAME or list").into()),
        },
    };
    Ok(Some((choice, own)))
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
