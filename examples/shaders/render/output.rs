//! Writes the picture, compares it with the reference, and writes a page with the memory map.

use std::collections::BTreeMap;
use std::path::PathBuf;

use image::RgbImage;
use image::imageops::thumbnail;
use sublet::Allocator;
use sublet_report::{Page, Snapshot};

use sublet_examples::{Arguments, Result, Table, bytes, heading, note};

/// Half the size of the picture, so that a slight shift of an edge makes no difference.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/render/reference.png");

/// Limits for differences between drivers: the mean in steps of 256, and the share of texels that differ by more than
/// [`SEEN`] steps.
const MEAN: f64 = 1.0;
const FAR: f64 = 0.002;
/// A clearly visible difference, in steps of 256.
const SEEN: u8 = 16;

pub(crate) struct Output {
    folder: PathBuf,
    check: bool,
    bless: bool,
    pub(crate) barriers: bool,
}

impl Output {
    pub(crate) const HELP: &str = "
  --output DIR      where to write: in `target` by default
  --check           compare the picture with the reference
  --bless           make the picture the reference
  --barriers        show the barriers of a frame";

    pub(crate) fn new(arguments: &mut Arguments) -> Result<Self> {
        Ok(Self {
            folder: arguments.value("--output")?.unwrap_or_else(|| "target".to_owned()).into(),
            check: arguments.flag("--check"),
            bless: arguments.flag("--bless"),
            barriers: arguments.flag("--barriers"),
        })
    }

    /// Prints memory sums at this moment, and writes the whole map as a page beside the picture.
    pub(crate) fn memory(&self, allocator: &Allocator) -> Result<()> {
        let snapshot = sums(allocator);
        let path = self.path("render.html")?;
        std::fs::write(&path, Page::new(&snapshot).title("The memory of a rendered scene").to_html())?;
        note(&format!("The memory map: {}", path.display()));
        Ok(())
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        std::fs::create_dir_all(&self.folder)?;
        Ok(self.folder.join(name))
    }

    pub(crate) fn picture(&self, picture: &RgbImage) -> Result<()> {
        let path = self.path("render.png")?;
        picture.save(&path)?;
        note(&format!("The picture:    {}", path.display()));
        // Each texel is the mean of four.
        let half = thumbnail(picture, picture.width() / 2, picture.height() / 2);
        if self.bless {
            half.save(REFERENCE)?;
            note("That is the reference from now on.");
        }
        if self.check {
            check(&half, &image::open(REFERENCE)?.into_rgb8())?;
        }
        Ok(())
    }
}

/// Returns an error if a picture differs from the reference by more than drivers differ from one another.
fn check(picture: &RgbImage, reference: &RgbImage) -> Result<()> {
    let extents = (picture.dimensions(), reference.dimensions());
    if extents.0 != extents.1 {
        return Err(format!("one picture has {:?} texels, the other {:?}", extents.0, extents.1).into());
    }
    let (mut sums, mut far) = ([0_u32; 3], 0_u32);
    for (one, other) in picture.pixels().zip(reference.pixels()) {
        let apart = [0, 1, 2].map(|at: usize| one[at].abs_diff(other[at]));
        sums.iter_mut().zip(apart).for_each(|(sum, apart)| *sum += u32::from(apart));
        far += u32::from(apart.iter().any(|&apart| apart > SEEN));
    }
    let texels = f64::from(picture.width() * picture.height());
    let (mean, far) = (sums.map(|sum| f64::from(sum) / texels), f64::from(far) / texels);
    let ([red, green, blue], percent) = (mean, far * 100.0);
    let difference = format!(
        "red {red:.2}, green {green:.2}, blue {blue:.2} steps of 256 in the mean, and {percent:.2} % of the texels by more than {SEEN} steps"
    );
    note(&format!("Beside the reference: {difference}."));
    if mean.into_iter().any(|mean| mean > MEAN) || far > FAR {
        let allowed = format!("at most {MEAN} steps and {} % are allowed", FAR * 100.0);
        return Err(format!("this is another picture: {difference}; {allowed}").into());
    }
    Ok(())
}

/// Returns the memory map, and prints its sums by the first word of the names.
fn sums(allocator: &Allocator) -> Snapshot {
    heading("Memory, while all of it lives");
    let snapshot = Snapshot::of(allocator);
    let mut kinds = BTreeMap::<String, (u64, u64)>::new();
    for located in snapshot.allocations() {
        let name = located.entry.name.as_deref().unwrap_or("other");
        let kind = kinds.entry(name.split(' ').next().unwrap_or(name).to_owned()).or_default();
        *kind = (kind.0 + 1, kind.1 + located.size);
    }
    let mut table = Table::new(&["what", ">allocations", ">bytes"]);
    for (kind, (count, size)) in &kinds {
        table.row([kind, count, &bytes(*size)]);
    }
    table.print();
    let all = allocator.statistics();
    note(&format!(
        "{} in {} blocks of {} in all.",
        bytes(all.allocation_bytes),
        all.block_count,
        bytes(all.block_bytes)
    ));
    snapshot
}
