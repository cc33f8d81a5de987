//! `sublet profile`: measures a device, and writes a profile for the simulated GPU.

use serde_json::json;

use crate::answer::Answer;
use crate::arguments::ProfileArguments;
use crate::failure::CommandFailure;
use crate::files;
use crate::select::Choice;

pub(crate) fn run(arguments: &ProfileArguments) -> Result<Answer, CommandFailure> {
    let choice = arguments.device.as_deref().map_or(Ok(Choice::Best), Choice::parse)?;
    let profile = choice.with(None, |physical| {
        physical.measure().map_err(|error| CommandFailure::driver("the device cannot be measured", error))
    })?;
    let text = profile.to_json();
    let Some(output) = &arguments.output else {
        return Ok(Answer::document(text));
    };
    files::write(output, &text)?;
    let said = format!(
        "{}: {}\n  {}\n  Use it with --device {}, or by sim::Profile::from_json.\n",
        output.display(),
        profile.device_name,
        profile.source,
        output.display()
    );
    let document = json!({
        "written": output,
        "name": profile.name,
        "device": profile.device_name,
        "source": profile.source,
    });
    Ok(Answer::new("sublet-profile-written", 1, said, &document))
}
