//! Prepared requests do what plain ones do, step by step, whatever is asked.

use std::io::Write;
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::trace::{Event, Trace};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError,
    Contradiction, CreateError, Local, MemoryUsage, Pool, PoolCreateInfo, PreparedAllocation, ResourceKind,
    ScopeCreateInfo, Shared, Threading,
};

use crate::common::*;
use crate::said::said;

/// Multiplicative congruence: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 32) % limit
    }

    fn one_of<V: Copy>(&mut self, of: &[V]) -> V {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What is asked for. A pool is the number of one of [`pools`].
#[derive(Clone, Copy, Debug)]
struct Shape {
    info: AllocationCreateInfo<'static>,
    pool: Option<usize>,
    bits: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Memory(ResourceKind),
    Buffer(vk::BufferUsageFlags),
    Image(vk::ImageUsageFlags),
}

impl Shape {
    fn random(random: &mut Random, types: &[u32]) -> Self {
        let usages =
            [MemoryUsage::Unknown, MemoryUsage::GpuOnly, MemoryUsage::CpuOnly, MemoryUsage::CpuToGpu];
        let autos = [MemoryUsage::Auto, MemoryUsage::AutoPreferHost, MemoryUsage::GpuLazilyAllocated];
        let flags = [
            Flags::empty(),
            Flags::empty(),
            Flags::MAPPED,
            Flags::MAPPED | Flags::HOST_ACCESS_RANDOM,
            Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD,
            Flags::STRATEGY_MIN_MEMORY,
            Flags::STRATEGY_MIN_OFFSET | Flags::WITHIN_BUDGET,
            Flags::NEVER_ALLOCATE,
            Flags::CAN_ALIAS | Flags::DONT_BIND,
            Flags::DEDICATED_MEMORY,
            Flags::UPPER_ADDRESS,
            Flags::DEDICATED_MEMORY | Flags::NEVER_ALLOCATE,
            Flags::HOST_ACCESS_MASK,
        ];
        let what = match random.below(6) {
            0 => What::Memory(ResourceKind::Buffer),
            1 => What::Buffer(vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::TRANSFER_DST),
            2 => What::Buffer(vk::BufferUsageFlags::TRANSFER_SRC),
            3 => What::Image(vk::ImageUsageFlags::SAMPLED),
            _ => What::Memory(ResourceKind::Unknown),
        };
        let rarely = |random: &mut Random, value: u64| if random.below(8) == 0 { value } else { 0 };
        let random_alignment = random.one_of(&[4096, 65_536, 3]);
        let random_type = 1 << random.one_of(types);
        let info = AllocationCreateInfo {
            flags: random.one_of(&flags),
            usage: if random.below(4) == 0 { random.one_of(&autos) } else { random.one_of(&usages) },
            required_flags: random.one_of(&[vk::MemoryPropertyFlags::empty(), HOST_VISIBLE]),
            preferred_flags: random.one_of(&[vk::MemoryPropertyFlags::empty(), HOST_CACHED]),
            memory_type_bits: rarely(random, random_type) as u32,
            user_data: random.below(100),
            priority: if random.below(30) == 0 { 2.0 } else { 0.25 },
            min_alignment: rarely(random, random_alignment),
            name: (random.below(8) == 0).then_some("named"),
            ..AllocationCreateInfo::default()
        };
        let pool = (random.below(3) == 0).then(|| random.below(3) as usize);
        let bits = if random.below(4) == 0 { 1 << random.one_of(types) } else { !0 };
        Self { info, pool, bits, what }
    }

    fn in_pools<'a>(&self, pools: &'a [Pool]) -> AllocationCreateInfo<'a> {
        AllocationCreateInfo { pool: self.pool.map(|pool| &pools[pool]), ..self.info }
    }

    fn prepare<T: Threading>(&self, rig: &Rig<T>, pools: &[Pool]) -> Result<PreparedAllocation, CreateError> {
        let info = self.in_pools(pools);
        match self.what {
            What::Memory(ResourceKind::Unknown) => Ok(rig.allocator.prepare(self.bits, &info)?),
            // SAFETY: nothing is bound to the memory.
            What::Memory(kind) => Ok(unsafe { rig.allocator.prepare_of_kind(self.bits, kind, &info) }?),
            // SAFETY: the create-info is valid.
            What::Buffer(usage) => unsafe { rig.allocator.prepare_buffer(&buffer(64, usage), &info) },
            // SAFETY: the create-info is valid.
            What::Image(usage) => unsafe { rig.allocator.prepare_image(&square(16, usage), &info) },
        }
    }
}

fn buffer(size: u64, usage: vk::BufferUsageFlags) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(usage)
}

fn pools<T: Threading>(rig: &Rig<T>) -> Vec<Pool> {
    let (first, host) = (rig.types()[0], rig.types_with(HOST_VISIBLE, PROTECTED)[0]);
    [
        PoolCreateInfo { block_size: MIB, max_block_count: 3, ..PoolCreateInfo::new(first) },
        PoolCreateInfo {
            block_size: MIB,
            max_block_count: 1,
            algorithm: Algorithm::Linear,
            ..PoolCreateInfo::new(host)
        },
        PoolCreateInfo::new(host),
    ]
    .map(|info| rig.pool(&info).unwrap())
    .into()
}

enum Object {
    Nothing,
    Buffer(vk::Buffer),
    Image(vk::Image),
}

type Made = Result<(Object, Allocation), CreateError>;

/// As a plain request.
fn plainly<T: Threading>(rig: &Rig<T>, shape: &Shape, pools: &[Pool], size: u64, alignment: u64) -> Made {
    let info = shape.in_pools(pools);
    let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: shape.bits };
    Ok(match shape.what {
        What::Memory(ResourceKind::Unknown) => {
            (Object::Nothing, rig.allocator.allocate_memory(&requirements, &info)?)
        }
        What::Memory(kind) => {
            // SAFETY: nothing is bound to the memory.
            (Object::Nothing, unsafe { rig.allocator.allocate_memory_of_kind(&requirements, kind, &info) }?)
        }
        What::Buffer(usage) => {
            let (buffer, allocation) = rig.buffer(size, usage, &info)?;
            (Object::Buffer(buffer), allocation)
        }
        What::Image(usage) => {
            let (image, allocation) = rig.image(&square(size as u32 % 500, usage), &info)?;
            (Object::Image(image), allocation)
        }
    })
}

/// With a prepared request.
fn prepared<T: Threading>(
    rig: &Rig<T>,
    shape: &Shape,
    request: &PreparedAllocation,
    size: u64,
    alignment: u64,
) -> Made {
    Ok(match shape.what {
        What::Memory(_) => (Object::Nothing, rig.allocator.allocate_prepared(request, size, alignment)?),
        What::Buffer(usage) => {
            // SAFETY: the create-info is valid.
            let made = unsafe { rig.allocator.create_prepared_buffer(request, &buffer(size, usage)) }?;
            (Object::Buffer(made.0), made.1)
        }
        What::Image(usage) => {
            let info = square(size as u32 % 500, usage);
            // SAFETY: the create-info is valid.
            let made = unsafe { rig.allocator.create_prepared_image(request, &info) }?;
            (Object::Image(made.0), made.1)
        }
    })
}

fn end<T: Threading>(rig: &Rig<T>, (object, allocation): (Object, Allocation)) {
    match object {
        Object::Nothing => rig.free(allocation),
        Object::Buffer(buffer) => rig.destroy_buffer((buffer, allocation)),
        Object::Image(image) => rig.destroy_image((image, allocation)),
    }
}

/// What can be known of an allocation, but for its handle.
fn shown<T: Threading>(rig: &Rig<T>, allocation: &Allocation) -> String {
    let text = format!("{allocation:?}");
    let mapped = rig.allocator.map_memory(allocation).map(|_| {
        // SAFETY: it was mapped just now.
        unsafe { rig.allocator.unmap_memory(allocation) }.unwrap();
    });
    format!("{} {mapped:?}", text.split_once(" offset: ").unwrap().1)
}

/// Where a recording goes.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Tape {
    fn events(&self) -> Vec<Event> {
        let trace = Trace::read(&self.0.lock().unwrap()).unwrap();
        trace.records.into_iter().map(|record| record.event).collect()
    }
}

/// Runs a program on two allocators, plainly on one and prepared on the other, and compares them after each step, and
/// their recordings in the end.
fn alike<T: Form>(
    profile: &'static sublet::sim::Profile,
    seed: u64,
    (shapes, steps): (usize, usize),
    records: bool,
) {
    let rigs = [(); 2].map(|()| Rig::<T>::of_form(sublet::sim::Gpu::new(profile), &Options::default()));
    let tapes = [(); 2].map(|()| Tape::default());
    let [plain, other] = &rigs;
    let in_both = rigs.each_ref().map(|rig| pools(rig));
    let random = &mut Random(seed);
    let mut requests = Vec::new();
    for _ in 0..shapes {
        let shape = Shape::random(random, &plain.types());
        match shape.prepare(other, &in_both[1]) {
            Ok(request) => requests.push((shape, request)),
            Err(error) => {
                let refused = plainly(plain, &shape, &in_both[0], 64, 64).map(|_| ()).unwrap_err();
                assert_eq!(error, refused, "{shape:?}");
            }
        }
    }
    assert!(requests.len() > shapes / 8, "too many shapes are refused");
    // From here on, because a shape that cannot be prepared is not asked for again.
    for (rig, tape) in rigs.iter().zip(&tapes).filter(|_| records) {
        rig.allocator.start_recording(tape.clone()).unwrap();
    }
    let mut held = Vec::new();
    for step in 0..steps {
        let (shape, request) = &requests[random.below(requests.len() as u64) as usize];
        let size = match random.below(40) {
            0 => 0,
            1 => plain.block_size(0) / 2 + random.below(3) - 1,
            2..6 => random.below(2 * MIB),
            _ => 1 + random.below(64 * KIB),
        };
        let alignment = random.one_of(&[1, 16, 256, 256, 4096, 0, 3]);
        let one = plainly(plain, shape, &in_both[0], size, alignment);
        let two = prepared(other, shape, request, size, alignment);
        match (one, two) {
            (Ok(one), Ok(two)) => {
                assert_eq!(shown(plain, &one.1), shown(other, &two.1), "step {step}, {shape:?}");
                held.push((one, two));
            }
            (one, two) => {
                let [one, two] = [one, two].map(|made| made.map(|_| ()));
                assert_eq!(one, two, "step {step}, {shape:?}");
            }
        }
        assert_eq!(plain.snapshot().types, other.snapshot().types, "step {step}, {shape:?}");
        assert_eq!(plain.snapshot().usage, other.snapshot().usage, "step {step}, {shape:?}");
        assert_eq!(plain.gpu.live(), other.gpu.live(), "step {step}, {shape:?}");
        if held.len() > 100 || held.len() > 10 && random.below(2) == 0 {
            let (one, two) = held.swap_remove(random.below(held.len() as u64) as usize);
            end(plain, one);
            end(other, two);
        }
    }
    for (one, two) in held {
        end(plain, one);
        end(other, two);
    }
    if records {
        for rig in &rigs {
            rig.allocator.stop_recording().unwrap();
        }
        let [one, two] = tapes.each_ref().map(Tape::events);
        assert!(one.len() > steps);
        assert_eq!(one, two);
    }
    for (rig, pools) in rigs.iter().zip(in_both) {
        pools.into_iter().for_each(|pool| rig.destroy_pool(pool));
    }
    drop(requests);
}

#[test]
fn what_a_plain_request_gets_on_every_gpu() {
    on_every_profile(|profile| {
        for seed in 0..from_environment("SUBLET_CASES", 3) {
            alike::<Shared>(profile, seed, (40, 300), false);
            alike::<Shared>(profile, seed + 1000, (40, 100), true);
            alike::<Local>(profile, seed, (40, 100), false);
        }
    });
}

/// Texts, without times, handles and the caller, which are others.
fn told(work: impl FnOnce()) -> Vec<String> {
    let text = said(tracing::Level::TRACE, work);
    let lines = text.lines().map(|line| line.split_once(' ').unwrap().1.split(' '));
    let same = |word: &&str| !["caller=", "memory=", "nanoseconds="].iter().any(|it| word.starts_with(it));
    lines.map(|words| words.filter(same).collect::<Vec<_>>().join(" ")).collect()
}

/// What is allocated and what is said about it, for large, dedicated and refused requests and the usual ones.
#[test]
fn events_are_those_of_plain_requests() {
    on_every_profile(|profile| {
        let shapes = [Flags::empty(), Flags::MAPPED, Flags::DEDICATED_MEMORY, Flags::NEVER_ALLOCATE];
        let texts = [false, true].map(|prepares| {
            told(|| {
                let rig = Rig::new(profile);
                for flags in shapes {
                    let info = with_flags(MemoryUsage::CpuToGpu, flags);
                    let request = rig.allocator.prepare(!0, &info).unwrap();
                    for size in [0, 100, 64 * MIB, 1 << 62] {
                        let made = match prepares {
                            true => rig.allocator.allocate_prepared(&request, size, 64),
                            false => rig.memory(size, 64, &info),
                        };
                        rig.free_all(made);
                    }
                }
            })
        });
        assert!(texts[0].iter().any(|line| line.contains("no memory was allocated")));
        assert_eq!(texts[0], texts[1]);
    });
}

/// A recording that begins later tells each allocation's own alignment: the least one of the request is not added to it.
#[test]
fn the_least_alignment_is_not_added_to_a_larger_one() {
    let info = AllocationCreateInfo { min_alignment: 256, ..AllocationCreateInfo::new(MemoryUsage::GpuOnly) };
    let told = [false, true].map(|prepares| {
        let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
        let request = rig.allocator.prepare(!0, &info).unwrap();
        let held = [16, 256, 4096].map(|alignment| match prepares {
            true => rig.allocator.allocate_prepared(&request, 1000, alignment).unwrap(),
            false => rig.memory(1000, alignment, &info).unwrap(),
        });
        let tape = Tape::default();
        rig.allocator.start_recording(tape.clone()).unwrap();
        rig.allocator.stop_recording().unwrap();
        held.into_iter().for_each(|memory| rig.free(memory));
        tape.events()
    });
    assert_eq!(told[0].len(), 3);
    assert_eq!(told[0], told[1]);
}

#[test]
fn a_destroyed_pool_is_refused_also_when_another_has_its_number() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = PoolCreateInfo { block_size: MIB, min_block_count: 1, ..PoolCreateInfo::new(0) };
    let pool = rig.pool(&info).unwrap();
    let request = rig.allocator.prepare(!0, &AllocationCreateInfo::in_pool(&pool)).unwrap();
    let number = pool.number();
    rig.free(rig.allocator.allocate_prepared(&request, 256, 64).unwrap());
    rig.destroy_pool(pool);
    let refused = |size| rig.allocator.allocate_prepared(&request, size, 64).unwrap_err();
    assert_eq!(refused(256), AllocationError::ForeignPool);
    let another = rig.pool(&info).unwrap();
    assert_eq!(another.number(), number);
    let before = rig.snapshot();
    for size in [256, MIB - 1] {
        assert_eq!(refused(size), AllocationError::ForeignPool);
    }
    // SAFETY: the create-info is valid.
    let buffer = unsafe {
        rig.allocator.create_prepared_buffer(&request, &buffer(64, vk::BufferUsageFlags::VERTEX_BUFFER))
    };
    assert_eq!(buffer.unwrap_err(), CreateError::Allocation(AllocationError::ForeignPool));
    assert_eq!(rig.snapshot(), before);
    rig.destroy_pool(another);
}

#[test]
fn a_destroyed_pool_is_refused_in_a_shard() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = PoolCreateInfo { block_size: 64 * MIB, min_block_count: 1, ..PoolCreateInfo::new(0) };
    let pool = rig.pool(&info).unwrap();
    let request = rig.allocator.prepare(!0, &AllocationCreateInfo::in_pool(&pool)).unwrap();
    rig.allocator.settle_in_pool(&pool).unwrap();
    for _ in 0..100 {
        rig.free(rig.allocator.allocate_prepared(&request, 256, 64).unwrap());
    }
    rig.destroy_pool(pool);
    let another = rig.pool(&info).unwrap();
    rig.allocator.settle_in_pool(&another).unwrap();
    let kept = rig.memory(256, 64, &AllocationCreateInfo::in_pool(&another)).unwrap();
    for _ in 0..100 {
        let refused = rig.allocator.allocate_prepared(&request, 256, 64);
        assert_eq!(refused.unwrap_err(), AllocationError::ForeignPool);
    }
    rig.free(kept);
    rig.destroy_pool(another);
}

#[test]
fn another_allocator_refuses_it() {
    let profile = sublet::sim::Profile::by_name("lavapipe").unwrap();
    let (rig, another) = (Rig::new(profile), Rig::new(profile));
    let request = rig.allocator.prepare(!0, &AllocationCreateInfo::default()).unwrap();
    let refused = another.allocator.allocate_prepared(&request, 256, 64);
    assert_eq!(refused.unwrap_err(), AllocationError::ForeignRequest);
    let info = buffer(64, vk::BufferUsageFlags::VERTEX_BUFFER);
    // SAFETY: the create-info is valid.
    let refused = unsafe { another.allocator.create_prepared_buffer(&request, &info) };
    assert_eq!(refused.unwrap_err(), CreateError::Allocation(AllocationError::ForeignRequest));
}

#[test]
fn a_scope_is_refused() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let scope = rig.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
    let refused = rig.allocator.prepare(!0, &AllocationCreateInfo::in_scope(&scope)).unwrap_err();
    assert_eq!(refused, AllocationError::Contradiction(Contradiction::PreparedInScope));
    // SAFETY: nothing was allocated in it.
    unsafe { rig.allocator.free_scope(scope) }.unwrap();
}

/// A buffer of another usage, or whose requirements are others, is placed as if nothing had been prepared.
#[test]
fn what_does_not_suit_is_resolved_anew() {
    on_every_profile(|profile| {
        let [plain, other] = [Rig::new(profile), Rig::new(profile)];
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (copied, used) = (vk::BufferUsageFlags::TRANSFER_SRC, vk::BufferUsageFlags::VERTEX_BUFFER);
        // SAFETY: the create-info is valid.
        let request = unsafe { other.allocator.prepare_buffer(&buffer(64, copied), &auto) }.unwrap();
        for usage in [copied, used, copied | used] {
            let one = plain.buffer(1000, usage, &auto).unwrap();
            // SAFETY: the create-info is valid.
            let two =
                unsafe { other.allocator.create_prepared_buffer(&request, &buffer(1000, usage)) }.unwrap();
            assert_eq!(shown(&plain, &one.1), shown(&other, &two.1));
            plain.destroy_buffer(one);
            other.destroy_buffer(two);
        }
    });
}
