//! A renderer for egui, as it is published, on Sublet: the tests are in `tests/`.
