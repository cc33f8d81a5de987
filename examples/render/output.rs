//! What becomes of it: the picture is written, and compared with the one that it should be; a page shows the memory.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};
use image::RgbImage;
use image::imageops::thumbnail;
use sublet::Allocator;
use sublet_report::Page;

use crate::memory;
use crate::picture::Difference;
use crate::support::{Result, note};

/// Half as large as what is rendered, so that an edge that is a little elsewhere makes no difference.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/render/reference.png");

/// How much of a difference drivers make among themselves, in steps of 256 and as a share of the texels.
const MEAN: f64 = 1.0;
const FAR: f64 = 0.002;

pub(crate) struct Output {
    folder: PathBuf,
    check: bool,
    bless: bool,
    pub(crate) barriers: bool,
}

impl Output {
    pub(crate) fn arguments() -> Vec<Arg> {
        let flag = |name, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
        vec![
            Arg::new("output")
                .long("output")
                .value_name("DIR")
                .default_value("target")
                .help("where to write"),
            flag("check", "compare the picture with the reference"),
            flag("bless", "make the picture the reference"),
            flag("barriers", "show the barriers of a frame"),
        ]
    }

    pub(crate) fn new(matches: &ArgMatches) -> Self {
        Self {
            folder: matches.get_one::<String>("output").map_or_else(PathBuf::new, PathBuf::from),
            check: matches.get_flag("check"),
            bless: matches.get_flag("bless"),
            barriers: matches.get_flag("barriers"),
        }
    }

    /// What lies where, at this moment: sums for the reader of this, and all of it as a page beside the picture.
    pub(crate) fn memory(&self, allocator: &Allocator) -> Result<()> {
        let snapshot = memory::show(allocator);
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
            check(&Difference::new(&half, &image::open(REFERENCE)?.into_rgb8())?)?;
        }
        Ok(())
    }
}

/// An error if a picture is further from the reference than drivers are from one another.
fn check(difference: &Difference) -> Result<()> {
    note(&format!("Beside the reference: {difference}."));
    let mean = difference.mean.into_iter().fold(0.0, f64::max);
    if mean > MEAN || difference.far > FAR {
        let allowed = format!("at most {MEAN} steps and {} % are allowed", FAR * 100.0);
        return Err(format!("this is another picture: {difference}; {allowed}").into());
    }
    Ok(())
}
