//! The features for `sublet-frame`.

use sublet_frame::Features;

/// Returns the features that the context's device has enabled.
#[must_use]
pub fn frame_features(context: &crate::Context) -> Features {
    match (context.gpu(), context.enabled()) {
        (Some(gpu), _) => Features::for_gpu(gpu),
        (None, Some(enabled)) => Features {
            timeline_semaphore: enabled.timeline_semaphore,
            synchronization2: enabled.synchronization2,
            dynamic_rendering: enabled.dynamic_rendering,
            debug_utils: enabled.debug_utils,
            ..Features::default()
        },
        (None, None) => Features::default(),
    }
}
