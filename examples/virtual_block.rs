//! A virtual block divides one large buffer among many users. It needs no GPU.
//!
//! `cargo run --example virtual_block`

use std::error::Error;

use sublet::metadata::Strategy;
use sublet::{
    VirtualAllocation, VirtualAllocationCreateInfo, VirtualAllocationError, VirtualBlock,
    VirtualBlockCreateInfo,
};

const KIB: u64 = 1024;
const BUFFER: u64 = 256 * KIB;
const VERTEX: u64 = 32;
const CELLS: u64 = 64;

/// A mesh and its number of vertices.
type Mesh = (&'static str, u64);

const LEVEL: [Mesh; 8] = [
    ("Terrain", 2600),
    ("Castle", 1500),
    ("River", 700),
    ("Dragon", 1300),
    ("Oak", 250),
    ("Knight", 420),
    ("Lantern", 60),
    ("Banner", 90),
];

/// Allocates a range for the vertices of a mesh. Its user data is the mesh's initial.
fn load(
    buffer: &mut VirtualBlock,
    (name, vertices): Mesh,
    strategy: Strategy,
) -> Result<VirtualAllocation, VirtualAllocationError> {
    buffer.allocate(&VirtualAllocationCreateInfo {
        size: vertices * VERTEX,
        alignment: VERTEX,
        strategy,
        user_data: name.bytes().next().map_or(0, u64::from),
        ..Default::default()
    })
}

/// Draws a cell for each few bytes: the initial of the mesh at its middle, or a dot.
fn map(buffer: &VirtualBlock) -> String {
    (0..CELLS)
        .map(|cell| {
            let middle = (2 * cell + 1) * BUFFER / (2 * CELLS);
            let owner = buffer.iter().find(|mesh| (mesh.offset..mesh.offset + mesh.size).contains(&middle));
            owner.and_then(|mesh| u8::try_from(mesh.user_data).ok()).map_or('.', char::from)
        })
        .collect()
}

fn show(what: &str, buffer: &VirtualBlock) {
    let all = buffer.detailed_statistics();
    println!("{what:<26}|{}|", map(buffer));
    println!(
        "{:26} {} meshes have {} KiB; unused: {} KiB, the largest piece {} KiB\n",
        "",
        all.statistics.allocation_count,
        all.statistics.allocation_bytes / KIB,
        all.statistics.unused_bytes() / KIB,
        all.unused_range_size_max / KIB,
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("A vertex buffer of {} KiB, {} KiB to a cell.\n", BUFFER / KIB, BUFFER / CELLS / KIB);
    let mut buffer = VirtualBlock::new(&VirtualBlockCreateInfo { size: BUFFER, ..Default::default() })?;

    let mut meshes = Vec::new();
    for mesh in LEVEL {
        meshes.push((mesh.0, load(&mut buffer, mesh, Strategy::Balanced)?));
    }
    show("The level is loaded.", &buffer);

    // `free` takes the range by value, so that it cannot be used or freed again.
    while let Some(place) = meshes.iter().position(|(name, _)| ["River", "Dragon"].contains(name)) {
        let (_, range) = meshes.swap_remove(place);
        buffer.free(range)?;
    }
    show("River and Dragon are gone.", &buffer);

    let ship = load(&mut buffer, ("Ship", 1900), Strategy::MinMemory)?;
    let wolf = load(&mut buffer, ("Wolf", 400), Strategy::MinOffset)?;
    println!("The Ship goes where it leaves the least: at {} KiB.", ship.offset() / KIB);
    println!("The Wolf goes as low as it gets: at {} KiB.", wolf.offset() / KIB);
    show("Ship and Wolf are there.", &buffer);

    // A range that does not fit is an error that states the free space.
    if let Err(error) = load(&mut buffer, ("Giant", 3000), Strategy::Balanced) {
        println!("The Giant stays outside: {error}.\n");
    }

    // The next level: frees everything at once, and invalidates all earlier handles.
    buffer.clear();
    show("The level is left.", &buffer);
    match buffer.free(wolf) {
        Ok(()) => unreachable!("the buffer was cleared"),
        Err(error) => println!("The Wolf cannot be freed: {}.", error.reason),
    }
    Ok(())
}
