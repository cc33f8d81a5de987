//! How a driver's descriptor pools behave when they are full, and the faults that some of them have.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::facts::profiles::pool_policy::{DescriptorPoolPolicy, DescriptorQuirk};
use crate::facts::profiles::{DescriptorLimits, Profile};

/// How the pools of one GPU behave.
#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) policy: DescriptorPoolPolicy,
    pub(crate) quirks: DescriptorQuirk,
    pub(crate) limits: DescriptorLimits,
    /// Sets and descriptors that were allocated past what their pool was made for.
    pub(crate) overruns: AtomicU64,
    /// Sets whose memory a reset lost, in pools that are alive.
    pub(crate) leaked: AtomicU64,
}

impl Behaviour {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            policy: profile.descriptor_pools,
            quirks: DescriptorQuirk::empty(),
            limits: profile.limits.descriptors,
            overruns: AtomicU64::new(0),
            leaked: AtomicU64::new(0),
        }
    }

    pub(crate) fn overrun(&self, count: u64) {
        self.overruns.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn leak(&self, sets: u64) {
        self.leaked.fetch_add(sets, Ordering::Relaxed);
    }

    pub(crate) fn end_leak(&self, sets: u64) {
        self.leaked.fetch_sub(sets, Ordering::Relaxed);
    }
}
