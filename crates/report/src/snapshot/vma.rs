//! The schema of VMA's statistics strings from VMA 3.0 on, which `stats_string` also writes.
//!
//! The sums in it are not read, because they follow from the rest.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor};

use super::error::{FaultPosition, ReadSnapshotError, SnapshotFault};
use super::parts::{Block, Chunk, Dedicated, Device, Entry, Heap, MemoryType, Vector};
use super::{Snapshot, check, text};
use crate::cast::index;
use sublet::ResourceKind;

#[derive(Deserialize)]
pub(super) struct VmaDocument {
    #[serde(rename = "General")]
    general: General,
    #[serde(rename = "MemoryInfo")]
    heaps: Numbered<OfHeap, VmaHeap>,
    #[serde(rename = "DefaultPools")]
    defaults: Option<Numbered<OfType, VmaVector>>,
    #[serde(rename = "CustomPools")]
    pools: Option<Numbered<OfType, Vec<VmaVector>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct General {
    #[serde(rename = "GPU")]
    gpu: Option<Box<str>>,
    api_version: Option<Box<str>>,
    device_type: Option<u32>,
    max_memory_allocation_count: Option<u32>,
    buffer_image_granularity: Option<u64>,
    non_coherent_atom_size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaHeap {
    flags: Vec<Flag>,
    size: u64,
    budget: VmaBudget,
    memory_pools: Numbered<OfType, VmaType>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaBudget {
    budget_bytes: u64,
    usage_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaType {
    flags: Vec<Flag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaVector {
    name: Option<Box<str>>,
    preferred_block_size: u64,
    blocks: Numbered<OfBlock, VmaBlock>,
    dedicated_allocations: Vec<VmaChunk>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaBlock {
    #[serde(default)]
    map_ref_count: u64,
    total_bytes: u64,
    suballocations: Vec<VmaChunk>,
}

/// A chunk, or a dedicated allocation.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct VmaChunk {
    #[serde(default)]
    offset: u64,
    #[serde(deserialize_with = "kind")]
    r#type: Option<ResourceKind>,
    size: u64,
    #[serde(default)]
    usage: u64,
    #[serde(default, with = "text::user_data")]
    custom_data: Option<u64>,
    name: Option<Box<str>>,
}

/// `None` if it is free.
fn kind<'a, D: Deserializer<'a>>(from: D) -> Result<Option<ResourceKind>, D::Error> {
    let read = |text: &str| if text == "FREE" { Some(None) } else { text::kind_from(text).map(Some) };
    from.deserialize_str(text::Word { expected: "a kind of resource, or FREE", read })
}

/// The name of a flag, or a number for all unnamed flags.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Name(Box<str>),
    Number(u32),
}

/// `VK_MEMORY_PROPERTY_PROTECTED_BIT`. VMA writes it both as a name and as a number.
const PROTECTED: u32 = ash::vk::MemoryPropertyFlags::PROTECTED.as_raw();

fn flags(flags: Vec<Flag>) -> Vec<Box<str>> {
    let is_protected = flags.iter().any(|flag| matches!(flag, Flag::Name(name) if &**name == "PROTECTED"));
    let again = if is_protected { PROTECTED } else { 0 };
    let words = flags.into_iter().filter_map(|flag| match flag {
        Flag::Name(name) => Some(name),
        Flag::Number(number) if number & !again == 0 => None,
        Flag::Number(number) => Some(format!("{:#x}", number & !again).into()),
    });
    words.collect()
}

/// The text before the number in the keys of a [`Numbered`].
trait Before {
    const WORD: &'static str;
}

struct OfHeap;
struct OfType;
struct OfBlock;

impl Before for OfHeap {
    const WORD: &'static str = "Heap ";
}
impl Before for OfType {
    const WORD: &'static str = "Type ";
}
impl Before for OfBlock {
    const WORD: &'static str = "";
}

/// An object whose keys are numbered, as in `"Type 3"`, sorted by number. Numbers are unique.
struct Numbered<W, T> {
    members: Vec<(u32, T)>,
    word: PhantomData<W>,
}

impl<'a, W: Before, T: Deserialize<'a>> Deserialize<'a> for Numbered<W, T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Members<W, T>(PhantomData<(W, T)>);
        impl<'a, W: Before, T: Deserialize<'a>> Visitor<'a> for Members<W, T> {
            type Value = Vec<(u32, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with keys such as \"{}0\"", W::WORD)
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(u32, T)> = Vec::new();
                while let Some(number) = map.next_key_seed(NumberKey::<W>(PhantomData))? {
                    members.push((number, map.next_value()?));
                }
                members.sort_by_key(|&(number, _)| number);
                match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    Some(twice) => {
                        Err(A::Error::custom(format_args!("\"{}{}\" is there twice", W::WORD, twice[0].0)))
                    }
                    None => Ok(members),
                }
            }
        }
        let members = from.deserialize_map(Members::<W, T>(PhantomData))?;
        Ok(Self { members, word: PhantomData })
    }
}

struct NumberKey<W>(PhantomData<W>);

impl<'a, W: Before> DeserializeSeed<'a> for NumberKey<W> {
    type Value = u32;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<u32, D::Error> {
        from.deserialize_str(self)
    }
}

impl<W: Before> Visitor<'_> for NumberKey<W> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key such as \"{}0\"", W::WORD)
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<u32, E> {
        let number = key.strip_prefix(W::WORD).and_then(|number| number.parse().ok());
        number.ok_or_else(|| E::invalid_value(Unexpected::Str(key), &self))
    }
}

impl VmaDocument {
    pub(super) fn into_snapshot(self) -> Result<Snapshot, ReadSnapshotError> {
        let (Some(defaults), Some(pools)) = (self.defaults, self.pools) else {
            return Err(ReadSnapshotError::WithoutDetails);
        };
        let fault = |fault: SnapshotFault| fault.at(FaultPosition::default());
        let (heaps, types) = heaps_and_types(self.heaps).map_err(fault)?;
        let heap_of = |memory_type: u32| match types.get(index(memory_type)) {
            Some(kind) => Ok(kind.heap),
            None => Err(fault(SnapshotFault::NoSuchType { memory_type, types: types.len() })),
        };
        let mut vectors = Vec::new();
        for (memory_type, vector) in defaults.members {
            let heap = heap_of(memory_type)?;
            vectors.push(Vector { name: None, ..vector.into_vector(memory_type, heap, None) });
        }
        let of_types = pools.members.into_iter();
        let pools =
            of_types.flat_map(|(memory_type, pools)| pools.into_iter().map(move |it| (memory_type, it)));
        for (number, (memory_type, pool)) in (0..).zip(pools) {
            vectors.push(pool.into_vector(memory_type, heap_of(memory_type)?, Some(number)));
        }
        let device = self.general.into_device();
        check::checked(Snapshot { device, heaps, types, vectors, ..Snapshot::default() })
    }
}

fn heaps_and_types(heaps: Numbered<OfHeap, VmaHeap>) -> Result<(Vec<Heap>, Vec<MemoryType>), SnapshotFault> {
    let mut types = Vec::new();
    let mut all = Vec::new();
    for (expected, (number, heap)) in (0..).zip(heaps.members) {
        if number != expected {
            return Err(SnapshotFault::HeapMissing { heap: expected });
        }
        for (memory_type, kind) in heap.memory_pools.members {
            types.push((memory_type, MemoryType { heap: number, flags: flags(kind.flags) }));
        }
        all.push(Heap {
            size: heap.size,
            flags: flags(heap.flags),
            budget: heap.budget.budget_bytes,
            usage: heap.budget.usage_bytes,
        });
    }
    types.sort_by_key(|&(number, _)| number);
    match (0..).zip(&types).find(|&(expected, &(number, _))| number != expected) {
        // A repeated number shows because the number that belongs here is missing.
        Some((memory_type, _)) => Err(SnapshotFault::TypeMissing { memory_type }),
        None => Ok((all, types.into_iter().map(|(_, kind)| kind).collect())),
    }
}

impl General {
    fn into_device(self) -> Device {
        Device {
            name: self.gpu,
            kind: self.device_type.and_then(text::device_kind).map(Into::into),
            api_version: self.api_version,
            max_memory_allocation_count: self.max_memory_allocation_count,
            buffer_image_granularity: self.buffer_image_granularity,
            non_coherent_atom_size: self.non_coherent_atom_size,
            ..Device::default()
        }
    }
}

impl VmaVector {
    fn into_vector(self, memory_type: u32, heap: u32, pool: Option<u32>) -> Vector {
        let blocks = self.blocks.members.into_iter().map(|(id, block)| Block {
            id,
            size: block.total_bytes,
            map_count: block.map_ref_count,
            chunks: block.suballocations.into_iter().map(VmaChunk::into_chunk).collect(),
        });
        let blocks = blocks.collect();
        let dedicated = self.dedicated_allocations.into_iter().map(|it| {
            let size = it.size;
            // A dedicated allocation is never free.
            let allocation = it.into_chunk().allocation.unwrap_or_else(|| nameless(ResourceKind::Unknown));
            Dedicated { size, map_count: None, allocation }
        });
        let dedicated = dedicated.collect();
        let (name, block_size) = (self.name.and_then(pool_name), self.preferred_block_size);
        Vector { memory_type, heap, pool, name, algorithm: None, block_size, blocks, dedicated }
    }
}

/// Returns the text after the number in `0 - ring`. A pool without a name has only the number.
fn pool_name(name: Box<str>) -> Option<Box<str>> {
    match name.split_once(" - ") {
        Some((number, rest)) if number.parse::<u64>().is_ok() => Some(rest.into()),
        _ if name.parse::<u64>().is_ok() => None,
        _ => Some(name),
    }
}

fn nameless(kind: ResourceKind) -> Entry {
    Entry { id: None, kind, usage: 0, name: None, user_data: None, caller: None }
}

impl VmaChunk {
    fn into_chunk(self) -> Chunk {
        let Self { offset, r#type, size, usage, custom_data: user_data, name } = self;
        let allocation = r#type.map(|kind| Entry { usage, name, user_data, ..nameless(kind) });
        Chunk { offset, size, allocation }
    }
}
