//! Any text as a snapshot, of Sublet or of VMA. If it is one, every report is made of it, and it is written and read
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sublet_report::{Comparison, Page, Snapshot, perfetto, suspected_leaks, svg};

fuzz_target!(|text: &str| {
    let Ok(snapshot) = Snapshot::from_json(text) else { return };
    let written = snapshot.to_json();
    let again = Snapshot::from_json(&written).expect("what was written can be read");
    assert_eq!(again.to_json(), written);
    assert_eq!(again.statistics(), snapshot.statistics());
    let figures = snapshot.figures();
    assert_eq!(again.figures(), figures);
    let _ = Comparison::new(&snapshot, &again);
    let _ = suspected_leaks(&[&snapshot, &again]);
    let _ = (svg(&snapshot), perfetto(&snapshot), Page::new(&snapshot).before(&again).to_html());
});
