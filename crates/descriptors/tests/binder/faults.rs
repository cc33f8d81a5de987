//! Every driver call fails in turn. The failed commit changes nothing, and can be repeated.

use ash::vk;
use sublet_descriptors::{CommitError, DescriptorKind as K};

use super::fixture::{Fixture, POINT, commit, storage};

#[test]
fn a_commit_that_fails_has_recorded_nothing_and_can_be_made_again() {
    for call in ["vkCreateDescriptorPool", "vkAllocateDescriptorSets"] {
        for nth in 0..3 {
            let fixture = Fixture::with_sets();
            let set = fixture.set_layout(&[(0, K::StorageBuffer, 1)]);
            let (mut binder, layout, commands) = fixture.start(&[set.clone(), set.clone(), set]);
            let [a, b] = fixture.buffers();
            for set in 0..3 {
                binder.stage(POINT, set, 0, 0, &[storage(a, 0)]).unwrap();
            }
            fixture.gpu.faults().fail_nth(call, nth, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            let result = unsafe { binder.commit(commands, POINT) };
            binder.validate();
            if let Err(error) = result {
                assert!(matches!(error, CommitError::Sets(_)), "{error}");
                assert!(std::error::Error::source(&error).is_some());
                let written = [
                    "vkUpdateDescriptorSetWithTemplate",
                    "vkUpdateDescriptorSets",
                    "vkCmdBindDescriptorSets",
                ];
                assert_eq!(fixture.calls(written), [0; 3], "{call} {nth}");
                assert_eq!(fixture.bound(commands, &layout, 0), None);
                // Descriptors staged between the attempts are committed too.
                binder.stage(POINT, 1, 0, 0, &[storage(b, 256)]).unwrap();
                commit(&fixture, &mut binder, commands, POINT);
                assert_eq!(fixture.seen(commands, POINT, &layout, (1, 0, 0)), Some((b, 256)));
                assert_eq!(fixture.seen(commands, POINT, &layout, (2, 0, 0)), Some((a, 0)));
            }
            fixture.gpu.faults().clear();
        }
    }
}

#[test]
fn templates_that_were_made_before_one_fails_are_destroyed() {
    for nth in 0..4 {
        let fixture = Fixture::with_sets();
        let (set, push) = (
            fixture.set_layout(&[(0, K::StorageBuffer, 1)]),
            fixture.push_layout(&[(0, K::StorageBuffer, 1)]),
        );
        fixture.gpu.faults().fail_nth(
            "vkCreateDescriptorUpdateTemplate",
            nth,
            vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        );
        let sets = [set.clone(), push, set];
        let result = fixture.try_pipeline(&sets, &[]);
        assert!(result.is_err(), "{nth}");
        assert_eq!(fixture.gpu.live().descriptor_update_templates, 0, "{nth}");
        // Two sets, and push descriptors of draws and dispatches.
        fixture.gpu.faults().clear();
        let layout = fixture.try_pipeline(&sets, &[]).unwrap();
        assert_eq!(fixture.gpu.live().descriptor_update_templates, 4);
        let clone = layout.clone();
        drop(layout);
        assert_eq!(fixture.gpu.live().descriptor_update_templates, 4);
        drop(clone);
        assert_eq!(fixture.gpu.live().descriptor_update_templates, 0);
    }
}
