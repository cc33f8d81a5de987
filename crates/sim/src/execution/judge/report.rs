//! The text for a hazard: both commands, the part that both access, and the missing link between them.

use std::ops::Range;

use crate::hazards::owners::{Act, FamilyOwnership, Misowned};
use crate::hazards::past::{Access1, Missing};
use crate::hazards::{AccessRange, Actor, Finding, Half, Hazard, Of, Site, rule};
use crate::objects::state::{DeviceObject, DeviceState};

pub(crate) fn report(device: &DeviceObject, state: &DeviceState, actor: Actor, finding: &Finding) {
    let text = match finding {
        Finding::Hazard(hazard) => text(state, actor, hazard),
        Finding::Owner(misowned) => owner_text(state, actor, misowned),
    };
    device.report(rule(actor, finding), text);
}

fn owner_text(state: &DeviceState, actor: Actor, misowned: &Misowned) -> String {
    let Misowned { place, range, owner, family, act } = misowned;
    let (own, what) = (call(state, actor.site), extent(state, place, range));
    let does = match act {
        Act::Half(Half::Release(_)) => "releases",
        Act::Half(Half::Acquire(_)) => "acquires",
        Act::Use | Act::Overwrite | Act::Discard => "uses",
    };
    let why = match owner {
        FamilyOwnership::Nobody => "nobody has released it".to_owned(),
        FamilyOwnership::Family(owner) => format!("family {owner} owns it and has not released it"),
        FamilyOwnership::Released(to) => {
            format!(
                "family {} has released it to family {}, with the layouts {:?}",
                to.from, to.to, to.layouts
            )
        }
    };
    format!("{own} {does} {what} on family {family}: {why}")
}

fn text(state: &DeviceState, actor: Actor, hazard: &Hazard) -> String {
    let Hazard { before, place, missing, next, .. } = hazard;
    let own = call(state, actor.site);
    let other = call(state, before.actor.site);
    let what = extent(state, place, &hazard.range);
    let does = next.as_ref().map_or("changes the layout of".to_owned(), |next| {
        let verb = if next.write { "writes" } else { "reads" };
        format!("({}) {verb}", scopes(next))
    });
    let did = if before.is_transition() {
        "changed the layout before".to_owned()
    } else {
        let verb = if before.access.write { "wrote" } else { "read" };
        format!("({}) {verb} it before", scopes(&before.access))
    };
    let alias =
        if before.of == place.of { String::new() } else { format!(", as {}", name(state, before.of)) };
    let why = match missing {
        Missing::Semaphore => format!(
            "no semaphore leads from queue {} to queue {} between them",
            before.actor.timeline, actor.timeline
        ),
        Missing::Execution => {
            "no execution dependency: no chain of barriers leads from the stages of the one to those \
                               of the other"
                .to_owned()
        }
        Missing::Available => {
            "the write is not made available: no barrier between them has its stage and access in \
                               srcStageMask and srcAccessMask, and these bytes"
                .to_owned()
        }
        Missing::Visible => {
            "the write is not made visible: no barrier between them has this stage and access in \
                             dstStageMask and dstAccessMask, and these bytes"
                .to_owned()
        }
    };
    format!("{own} {does} {what}; {other} {did}{alias}: {why}")
}

fn scopes(access: &Access1) -> String {
    format!("{:?} {:?}", access.stages, access.access)
}

/// A call, its number in its command buffer, and that command buffer.
fn call(state: &DeviceState, site: Site) -> String {
    format!("{}, call {} of {},", site.call, site.index, state.name(site.buffer))
}

fn name(state: &DeviceState, of: Of) -> String {
    match of {
        Of::Buffer(buffer) => state.name(buffer),
        Of::Image(image) => state.name(image),
    }
}

/// The resource, and the part of it that both accesses touch.
fn extent(state: &DeviceState, place: &AccessRange, range: &Range<u64>) -> String {
    let AccessRange { of, base, .. } = *place;
    let (start, end) = (range.start - base, range.end - base);
    let name = name(state, of);
    let image = match of {
        Of::Buffer(_) => None,
        Of::Image(image) => state.images.get(&image),
    };
    let Some(image) = image else {
        return format!("{name}, bytes {start} to {}", end - 1);
    };
    let (levels, layers) =
        (u64::from(image.description.mip_levels), u64::from(image.description.array_layers));
    let at = |unit: u64| {
        let (level, layer) = (unit / layers % levels, unit % layers);
        let aspect = ["", " of the second aspect", " of the third aspect"];
        let aspect = usize::try_from(unit / layers / levels).ok().and_then(|slot| aspect.get(slot));
        format!("level {level}, layer {layer}{}", aspect.unwrap_or(&""))
    };
    if start + 1 == end {
        format!("{name}, {}", at(start))
    } else {
        format!("{name}, {} to {}", at(start), at(end - 1))
    }
}
