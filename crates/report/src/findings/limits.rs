//! Limits for continuous integration: `waste=30%`, `leak`, `allocations=1000`.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::{FindingKind, Findings};
use crate::words::percent;

/// A limit that a program must not exceed. [`FromStr`] reads it.
///
/// ```
/// use sublet_report::{FindingLimit, Findings};
///
/// let limit: FindingLimit = "waste=30%".parse()?;
/// assert_eq!(limit, FindingLimit::Waste { per_mille: 300 });
/// assert_eq!(limit.breach(&Findings::default()), None);
/// # Ok::<(), sublet_report::ReadLimitError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FindingLimit {
    /// `waste=30%`: the reserved bytes that no resource uses, when the most are reserved.
    Waste {
        /// Thousandths of the reserved bytes.
        per_mille: u32,
    },
    /// `leak`: nothing is left when the program destroys its device.
    Leak,
    /// `allocations=1000`: the most live `VkDeviceMemory`.
    Allocations {
        /// Their number.
        count: u64,
    },
}

/// A limit that a program exceeded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LimitBreach {
    /// The limit.
    pub limit: FindingLimit,
    /// One sentence with the limit and the value.
    pub text: String,
}

/// The text is not a valid limit.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReadLimitError {
    /// The text.
    pub text: String,
}

impl fmt::Display for ReadLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid limit; limits are waste=PERCENT%, leak and allocations=NUMBER",
            self.text
        )
    }
}

impl Error for ReadLimitError {}

impl FromStr for FindingLimit {
    type Err = ReadLimitError;

    fn from_str(text: &str) -> Result<Self, ReadLimitError> {
        let error = || ReadLimitError { text: text.to_owned() };
        match text.split_once('=') {
            None if text == "leak" => Ok(Self::Leak),
            Some(("allocations", count)) => {
                count.parse().map(|count| Self::Allocations { count }).map_err(|_| error())
            }
            Some(("waste", share)) => {
                let percent = share.strip_suffix('%').ok_or_else(error)?;
                let (whole, tenths) = percent.split_once('.').unwrap_or((percent, "0"));
                let (Ok(whole), Ok(tenths), 1) = (whole.parse::<u32>(), tenths.parse::<u32>(), tenths.len())
                else {
                    return Err(error());
                };
                let per_mille = whole.checked_mul(10).and_then(|it| it.checked_add(tenths));
                per_mille.map(|per_mille| Self::Waste { per_mille }).ok_or_else(error)
            }
            _ => Err(error()),
        }
    }
}

impl fmt::Display for FindingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waste { per_mille } if per_mille % 10 == 0 => write!(f, "waste={}%", per_mille / 10),
            Self::Waste { per_mille } => write!(f, "waste={}.{}%", per_mille / 10, per_mille % 10),
            Self::Leak => f.write_str("leak"),
            Self::Allocations { count } => write!(f, "allocations={count}"),
        }
    }
}

impl FindingLimit {
    /// Returns how the program exceeded the limit; `None` if it did not.
    #[must_use]
    pub fn breach(self, found: &Findings) -> Option<LimitBreach> {
        let text = match self {
            Self::Waste { per_mille } => {
                let waste = found.waste();
                if waste * 1000.0 <= f64::from(per_mille) {
                    return None;
                }
                format!("{self}: {} of the reserved bytes are unused at the peak.", percent(waste))
            }
            Self::Leak => {
                let leak = found.findings.iter().find(|finding| finding.kind == FindingKind::Leak)?;
                format!("{self}: {}", leak.text)
            }
            Self::Allocations { count } => {
                if found.peak_memory_count <= count {
                    return None;
                }
                format!("{self}: {} memory objects were live at the same time.", found.peak_memory_count)
            }
        };
        Some(LimitBreach { limit: self, text })
    }
}
