//! Every driver call fails in turn. The failed commit changes nothing, and can be repeated.

use ash::vk;
use sublet::descriptor::{CommitError, DescriptorKind as K};

use super::kit::{Kit, POINT, commit, storage};

#[test]
fn a_commit_that_fails_has_recorded_nothing_and_can_be_made_again() {
    for call in ["vkCreateDescriptorPool", "vkAllocateDescriptorSets"] {
        for nth in 0..3 {
            let kit = Kit::with_sets();
            let set = kit.set_layout(&[(0, K::StorageBuffer, 1)]);
            let (mut binder, layout, commands) = kit.start(&[set.clone(), set.clone(), set]);
            let [a, b] = kit.buffers();
            for set in 0..3 {
                binder.stage(POINT, set, 0, 0, &[storage(a, 0)]).unwrap();
            }
            kit.gpu.faults().fail_nth(call, nth, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
            // SAFETY: the command buffer is being recorded, and the staged resources are live.
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
                assert_eq!(kit.calls(written), [0; 3], "{call} {nth}");
                assert_eq!(kit.bound(commands, &layout, 0), None);
                // Descriptors staged between the attempts are committed too.
                binder.stage(POINT, 1, 0, 0, &[storage(b, 256)]).unwrap();
                commit(&kit, &mut binder, commands, POINT);
                assert_eq!(kit.seen(commands, POINT, &layout, (1, 0, 0)), Some((b, 256)));
                assert_eq!(kit.seen(commands, POINT, &layout, (2, 0, 0)), Some((a, 0)));
            }
            kit.gpu.faults().clear();
        }
    }
}

#[test]
fn templates_that_were_made_before_one_fails_are_destroyed() {
    for nth in 0..4 {
        let kit = Kit::with_sets();
        let (set, push) =
            (kit.set_layout(&[(0, K::StorageBuffer, 1)]), kit.push_layout(&[(0, K::StorageBuffer, 1)]));
        kit.gpu.faults().fail_nth(
            "vkCreateDescriptorUpdateTemplate",
            nth,
            vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        );
        let sets = [set.clone(), push, set];
        let result = kit.try_pipeline(&sets, &[]);
        assert!(result.is_err(), "{nth}");
        assert_eq!(kit.gpu.live().descriptor_update_templates, 0, "{nth}");
        // Two sets, and push descriptors of draws and dispatches.
        kit.gpu.faults().clear();
        let layout = kit.try_pipeline(&sets, &[]).unwrap();
        assert_eq!(kit.gpu.live().descriptor_update_templates, 4);
        let clone = layout.clone();
        drop(layout);
        assert_eq!(kit.gpu.live().descriptor_update_templates, 4);
        drop(clone);
        assert_eq!(kit.gpu.live().descriptor_update_templates, 0);
    }
}
