//! Bandwidth of uploads, beside the copy of the bytes alone and the same with plain Vulkan calls.
//!
//! Run with `cargo bench -p sublet-frame --bench upload`. It uses the best device of a driver, or else a simulated one,
//! whose figures mean nothing. Arguments: `--device` as in the examples, `--seconds S` for each figure, and
//! `--memory auto|host|device` for the memory of uploads. `--test` runs each row once.
//!
//! Each row uploads the bytes of 256 MiB, which do not fit the caches, to a buffer or an image of the device, in
//! chunks. At most two submissions of 32 MiB or more are in flight. Memory that is used again is created before the
//! measurement. Each row compares the last chunk with its source.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a benchmark, with buffers and regions that are valid"
)]

#[path = "upload/host_image.rs"]
mod host_image;
#[path = "upload/raw.rs"]
mod raw;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ash::vk;
use sublet::upload::{UploadArenaCreateInfo, UploadMemory};
use sublet::{Allocation, AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_examples::{Arguments, Context, Result, frame_features};
use sublet_frame::{
    Buffer, CommandList, Frames, FramesCreateInfo, Image, ImageData, ImagePart, ListError, QueueInfo,
    UploadPiece,
};

use crate::host_image::HostImage;
use crate::raw::Raw;

const SOURCE: usize = 256 << 20;
/// Bytes of a submission, at least.
const BATCH: usize = 32 << 20;
/// Bytes of the target.
const TARGET: usize = 64 << 20;
const SIDE: u32 = 4096;
const IN_FLIGHT: usize = 2;
/// Smaller parts are not worth a thread.
const PART: usize = 64 << 10;

/// Sizes of a chunk; the last is an image.
const CHUNKS: [(&str, usize, bool); 5] = [
    ("64 KiB", 64 << 10, false),
    ("1 MiB", 1 << 20, false),
    ("16 MiB", 16 << 20, false),
    ("64 MiB", 64 << 20, false),
    ("64 MiB image", 64 << 20, true),
];

struct Settings {
    time: Duration,
    memory: UploadMemory,
}

fn settings(arguments: &mut Arguments) -> Result<Settings> {
    let test = arguments.flag("--test");
    // Cargo adds it.
    arguments.flag("--bench");
    let seconds = arguments.value("--seconds")?.map_or(Ok(0.5), |seconds| seconds.parse())?;
    let memory = match arguments.value("--memory")?.as_deref() {
        None | Some("auto") => UploadMemory::Auto,
        Some("host") => UploadMemory::PreferHost,
        Some("device") => UploadMemory::PreferDevice,
        Some(other) => return Err(format!("no memory {other:?}: say auto, host or device").into()),
    };
    Ok(Settings { time: Duration::from_secs_f64(if test { 0.0 } else { seconds }), memory })
}

const HELP: &str = "
  --seconds S       for each figure (0.5)
  --memory MEMORY   of uploads: auto (the default), host or device
  --test            runs each row once";

fn main() -> std::process::ExitCode {
    sublet_examples::run_with(HELP, settings, |context, settings| measure_all(context, &settings))
}

/// Drivers import whole pages.
#[derive(Clone)]
#[repr(align(4096))]
struct Page([u8; 4096]);

struct Bytes(Vec<Page>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), size_of_val(&*self.0)) }
    }
}

/// The bytes to upload, from a position that moves on with each chunk.
#[derive(Clone)]
struct Source {
    bytes: Arc<Bytes>,
    next: usize,
}

impl Source {
    fn new() -> Self {
        let mut pages = vec![Page([0; 4096]); SOURCE / 4096];
        let mut random = fastrand::Rng::with_seed(7);
        for page in &mut pages {
            page.0.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.u64(..).to_le_bytes()));
        }
        Self { bytes: Arc::new(Bytes(pages)), next: 0 }
    }

    /// Returns the position of the next chunk.
    fn chunk(&mut self, size: usize) -> usize {
        if self.next + size > self.bytes.len() {
            self.next = 0;
        }
        self.next += size;
        self.next - size
    }
}

/// A copy by a worker: from a position of the source to an address.
type Part = (usize, usize, usize);

/// Threads that copy. They live longer than an upload, as those of a program do.
struct Crew {
    bytes: Arc<Bytes>,
    workers: Vec<Sender<Vec<Part>>>,
    done: Receiver<()>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

fn copy(bytes: &[u8], (from, to, size): Part) {
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to);
    unsafe { target.copy_from_nonoverlapping(bytes[from..from + size].as_ptr(), size) };
}

impl Crew {
    fn new(bytes: &Arc<Bytes>, count: usize) -> Self {
        let (finished, done) = channel();
        let (mut workers, mut threads) = (Vec::new(), Vec::new());
        // The caller is one of them.
        for _ in 1..count {
            let (sender, parts) = channel::<Vec<Part>>();
            let (bytes, finished) = (Arc::clone(bytes), finished.clone());
            threads.push(std::thread::spawn(move || {
                for parts in parts {
                    parts.into_iter().for_each(|part| copy(&bytes, part));
                    finished.send(()).unwrap();
                }
            }));
            workers.push(sender);
        }
        Self { bytes: Arc::clone(bytes), workers, done, threads }
    }

    /// Fills the pieces with the bytes from `from` on.
    fn fill<'a>(&self, from: usize, pieces: impl IntoIterator<Item = UploadPiece<'a>>) {
        let count = self.workers.len() + 1;
        let pieces: Vec<_> = pieces.into_iter().collect();
        let total: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let share = total.div_ceil(count).next_multiple_of(64).max(PART);
        let mut shares: VecDeque<Vec<Part>> = VecDeque::from([Vec::new()]);
        let mut room = share;
        for piece in pieces {
            let mut from = from + usize::try_from(piece.offset).unwrap();
            let (mut to, mut rest) = (piece.bytes.as_mut_ptr().expose_provenance(), piece.bytes.len());
            while rest > 0 {
                if room == 0 {
                    shares.push_back(Vec::new());
                    room = share;
                }
                let size = rest.min(room);
                shares.back_mut().unwrap().push((from, to, size));
                (from, to, rest, room) = (from + size, to + size, rest - size, room - size);
            }
        }
        let own = shares.pop_front().unwrap();
        let others = shares.len();
        for (worker, parts) in self.workers.iter().zip(shares) {
            worker.send(parts).unwrap();
        }
        own.into_iter().for_each(|part| copy(&self.bytes, part));
        // The pieces are borrowed until all are done.
        (0..others).for_each(|_| self.done.recv().unwrap());
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.workers.clear();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// Repeats a round of `bytes`, and returns the bandwidth in 10^9 bytes per second. `finish` waits for the device.
fn bandwidth(
    settings: &Settings,
    bytes: usize,
    mut round: impl FnMut() -> Result<()>,
    mut finish: impl FnMut() -> Result<()>,
) -> Result<f64> {
    if !settings.time.is_zero() {
        (0..2 * IN_FLIGHT).try_for_each(|_| round())?;
        finish()?;
    }
    let (start, mut rounds) = (Instant::now(), 0_u32);
    while rounds == 0 || start.elapsed() < settings.time {
        round()?;
        rounds += 1;
    }
    finish()?;
    let bytes = f64::from(rounds) * f64::from(u32::try_from(bytes)?);
    Ok(bytes / start.elapsed().as_secs_f64() / 1e9)
}

/// Chunks of a submission.
fn chunks(size: usize) -> usize {
    (BATCH / size).max(1)
}

fn image_info() -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: SIDE, height: SIDE, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(
            vk::ImageUsageFlags::TRANSFER_DST
                | vk::ImageUsageFlags::TRANSFER_SRC
                | vk::ImageUsageFlags::SAMPLED,
        )
}

fn target_info() -> vk::BufferCreateInfo<'static> {
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    vk::BufferCreateInfo::default().size(TARGET.try_into().unwrap()).usage(usage)
}

/// Frames, and the targets of uploads.
struct Uploads {
    frames: Frames,
    buffer: Buffer,
    image: Image,
}

impl Uploads {
    fn new(context: &Context, allocator: &Arc<Allocator>, memory: UploadMemory) -> Result<Self> {
        let queues = [QueueInfo { queue: context.queue(), family: context.queue_family_index() }];
        let (instance, device, physical) = (context.instance(), context.device(), context.physical_device());
        let info = FramesCreateInfo {
            features: frame_features(context),
            frames_in_flight: IN_FLIGHT,
            uploads: UploadArenaCreateInfo { memory, ..UploadArenaCreateInfo::default() },
            ..FramesCreateInfo::new(instance, device, physical, context.api_version(), allocator, &queues)
        };
        let frames = unsafe { Frames::new(&info) }?;
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let buffer = unsafe { frames.create_buffer(&target_info(), &auto) }?;
        let image = unsafe { frames.create_image(&image_info(), &auto) }?;
        Ok(Self { frames, buffer, image })
    }

    fn round(&mut self, record: impl FnOnce(&mut CommandList, &Buffer, &Image) -> Result<()>) -> Result<()> {
        self.frames.begin()?;
        let queue = self.frames.queue(0);
        let mut list = self.frames.list(queue)?;
        record(&mut list, &self.buffer, &self.image)?;
        self.frames.submit(queue, [list])?;
        self.frames.end();
        Ok(())
    }

    /// Compares the last chunk of the target with the source.
    fn check(&mut self, source: &Source, size: usize, is_image: bool) -> Result<()> {
        self.frames.begin()?;
        let queue = self.frames.queue(0);
        let mut list = self.frames.list(queue)?;
        let end = u64::try_from(chunks(size) * size)?;
        let read = if is_image {
            list.read_image(&self.image, 0, 0..1, vk::ImageAspectFlags::COLOR)?
        } else {
            list.read_buffer(&self.buffer, end - u64::try_from(size)?..end)?
        };
        self.frames.submit(queue, [list])?;
        self.frames.end();
        self.frames.wait(&read)?;
        let same = *read.bytes()? == source.bytes[source.next - size..source.next];
        if same { Ok(()) } else { Err("the uploaded bytes differ".into()) }
    }
}

/// Uploads chunks with `upload`, or with `upload_with` on several threads.
fn upload(
    uploads: &mut Uploads,
    source: &mut Source,
    crew: Option<&Crew>,
    size: usize,
    is_image: bool,
) -> Result<()> {
    uploads.round(|list, buffer, image| {
        for at in 0..chunks(size) {
            let from = source.chunk(size);
            let bytes = &source.bytes[from..from + size];
            let (at, bytes_count) = (u64::try_from(at * size)?, u64::try_from(size)?);
            match (crew, is_image) {
                (None, false) => list.upload(buffer, at, bytes)?,
                (None, true) => list.upload_image(image, &[ImageData::new(0, 0, bytes)])?,
                (Some(crew), false) => list.upload_with(buffer, at, bytes_count, |pieces| {
                    crew.fill(from, pieces);
                    Ok::<(), ListError>(())
                })?,
                (Some(crew), true) => {
                    list.upload_image_with(image, &[ImagePart::new(0, 0..1)], |pieces| {
                        crew.fill(from, pieces.into_iter().map(|piece| piece.data));
                        Ok::<(), ListError>(())
                    })?
                }
            }
        }
        Ok(())
    })
}

/// Copies from the source without staging memory, if the driver can import it.
fn imported(settings: &Settings, uploads: &mut Uploads, source: &mut Source) -> Result<()> {
    let info = vk::BufferCreateInfo::default().usage(vk::BufferUsageFlags::TRANSFER_SRC);
    let import = |uploads: &Uploads, source: &Source, size: usize| {
        let memory = NonNull::slice_from_raw_parts(NonNull::from(&source.bytes[..]).cast::<u8>(), size);
        let (info, owner) = (info.size(size.try_into().unwrap()), Arc::clone(&source.bytes));
        unsafe { uploads.frames.import_host_memory(&info, memory, owner) }
    };
    let start = Instant::now();
    let part = match import(uploads, source, TARGET) {
        Ok(part) => part,
        Err(error) => {
            println!("\nnot imported: {error}");
            return Ok(());
        }
    };
    let import_time = start.elapsed();
    drop(part);
    let release_time = start.elapsed() - import_time;
    let memory = import(uploads, source, SOURCE)?;
    print_row("imported host memory", |size, is_image| {
        let cell = RefCell::new(&mut *uploads);
        let round = || {
            cell.borrow_mut().round(|list, buffer, image| {
                for at in 0..chunks(size) {
                    let from = u64::try_from(source.chunk(size))?;
                    if is_image {
                        unsafe { list.copy_buffer_to_image(&memory, image, &[whole_image(from)]) }?;
                    } else {
                        let (to, size) = (u64::try_from(at * size)?, u64::try_from(size)?);
                        let region = vk::BufferCopy { src_offset: from, dst_offset: to, size };
                        list.copy_buffer(&memory, buffer, &[region])?;
                    }
                }
                Ok(())
            })
        };
        let figure =
            bandwidth(settings, size * chunks(size), round, || Ok(cell.borrow().frames.wait_idle()?))?;
        uploads.check(source, size, is_image)?;
        Ok(Some(figure))
    })?;
    println!("\nimport of 64 MiB: {import_time:.1?}, release: {release_time:.1?}");
    Ok(())
}

fn whole_image(buffer_offset: u64) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        buffer_offset,
        image_subresource: vk::ImageSubresourceLayers {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            mip_level: 0,
            base_array_layer: 0,
            layer_count: 1,
        },
        image_extent: image_info().extent,
        ..Default::default()
    }
}

fn print_row(name: &str, mut cell: impl FnMut(usize, bool) -> Result<Option<f64>>) -> Result<()> {
    let mut row = format!("| {name:<26} |");
    for (_, size, is_image) in CHUNKS {
        row += &cell(size, is_image)?
            .map_or_else(|| "       - |".to_owned(), |figure| format!(" {figure:>7.1} |"));
    }
    println!("{row}");
    Ok(())
}

fn measure_all(context: &Context, settings: &Settings) -> Result<()> {
    let allocator = Arc::new(unsafe { Allocator::new(&context.allocator_info()) }?);
    let mut source = Source::new();
    let mut raw = Raw::new(context, &allocator)?;
    let memory_type = |allocation: &Allocation| -> Result<String> {
        let index = usize::try_from(allocation.memory_type_index())?;
        Ok(format!("{index} {:?}", context.memory_properties().memory_types[index].property_flags))
    };
    if let Some(memory) = &raw.slots[0].memory {
        println!("staging memory: type {}", memory_type(memory)?);
    }
    println!("memory of uploads: {:?}; GB/s, by size of a chunk\n", settings.memory);
    let names: String = CHUNKS.iter().map(|(name, ..)| format!(" {name} |")).collect();
    println!("| {:<26} |{names}\n|---|{}", "", "---:|".repeat(CHUNKS.len()));
    print_row("copy by the device alone", |size, is_image| {
        let bytes = size * chunks(size);
        // Two closures use it in turn.
        let raw = RefCell::new(&mut raw);
        let round = || raw.borrow_mut().round(None, size, is_image);
        bandwidth(settings, bytes, round, || raw.borrow().finish()).map(Some)
    })?;
    print_row("copy by one thread alone", |size, is_image| {
        if is_image {
            return Ok(None);
        }
        let address = raw.slots[0].address;
        let round = || {
            for at in 0..chunks(size) {
                let from = source.chunk(size);
                copy(&source.bytes, (from, black_box(address) + at * size, size));
            }
            Ok(())
        };
        bandwidth(settings, size * chunks(size), round, || Ok(())).map(Some)
    })?;
    print_row("plain Vulkan", |size, is_image| {
        let raw = RefCell::new(&mut raw);
        let round = || raw.borrow_mut().round(Some(&mut source), size, is_image);
        bandwidth(settings, size * chunks(size), round, || raw.borrow().finish()).map(Some)
    })?;
    drop(raw);

    let mut uploads = Uploads::new(context, &allocator, settings.memory)?;
    let crews = [None, Some(1), Some(2), Some(4), Some(8)];
    for threads in crews {
        let crew = threads.map(|count| Crew::new(&source.bytes, count));
        let name = threads.map_or("upload".to_owned(), |count| format!("upload_with, {count} threads"));
        print_row(&name, |size, is_image| {
            let cell = RefCell::new(&mut uploads);
            let round = || upload(&mut cell.borrow_mut(), &mut source, crew.as_ref(), size, is_image);
            let figure =
                bandwidth(settings, size * chunks(size), round, || Ok(cell.borrow().frames.wait_idle()?))?;
            uploads.check(&source, size, is_image)?;
            Ok(Some(figure))
        })?;
    }
    imported(settings, &mut uploads, &mut source)?;
    if let Some(host_image) = HostImage::new(context, &allocator)? {
        print_row("VK_EXT_host_image_copy", |size, is_image| {
            let figure = || bandwidth(settings, size, || host_image.round(&mut source), || Ok(()));
            is_image.then(figure).transpose()
        })?;
    } else {
        println!("\nno VK_EXT_host_image_copy");
    }
    let Uploads { frames, buffer, image } = uploads;
    println!("\nupload pages: {} MiB", frames.statistics().upload_bytes >> 20);
    drop((buffer, image, frames));
    let allocator = Arc::into_inner(allocator).ok_or("the allocator is still in use")?;
    let leaks = allocator.destroy();
    if leaks.is_empty() { Ok(()) } else { Err(format!("leaks: {leaks:?}").into()) }
}
