//! An unmodified renderer for egui on Sublet. The tests are in `tests/`.
