//! Streams a compressed asset to the device: a pool of threads decodes blocks straight into upload memory, and the
//! device copies one segment while the threads decode the next. Shows the progress and the bandwidth, and compares the
//! last segment.
//!
//! `cargo run --release -p sublet-shader-examples --example stream_assets -- --mib 4096`

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use sublet::upload::UploadArenaCreateInfo;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_examples::{Arguments, Context, Result, frame_features, note};
use sublet_frame::{Buffer, Frames, FramesCreateInfo, QueueInfo, UploadPiece};

/// Decoded bytes of a block, the unit that a thread decodes.
const BLOCK: usize = 256 << 10;
/// Bytes of an upload page: whole blocks.
const PAGE: u64 = 2 << 20;
const _: () = assert!(PAGE % (256 << 10) == 0);
/// Decoded bytes of a segment, the unit of a submission.
const SEGMENT: u64 = 32 << 20;
/// Segments that the device may be copying.
const IN_FLIGHT: usize = 2;
/// Different blocks in the asset.
const BLOCKS: usize = 512;

/// A toy codec: a block is a list of runs, each of `count` words that grow by `step`.
#[derive(Clone, Copy)]
struct Run {
    count: usize,
    first: u32,
    step: u32,
}

fn encode(random: &mut fastrand::Rng) -> Vec<Run> {
    let (mut runs, mut rest) = (Vec::new(), BLOCK / 4);
    while rest > 0 {
        let count = random.usize(64..4096).min(rest);
        runs.push(Run { count, first: random.u32(..), step: random.u32(0..1000) });
        rest -= count;
    }
    runs
}

/// Decodes a block. The scratch of one run stays in the fastest cache, so each byte of upload memory is written once.
fn decode(runs: &[Run], to: &mut UploadPiece<'_>) -> std::io::Result<()> {
    let mut scratch = Vec::with_capacity(4 * 4096);
    for run in runs {
        scratch.clear();
        let mut word = run.first;
        for _ in 0..run.count {
            scratch.extend_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(run.step);
        }
        to.write_all(&scratch)?;
    }
    Ok(())
}

/// Divides a piece into blocks.
fn blocks(mut rest: UploadPiece<'_>) -> Vec<UploadPiece<'_>> {
    let mut blocks = Vec::with_capacity(rest.bytes.len() / BLOCK + 1);
    while rest.bytes.len() > BLOCK {
        let (block, others) = rest.split_at(BLOCK);
        blocks.push(block);
        rest = others;
    }
    blocks.push(rest);
    blocks
}

struct Options {
    bytes: u64,
    threads: usize,
}

fn options(arguments: &mut Arguments) -> Result<Options> {
    let mib = arguments.value("--mib")?.map_or(Ok(128), |mib| mib.parse::<u64>())?;
    let threads = arguments.value("--threads")?.map_or(Ok(0), |threads| threads.parse())?;
    let bytes = mib.checked_mul(1 << 20).filter(|bytes| *bytes > 0).ok_or("--mib must be at least 1")?;
    Ok(Options { bytes, threads })
}

fn main() -> ExitCode {
    const HELP: &str = "
  --mib N           decoded MiB to stream (128)
  --threads N       that decode (one for each processor)";
    sublet_examples::run_with(HELP, options, |context, options| stream(context, &options))
}

fn target(frames: &Frames) -> Result<Buffer> {
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let info = vk::BufferCreateInfo::default().size(SEGMENT).usage(usage);
    // SAFETY: the create-info is valid.
    Ok(unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?)
}

fn stream(context: &Context, options: &Options) -> Result<()> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = Arc::new(unsafe { Allocator::new(&context.allocator_info()) }?);
    let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
    let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
    let info = FramesCreateInfo {
        features: frame_features(context),
        frames_in_flight: IN_FLIGHT,
        uploads: UploadArenaCreateInfo { page_size: PAGE, ..UploadArenaCreateInfo::default() },
        ..FramesCreateInfo::new(instance, device, physical, context.api_version(), &allocator, &queues)
    };
    // SAFETY: all handles belong to the context's device, which has these features, and outlive the frames.
    let mut frames = unsafe { Frames::new(&info) }?;
    let targets = (0..IN_FLIGHT).map(|_| target(&frames)).collect::<Result<Vec<_>>>()?;
    let mut random = fastrand::Rng::with_seed(11);
    let asset: Vec<Vec<Run>> = (0..BLOCKS).map(|_| encode(&mut random)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build()?;

    let style = "{bar:40} {bytes} of {total_bytes}, {binary_bytes_per_sec}";
    let progress = ProgressBar::new(options.bytes).with_style(ProgressStyle::with_template(style)?);
    let (start, mut done, mut last) = (Instant::now(), 0, None);
    while done < options.bytes {
        let size = SEGMENT.min(options.bytes - done);
        frames.begin()?;
        let queue = frames.queue(0);
        let mut list = frames.list(queue)?;
        let target = &targets[frames.slot()];
        let first = usize::try_from(done)? / BLOCK;
        list.upload_with(target, 0, size, |pieces| {
            pool.install(|| {
                pieces.into_par_iter().flat_map(blocks).try_for_each(|mut block| {
                    let index = first + usize::try_from(block.offset)? / BLOCK;
                    Ok::<(), Box<dyn std::error::Error + Send + Sync>>(decode(
                        &asset[index % BLOCKS],
                        &mut block,
                    )?)
                })
            })
        })?;
        if done + size == options.bytes {
            last = Some((first, list.read_buffer(target, 0..size)?));
        }
        frames.submit(queue, [list])?;
        frames.end();
        done += size;
        progress.set_position(done);
    }
    frames.wait_idle()?;
    let seconds = start.elapsed().as_secs_f64();
    progress.finish_and_clear();
    let mib = options.bytes >> 20;
    #[expect(clippy::as_conversions, reason = "a figure to print")]
    let gigabytes = options.bytes as f64 / 1e9;
    note(&format!("{mib} MiB on {} threads: {:.2} GB/s.", pool.current_num_threads(), gigabytes / seconds));

    let (first, read) = last.ok_or("nothing was streamed")?;
    for (index, bytes) in (first..).zip(read.bytes()?.chunks(BLOCK)) {
        let mut expected = vec![std::mem::MaybeUninit::new(0); BLOCK];
        decode(&asset[index % BLOCKS], &mut UploadPiece { offset: 0, bytes: &mut expected })?;
        let same = bytes.iter().zip(&expected).all(|(byte, expected)| {
            // SAFETY: all bytes were initialised above.
            *byte == unsafe { expected.assume_init() }
        });
        if !same {
            return Err(format!("block {index} is wrong").into());
        }
    }
    note("The last segment was read back, and is correct.");
    Ok(())
}
