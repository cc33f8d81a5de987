//! Unmodified wgpu on Sublet. The tests are in `tests/`.
