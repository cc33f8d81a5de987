//! Compares block sources in a `BlockVector` with the library's specialised forms, in instructions, which are the same
//! on every run.
//!
//! `cargo bench --bench vectors`. Valgrind counts the instructions. Without it, or with `--test`, each program runs
//! once and checks its end state. A row `name: way` is a program and its implementation. The block sources here are
//! written as a program would write them.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a bench that fails is to stop, and its numbers are small"
)]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::ptr::NonNull;

use ash::vk;
use sublet::metadata::{Alignment, Metadata, RangeMetadata, Request, Span, Tlsf};
use sublet::retire::{Clock, Ticket};
use sublet::sim::{NullGpu, Profile};
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::vector::{Backing, BlockVector, GrantOf, Growth, GrowthLimits, NextBlock, Policy, Refusal};
use sublet::{
    Allocation, AllocationCreateFlags, AllocationCreateInfo, AllocationError, Allocator, AllocatorCreateInfo,
    CreateError, MemoryUsage, VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateInfo,
};

/// Repetitions of each program while it is counted.
const ROUNDS: u64 = 2000;

/// The counted function. Valgrind finds it by its name.
#[inline(never)]
fn counted(mut round: impl FnMut()) {
    for _ in 0..ROUNDS {
        round();
    }
}

type Program = (&'static str, fn());

const PROGRAMS: &[Program] = &[
    ("a frame of 256 uploads: UploadArena", || frames_of_the_arena(256)),
    ("a frame of 256 uploads: pages in a vector", || frames_of_the_vector(256)),
    ("a frame of 1 upload: UploadArena", || frames_of_the_arena(1)),
    ("a frame of 1 upload: pages in a vector", || frames_of_the_vector(1)),
    ("a range, allocated and freed: VirtualBlock", ranges_of_the_block),
    ("a range, allocated and freed: a vector of one block", ranges_of_the_vector),
    ("a pair of device memory: the allocator", pairs_of_the_allocator),
    ("a pair of device memory: the engine alone", pairs_of_the_engine),
    ("a pair of device memory: a vector", pairs_of_the_vector),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, run, at] = arguments.as_slice() {
        if run == "--run" {
            return PROGRAMS[at.parse::<usize>().unwrap()].1();
        }
    }
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    let counts = !arguments.iter().any(|argument| argument == "--test") && valgrind.is_ok();
    for (at, (name, run)) in PROGRAMS.iter().enumerate() {
        if counts {
            println!("{:>9.1}  {name}", count(at) as f64 / ROUNDS as f64);
        } else {
            run();
        }
    }
}

/// Returns the instructions of all rounds of a program.
fn count(at: usize) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=vectors::counted*")
        .arg(std::env::current_exe().unwrap())
        .args(["--run", &at.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let line = said.lines().find(|line| line.contains("Collected :")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn with_allocator(run: impl FnOnce(&Allocator)) {
    let gpu = NullGpu::new(Profile::by_name("nvidia-h200").unwrap());
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    // SAFETY: the null device outlives the allocator: it is made before and dropped after.
    run(&unsafe { Allocator::new(&info) }.unwrap());
}

/// Bytes of an upload page.
const PAGE: u64 = 65_536;

fn frames_of_the_arena(uploads: u32) {
    with_allocator(|allocator| {
        let info = UploadArenaCreateInfo { page_size: PAGE, ..Default::default() };
        // SAFETY: nothing is submitted.
        let mut arena = unsafe { UploadArena::new(allocator, &info) }.unwrap();
        frames(|clock, ticket| {
            arena.collect(clock).unwrap();
            for _ in 0..uploads {
                black_box(arena.allocate(black_box(256), black_box(256)).unwrap());
            }
            arena.flush(ticket).unwrap();
        });
        assert_eq!(arena.statistics().pages, 1);
    });
}

fn frames_of_the_vector(uploads: u32) {
    with_allocator(|allocator| {
        let policy = Policy { empty_blocks_kept: 2, idle_collects: Some(120), ..Policy::default() };
        let pages = BlockVector::new(Pages { allocator }, Tlsf::exact(PAGE), policy).unwrap();
        let mut arena = VectorArena { pages, current: None, touched: Vec::new() };
        frames(|clock, ticket| {
            arena.pages.collect(clock).unwrap();
            for _ in 0..uploads {
                black_box(arena.allocate(black_box(256), black_box(256)));
            }
            arena.flush(ticket);
        });
        assert_eq!(arena.pages.statistics().blocks, 1);
        arena.pages.clear();
    });
}

/// Runs frames. Each collects the previous frame's pages, then uses as many.
fn frames(mut frame: impl FnMut(&Clock, Ticket)) {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut round = || {
        let ticket = clock.open(timeline);
        frame(&clock, ticket);
        clock.discard(ticket).unwrap();
    };
    // The first round allocates the page.
    round();
    counted(round);
}

/// A block source of upload pages.
struct Pages<'a> {
    allocator: &'a Allocator,
}

struct Page {
    buffer: vk::Buffer,
    allocation: Allocation,
    pointer: NonNull<u8>,
}

/// The current page of uploads, and the offset of the next one.
#[derive(Debug)]
struct Cursor {
    buffer: vk::Buffer,
    pointer: NonNull<u8>,
    next: u64,
    size: u64,
}

impl<M: RangeMetadata> Backing<M> for Pages<'_> {
    type Block = Page;
    type Item = Cursor;
    type Error = CreateError;

    fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(Growth::fixed(PAGE).next(request.map_or(0, |request| request.size), limits.largest))
    }
    fn create(&self, &size: &u64) -> Result<Page, CreateError> {
        let buffer = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        let flags = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED;
        let info = AllocationCreateInfo { flags, usage: MemoryUsage::Auto, ..Default::default() };
        // SAFETY: the usage needs nothing enabled.
        let (buffer, allocation) = unsafe { self.allocator.create_buffer(&buffer, &info) }?;
        let pointer = allocation.mapped_pointer().unwrap().cast();
        Ok(Page { buffer, allocation, pointer })
    }
    fn destroy(&self, page: Page) {
        // SAFETY: nothing is submitted.
        unsafe { self.allocator.destroy_buffer(page.buffer, page.allocation) }.unwrap();
    }
    fn realize(&self, page: &mut Page, span: &Span) -> Result<Cursor, Refusal<CreateError>> {
        Ok(Cursor { buffer: page.buffer, pointer: page.pointer, next: 0, size: span.size })
    }
}

/// An arena that grants pages as a whole. Each page waits for one ticket.
struct VectorArena<'a> {
    pages: BlockVector<Pages<'a>, Tlsf>,
    current: Option<GrantOf<Pages<'a>, Tlsf>>,
    touched: Vec<GrantOf<Pages<'a>, Tlsf>>,
}

impl VectorArena<'_> {
    #[inline(always)]
    fn allocate(&mut self, size: u64, alignment: u64) -> (NonNull<u8>, vk::Buffer, u64, u64) {
        if size != 0 && alignment.is_power_of_two() && alignment <= 4096 {
            if let Some(current) = &mut self.current {
                if let Some(upload) = current.item.take(size, alignment) {
                    return upload;
                }
            }
        }
        self.another_page(size, alignment)
    }

    #[cold]
    #[inline(never)]
    fn another_page(&mut self, size: u64, alignment: u64) -> (NonNull<u8>, vk::Buffer, u64, u64) {
        let page = self.pages.allocate(&Request::new(size.max(PAGE), Alignment::ONE)).unwrap();
        self.touched.extend(self.current.replace(page));
        self.current.as_mut().unwrap().item.take(size, alignment).unwrap()
    }

    fn flush(&mut self, ticket: Ticket) {
        for page in self.touched.drain(..).chain(self.current.take()) {
            self.pages.retire(ticket, page).unwrap();
        }
    }
}

impl Cursor {
    #[inline]
    fn take(&mut self, size: u64, alignment: u64) -> Option<(NonNull<u8>, vk::Buffer, u64, u64)> {
        let padding = self.next.wrapping_neg() & (alignment - 1);
        let rest = (self.size - self.next).checked_sub(padding)?;
        if size > rest {
            return None;
        }
        let offset = self.next + padding;
        self.next = offset + size;
        // SAFETY: the page has this many bytes.
        Some((unsafe { self.pointer.add(offset as usize) }, self.buffer, offset, size))
    }
}

/// Returns a list of sizes, log-uniform from 256 to 64 Ki, each with the index of the live range that it replaces.
fn churn(live: usize) -> Vec<(u64, usize)> {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let size = |random: &mut fastrand::Rng| {
        let exponent = 8 + random.u64(..8);
        (1 << exponent) + random.u64(..1 << exponent)
    };
    (0..live + ROUNDS as usize).map(|_| (size(&mut random), random.usize(..live))).collect()
}

/// Live ranges of a program that replaces one at a time.
const LIVE: usize = 2000;
const SPACE: u64 = 256 << 20;

/// Fills, replaces while being counted, and empties.
fn replace<T>(mut allocate: impl FnMut(u64) -> T, mut free: impl FnMut(T)) {
    let script = churn(LIVE);
    let mut live: Vec<Option<T>> = script[..LIVE].iter().map(|&(size, _)| Some(allocate(size))).collect();
    let mut rest = script[LIVE..].iter();
    counted(|| {
        let &(size, at) = rest.next().unwrap();
        free(live[at].take().unwrap());
        live[at] = Some(allocate(size));
    });
    live.into_iter().flatten().for_each(free);
}

const ALIGNMENT: u64 = 256;

fn ranges_of_the_block() {
    let block = VirtualBlock::new(&VirtualBlockCreateInfo { size: SPACE, ..Default::default() }).unwrap();
    let block = std::cell::RefCell::new(block);
    let info = VirtualAllocationCreateInfo { alignment: ALIGNMENT, ..Default::default() };
    replace(
        |size| {
            let info = VirtualAllocationCreateInfo { size, user_data: size, ..info };
            block.borrow_mut().allocate(&info).unwrap()
        },
        |range| block.borrow_mut().free(range).unwrap(),
    );
    assert!(block.borrow().is_empty());
}

/// Blocks without memory. An item is the program's data for a range.
struct Units;

impl<M: RangeMetadata> Backing<M> for Units {
    type Block = ();
    type Item = u64;
    type Error = std::fmt::Error;

    fn capacity_for(&self, _: Option<&Request>, _: &GrowthLimits) -> Option<NextBlock<u64>> {
        Some(Growth::fixed(SPACE).next(0, 0))
    }
    fn create(&self, _: &u64) -> Result<(), Self::Error> {
        Ok(())
    }
    fn destroy(&self, (): ()) {}
    fn realize(&self, (): &mut (), span: &Span) -> Result<u64, Refusal<Self::Error>> {
        Ok(span.size)
    }
}

fn request(size: u64) -> Request {
    Request::new(size, Alignment::new(ALIGNMENT).unwrap())
}

fn ranges_of_the_vector() {
    let vector = BlockVector::new(Units, Tlsf::new(SPACE), Policy::fixed()).unwrap();
    let vector = std::cell::RefCell::new(vector);
    replace(
        |size| vector.borrow_mut().allocate(&request(size)).unwrap(),
        |range| vector.borrow_mut().free(range).unwrap(),
    );
    assert_eq!(vector.borrow().statistics().live, 0);
}

fn pairs_of_the_allocator() {
    with_allocator(|allocator| {
        let needs = |size| vk::MemoryRequirements { size, alignment: ALIGNMENT, memory_type_bits: !0 };
        replace(
            |size| allocator.allocate_memory(&needs(size), &AllocationCreateInfo::default()).unwrap(),
            // SAFETY: nothing was bound to it.
            |allocation| unsafe { allocator.free_memory(allocation) }.unwrap(),
        );
    });
}

fn pairs_of_the_engine() {
    let mut engine = Tlsf::new(SPACE);
    engine.add_region(&SPACE).unwrap();
    let engine = std::cell::RefCell::new(engine);
    replace(
        |size| engine.borrow_mut().allocate(&request(size)).unwrap().0,
        |key| assert!(engine.borrow_mut().free(key).is_ok()),
    );
    assert_eq!(engine.borrow().usage().used, 0);
}

/// Blocks of device memory. An item is a place in a block.
struct Memory<'a> {
    allocator: &'a Allocator,
}

impl<M: RangeMetadata> Backing<M> for Memory<'_> {
    type Block = Allocation;
    type Item = (vk::DeviceMemory, u64);
    type Error = AllocationError;

    fn capacity_for(&self, request: Option<&Request>, limits: &GrowthLimits) -> Option<NextBlock<u64>> {
        let growth = Growth { first: SPACE >> 3, preferred: SPACE };
        Some(growth.next(request.map_or(0, |request| request.size), limits.largest))
    }
    fn create(&self, &size: &u64) -> Result<Allocation, AllocationError> {
        let needs = vk::MemoryRequirements { size, alignment: ALIGNMENT, memory_type_bits: !0 };
        let flags = AllocationCreateFlags::DEDICATED_MEMORY;
        self.allocator.allocate_memory(&needs, &AllocationCreateInfo { flags, ..Default::default() })
    }
    fn destroy(&self, block: Allocation) {
        // SAFETY: nothing was bound to it.
        unsafe { self.allocator.free_memory(block) }.unwrap();
    }
    fn realize(&self, block: &mut Allocation, span: &Span) -> Result<Self::Item, Refusal<AllocationError>> {
        Ok((block.memory(), block.offset() + span.offset))
    }
}

fn pairs_of_the_vector() {
    with_allocator(|allocator| {
        let vector = BlockVector::new(Memory { allocator }, Tlsf::new(SPACE), Policy::default()).unwrap();
        let vector = std::cell::RefCell::new(vector);
        replace(
            |size| vector.borrow_mut().allocate(&request(size)).unwrap(),
            |granted| vector.borrow_mut().free(granted).unwrap(),
        );
        assert_eq!(vector.borrow().statistics().live, 0);
    });
}
