//! Copy, fill and update of buffers.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;

use super::fixture::{CommandFixture, DST, SRC, noise};
use crate::facts::profiles::ALL;

fn region(src_offset: u64, dst_offset: u64, size: u64) -> vk::BufferCopy {
    vk::BufferCopy { src_offset, dst_offset, size }
}

#[test]
fn a_copy_moves_its_bytes_and_no_others_on_every_device() {
    for profile in ALL {
        let fixture = CommandFixture::new(profile);
        let from = fixture.mapped(1000, SRC);
        let middle = fixture.local(1200, SRC | DST);
        let back = fixture.mapped(1500, DST);
        let bytes = noise(1000, 1);
        from.write(0, &bytes);
        let old = noise(1500, 2);
        back.write(0, &old);
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer(
                commands,
                from.buffer,
                middle,
                &[region(0, 7, 500), region(600, 800, 400)],
            );
            device.cmd_copy_buffer(
                commands,
                middle,
                back.buffer,
                &[region(7, 3, 500), region(800, 700, 400)],
            );
        });
        let mut expected = old;
        expected[3..503].copy_from_slice(&bytes[..500]);
        expected[700..1100].copy_from_slice(&bytes[600..]);
        assert_eq!(back.read(), expected, "{}", profile.name);
        fixture.expect_silence();
    }
}

#[test]
fn the_second_form_of_a_copy_does_the_same() {
    let fixture = CommandFixture::simple();
    let (from, to) = (fixture.mapped(64, SRC), fixture.mapped(64, DST));
    from.write(0, &noise(64, 3));
    fixture.run(|device, commands| {
        let regions = [vk::BufferCopy2::default().src_offset(8).dst_offset(16).size(32)];
        let info =
            vk::CopyBufferInfo2::default().src_buffer(from.buffer).dst_buffer(to.buffer).regions(&regions);
        unsafe { device.cmd_copy_buffer2(commands, &info) };
    });
    let mut expected = vec![0; 64];
    expected[16..48].copy_from_slice(&noise(64, 3)[8..40]);
    assert_eq!(to.read(), expected);
    fixture.expect_silence();
}

#[test]
fn commands_see_what_is_flushed_and_the_host_what_is_invalidated() {
    let cached = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_CACHED;
    let with = ALL.iter().filter(|profile| {
        let flags = |kind: &crate::facts::profiles::TypeProfile| kind.flags;
        // The fixture takes the first type that has the flags.
        let first = profile.types.iter().map(flags).find(|flags| flags.contains(cached));
        first.is_some_and(|flags| !flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT))
    });
    let mut tested = 0;
    for profile in with {
        let fixture = CommandFixture::new(profile);
        let from = fixture.mapped_in(4096, SRC, cached);
        let to = fixture.mapped_in(4096, DST, cached);
        let bytes = noise(4096, 4);
        from.write(0, &bytes);
        let range = |memory| [vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE)];
        let copy = |fixture: &CommandFixture| {
            fixture.run(|device, commands| unsafe {
                device.cmd_copy_buffer(commands, from.buffer, to.buffer, &[region(0, 0, 4096)]);
            });
        };
        copy(&fixture);
        unsafe { fixture.device().invalidate_mapped_memory_ranges(&range(to.memory)) }.unwrap();
        assert_eq!(to.read(), vec![0; 4096], "not flushed");
        unsafe { fixture.device().flush_mapped_memory_ranges(&range(from.memory)) }.unwrap();
        copy(&fixture);
        assert_eq!(to.read(), vec![0; 4096], "not invalidated");
        unsafe { fixture.device().invalidate_mapped_memory_ranges(&range(to.memory)) }.unwrap();
        assert_eq!(to.read(), bytes);
        fixture.expect_silence();
        tested += 1;
    }
    assert!(tested >= 2);
}

#[test]
fn fill_repeats_its_word() {
    let fixture = CommandFixture::simple();
    let size = 1 << 18;
    let target = fixture.mapped(size + 3, DST);
    fixture.run(|device, commands| unsafe {
        device.cmd_fill_buffer(commands, target.buffer, 0, vk::WHOLE_SIZE, 0x0403_0201);
        device.cmd_fill_buffer(commands, target.buffer, 8, 4, 0xaabb_ccdd);
    });
    let mut expected: Vec<u8> = [1, 2, 3, 4].repeat(1 << 16);
    expected[8..12].copy_from_slice(&[0xdd, 0xcc, 0xbb, 0xaa]);
    // WHOLE_SIZE ends at the last multiple of 4.
    expected.extend([0; 3]);
    assert_eq!(target.read(), expected);
    fixture.expect_silence();
}

#[test]
fn update_carries_its_data_in_the_command_buffer() {
    let fixture = CommandFixture::simple();
    let target = fixture.mapped(70_000, DST);
    let mut data = noise(65_536, 5);
    fixture.begin();
    unsafe { fixture.device().cmd_update_buffer(fixture.commands, target.buffer, 16, &data) };
    let recorded = data.clone();
    data.fill(0);
    fixture.end();
    fixture.submit().unwrap();
    assert_eq!(target.read()[16..65_552], recorded);
    assert_eq!(target.read()[..16], [0; 16]);
    fixture.expect_silence();
}

#[test]
fn commands_run_in_order_and_again_when_submitted_again() {
    let fixture = CommandFixture::simple();
    let both = fixture.mapped(8, SRC | DST);
    let count = fixture.mapped(4, DST);
    fixture.begin();
    unsafe {
        fixture.device().cmd_copy_buffer(fixture.commands, both.buffer, count.buffer, &[region(0, 0, 4)]);
        fixture.device().cmd_fill_buffer(fixture.commands, both.buffer, 0, 4, 0x0101_0101);
    }
    fixture.end();
    fixture.submit().unwrap();
    assert_eq!(count.read(), [0; 4]);
    fixture.submit().unwrap();
    assert_eq!(count.read(), [1; 4]);
    fixture.expect_silence();
}

/// A buffer of 100 bytes to copy from, one of 60 to copy to, and what happens to a wrong region.
#[test]
fn wrong_copies_are_reported_and_copy_nothing() {
    let fixture = CommandFixture::simple();
    let (from, to) = (fixture.mapped(100, SRC), fixture.mapped(60, DST));
    from.write(0, &[9; 100]);
    for (wrong, vuid) in [
        (region(0, 0, 0), "VUID-VkBufferCopy-size-01988"),
        (region(100, 0, 1), "VUID-vkCmdCopyBuffer-srcOffset-00113"),
        (region(0, 60, 1), "VUID-vkCmdCopyBuffer-dstOffset-00114"),
        (region(99, 0, 2), "VUID-vkCmdCopyBuffer-size-00115"),
        (region(0, 59, 2), "VUID-vkCmdCopyBuffer-size-00116"),
        (region(u64::MAX, 0, u64::MAX), "VUID-vkCmdCopyBuffer-srcOffset-00113"),
        (region(1, 0, u64::MAX), "VUID-vkCmdCopyBuffer-size-00115"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer(commands, from.buffer, to.buffer, &[region(0, 0, 1), wrong]);
        });
        fixture.expect(vuid);
        assert_eq!(to.read(), [0; 60]);
    }
    // The last byte of each may be copied.
    fixture.run(|device, commands| unsafe {
        device.cmd_copy_buffer(commands, from.buffer, to.buffer, &[region(99, 59, 1)]);
    });
    fixture.expect_silence();
    assert_eq!(to.read()[59], 9);
    fixture.run(|device, commands| unsafe { device.cmd_copy_buffer(commands, from.buffer, to.buffer, &[]) });
    fixture.expect("VUID-vkCmdCopyBuffer-regionCount-arraylength");
}

#[test]
fn a_copy_onto_itself_is_reported() {
    let fixture = CommandFixture::simple();
    let both = fixture.mapped(100, SRC | DST);
    let copy = |fixture: &CommandFixture, regions: &[vk::BufferCopy]| {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer(commands, both.buffer, both.buffer, regions);
        });
    };
    copy(&fixture, &[region(0, 50, 50)]);
    fixture.expect_silence();
    copy(&fixture, &[region(0, 49, 50)]);
    fixture.expect("VUID-vkCmdCopyBuffer-pRegions-00117");
    // The source of one region is the destination of another.
    copy(&fixture, &[region(0, 10, 5), region(12, 80, 5)]);
    fixture.expect("VUID-vkCmdCopyBuffer-pRegions-00117");
}

#[test]
fn two_buffers_upon_each_other_are_one() {
    let fixture = CommandFixture::simple();
    let (src, dst) = (fixture.bare(128, SRC), fixture.bare(128, DST));
    let arena = fixture.arena(4096);
    unsafe { fixture.device().bind_buffer_memory(src, arena, 64) }.unwrap();
    unsafe { fixture.device().bind_buffer_memory(dst, arena, 128) }.unwrap();
    fixture.expect("SUBLET-overlap");
    let copy = |fixture: &CommandFixture, region: vk::BufferCopy| {
        fixture.run(|device, commands| unsafe { device.cmd_copy_buffer(commands, src, dst, &[region]) });
    };
    // The destination starts in the middle of the source.
    copy(&fixture, region(0, 0, 64));
    fixture.expect_silence();
    copy(&fixture, region(0, 0, 65));
    fixture.expect("VUID-vkCmdCopyBuffer-pRegions-00117");
    copy(&fixture, region(64, 64, 64));
    fixture.expect_silence();
    copy(&fixture, region(64, 63, 64));
    fixture.expect("VUID-vkCmdCopyBuffer-pRegions-00117");
}

#[test]
fn wrong_buffers_are_reported() {
    let fixture = CommandFixture::simple();
    let (from, to) = (fixture.mapped(8, SRC), fixture.mapped(8, DST));
    let (bare_from, bare_to) = (fixture.bare(8, SRC), fixture.bare(8, DST));
    let gone = vk::Buffer::null();
    for (src, dst, vuid) in [
        (to.buffer, to.buffer, "VUID-vkCmdCopyBuffer-srcBuffer-00118"),
        (bare_from, to.buffer, "VUID-vkCmdCopyBuffer-srcBuffer-00119"),
        (gone, to.buffer, "VUID-vkCmdCopyBuffer-srcBuffer-parameter"),
        (from.buffer, from.buffer, "VUID-vkCmdCopyBuffer-dstBuffer-00120"),
        (from.buffer, bare_to, "VUID-vkCmdCopyBuffer-dstBuffer-00121"),
        (from.buffer, gone, "VUID-vkCmdCopyBuffer-dstBuffer-parameter"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer(commands, src, dst, &[region(0, 0, 8)])
        });
        fixture.expect(vuid);
        fixture.run(|device, commands| {
            let regions = [vk::BufferCopy2::default().size(8)];
            let info = vk::CopyBufferInfo2::default().src_buffer(src).dst_buffer(dst).regions(&regions);
            unsafe { device.cmd_copy_buffer2(commands, &info) };
        });
        fixture.expect(&vuid.replace("vkCmdCopyBuffer", "VkCopyBufferInfo2"));
    }
}

#[test]
fn wrong_fills_are_reported() {
    let fixture = CommandFixture::simple();
    let (target, source) = (fixture.mapped(64, DST), fixture.mapped(64, SRC));
    let bare = fixture.bare(64, DST);
    for (buffer, offset, size, vuid) in [
        (target.buffer, 64, 4, "VUID-vkCmdFillBuffer-dstOffset-00024"),
        (target.buffer, 2, 4, "VUID-vkCmdFillBuffer-dstOffset-00025"),
        (target.buffer, 2, vk::WHOLE_SIZE, "VUID-vkCmdFillBuffer-dstOffset-00025"),
        (target.buffer, 0, 0, "VUID-vkCmdFillBuffer-size-00026"),
        (target.buffer, 60, 8, "VUID-vkCmdFillBuffer-size-00027"),
        (target.buffer, 0, 6, "VUID-vkCmdFillBuffer-size-00028"),
        (source.buffer, 0, 4, "VUID-vkCmdFillBuffer-dstBuffer-00029"),
        (bare, 0, 4, "VUID-vkCmdFillBuffer-dstBuffer-00031"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_fill_buffer(commands, buffer, offset, size, u32::MAX)
        });
        fixture.expect(vuid);
    }
    assert_eq!(target.read(), [0; 64]);
}

#[test]
fn wrong_updates_are_reported() {
    let fixture = CommandFixture::simple();
    let (target, source) = (fixture.mapped(70_000, DST), fixture.mapped(64, SRC));
    let bare = fixture.bare(64, DST);
    for (buffer, offset, size, vuid) in [
        (target.buffer, 0, 0, "VUID-vkCmdUpdateBuffer-dataSize-arraylength"),
        (target.buffer, 0, 65_540, "VUID-vkCmdUpdateBuffer-dataSize-00037"),
        (target.buffer, 0, 6, "VUID-vkCmdUpdateBuffer-dataSize-00038"),
        (target.buffer, 6, 4, "VUID-vkCmdUpdateBuffer-dstOffset-00036"),
        (target.buffer, 70_000, 4, "VUID-vkCmdUpdateBuffer-dstOffset-00032"),
        (target.buffer, 69_996, 8, "VUID-vkCmdUpdateBuffer-dataSize-00033"),
        (source.buffer, 0, 4, "VUID-vkCmdUpdateBuffer-dstBuffer-00034"),
        (bare, 0, 4, "VUID-vkCmdUpdateBuffer-dstBuffer-00035"),
    ] {
        let data = vec![1; size];
        fixture.run(|device, commands| unsafe { device.cmd_update_buffer(commands, buffer, offset, &data) });
        fixture.expect(vuid);
    }
    assert!(target.read().iter().all(|&byte| byte == 0));
}
