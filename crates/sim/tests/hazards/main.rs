//! The simulated driver finds the hazards of wrong programs, and none in right ones. The validation layer agrees, but
//! for what the list names.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test calls the driver as programs do, and may panic"
)]

mod fixture;
mod layer;
mod list;
mod painter;
mod queues;

use fixture::{Form, HazardFixture};
use layer::Layer;
use sublet_sim::{Gpu, Profile};

const FORMS: [Form; 2] = [Form::First, Form::Second];

#[test]
fn each_program_of_the_list_gets_its_verdict() {
    let mut wrong = Vec::new();
    for form in FORMS {
        for program in list::programs() {
            let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).hazards(true).build();
            for entry_point in ["corner", "white"] {
                gpu.set_kernel(entry_point, |_| {});
            }
            HazardFixture::new(gpu.device(), gpu.queue()).run(&program.ops, form);
            let found = gpu.finish();
            let rules: Vec<_> = found.iter().map(|message| message.vuid).collect();
            if rules != Vec::from_iter(program.breaks) {
                wrong.push(format!("{form:?}, {}: {:?}, not {found:#?}", program.name, program.breaks));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_validation_layer_agrees_or_the_list_says_why_not() {
    let layer = match Layer::new() {
        Ok(layer) => layer,
        Err(why) => {
            let required = std::env::var_os("SUBLET_REQUIRE_VULKAN").is_some_and(|value| value == "1");
            assert!(!required, "SUBLET_REQUIRE_VULKAN=1, and there is no layer: {why}");
            println!("skipped: {why}");
            return;
        }
    };
    let mut wrong = Vec::new();
    for form in FORMS {
        for program in list::programs() {
            HazardFixture::new(&layer.device, layer.queue).run(&program.ops, form);
            let found = layer.take();
            let agrees = match program.breaks {
                None => found.is_empty(),
                Some(rule) => !found.is_empty() && found.iter().all(|text| text.contains(rule)),
            };
            if agrees == program.layer_differs_on(form).is_some() {
                wrong.push(format!("{form:?}, {}: {:?}, not {found:#?}", program.name, program.breaks));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
