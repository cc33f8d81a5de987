//! Fixture: a simulated GPU with layouts and an allocator.

use std::cell::RefCell;

use ash::vk;
use sublet::sim::{DescriptorPoolPolicy, DescriptorQuirk, Gpu, GpuBuilder, profiles::Profile};
use sublet_descriptors::{
    AllocateDescriptorSetError, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorKind,
    DescriptorQuirks, DescriptorSet, PersistentSets, PersistentSetsCreateInfo, SetLayout,
};

pub use crate::held::{End, Held, hold};

pub type Sets = PersistentSets;
pub type Allocated = Result<DescriptorSet, AllocateDescriptorSetError>;

pub const POLICIES: [DescriptorPoolPolicy; 3] =
    [DescriptorPoolPolicy::Strict, DescriptorPoolPolicy::CountsSets, DescriptorPoolPolicy::NeverRefuses];

/// The faults of the simulated driver, each with the library quirk that works around it.
pub const FAULTS: [(DescriptorQuirk, DescriptorQuirks); 5] = [
    (DescriptorQuirk::empty(), DescriptorQuirks::empty()),
    (DescriptorQuirk::SET_COUNT_SURVIVES_RESET, DescriptorQuirks::RESET_KEEPS_SET_COUNT),
    (DescriptorQuirk::FRAGMENTS, DescriptorQuirks::FRAGMENTS),
    (DescriptorQuirk::RESET_LEAKS, DescriptorQuirks::RESET_LEAKS),
    (DescriptorQuirk::all(), DescriptorQuirks::all()),
];

pub struct Fixture {
    pub gpu: Gpu,
    pub device: DescriptorDevice,
    layouts: RefCell<Vec<vk::DescriptorSetLayout>>,
}

pub fn builder() -> GpuBuilder {
    Gpu::builder(Profile::by_name("nvidia-h200").unwrap())
}

impl Fixture {
    pub fn new() -> Held<Self> {
        Self::of(builder().descriptor_pools(DescriptorPoolPolicy::NeverRefuses), None)
    }

    /// Returns a fixture with a layout of one uniform buffer, and an allocator for its sets.
    pub fn with_sets() -> (Held<Self>, SetLayout, Held<Sets>) {
        let fixture = Self::new();
        let (layout, sets) = (fixture.uniform(), fixture.sets());
        (fixture, layout, sets)
    }

    pub fn of(builder: GpuBuilder, quirks: Option<DescriptorQuirks>) -> Held<Self> {
        let gpu = builder.build();
        let info = DescriptorDeviceCreateInfo { quirks, ..DescriptorDeviceCreateInfo::for_gpu(&gpu) };
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        hold(Self { gpu, device, layouts: RefCell::default() })
    }

    /// Returns a fixture for every pool policy of drivers, each with every fault.
    pub fn all() -> impl Iterator<Item = Held<Self>> {
        POLICIES.into_iter().flat_map(|policy| {
            FAULTS.into_iter().map(move |(faults, quirks)| {
                Self::of(builder().descriptor_pools(policy).descriptor_quirks(faults), Some(quirks))
            })
        })
    }

    pub fn info(&self) -> PersistentSetsCreateInfo {
        PersistentSetsCreateInfo::new(&self.device)
    }

    pub fn sets(&self) -> Held<Sets> {
        self.sets_of(&self.info())
    }

    pub fn sets_of(&self, info: &PersistentSetsCreateInfo) -> Held<Sets> {
        hold(PersistentSets::new(info))
    }

    /// Pools of exactly `count` sets, however many sets are live.
    pub fn sets_in_pools_of(&self, count: u32) -> Held<Sets> {
        self.sets_of(&PersistentSetsCreateInfo { first_sets: count, max_sets: count, ..self.info() })
    }

    /// Each pair is a binding.
    pub fn layout(&self, bindings: &[(DescriptorKind, u32)]) -> SetLayout {
        self.layout_with(
            bindings,
            vk::DescriptorSetLayoutCreateFlags::empty(),
            vk::DescriptorBindingFlags::empty(),
        )
    }

    /// The binding flags apply to the last binding.
    pub fn layout_with(
        &self,
        bindings: &[(DescriptorKind, u32)],
        flags: vk::DescriptorSetLayoutCreateFlags,
        last: vk::DescriptorBindingFlags,
    ) -> SetLayout {
        let bindings: Vec<_> = (0..)
            .zip(bindings)
            .map(|(number, &(kind, count))| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(number)
                    .descriptor_type(kind.to_vk())
                    .descriptor_count(count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let mut each = vec![vk::DescriptorBindingFlags::empty(); bindings.len()];
        if let Some(flags) = each.last_mut() {
            *flags = last;
        }
        let mut binding_flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&each);
        let mut info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        if !last.is_empty() {
            info = info.push_next(&mut binding_flags);
        }
        let layout = unsafe { self.gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
        self.layouts.borrow_mut().push(layout);
        unsafe { SetLayout::new(layout, &info) }.unwrap()
    }

    /// A layout of one uniform buffer.
    pub fn uniform(&self) -> SetLayout {
        self.layout(&[(DescriptorKind::UniformBuffer, 1)])
    }
}

impl End for Fixture {
    /// Checks that no pool or set is left, that no call relied on a refusal, and that the driver emitted no message.
    fn end(self) {
        let live = self.gpu.live();
        assert_eq!((live.descriptor_pools, live.descriptor_sets), (0, 0), "left behind");
        assert_eq!(self.gpu.descriptor_pool_overruns(), 0, "more was taken than pools were made for");
        assert_eq!(self.gpu.leaked_descriptor_sets(), 0);
        assert_eq!(self.device.update_after_bind_used(), 0);
        for layout in self.layouts.borrow_mut().drain(..) {
            unsafe { self.gpu.device().destroy_descriptor_set_layout(layout, None) };
        }
        self.gpu.assert_silent();
    }
}

/// Allocates one set.
pub fn allocate(sets: &Sets, layout: &SetLayout) -> DescriptorSet {
    let set = unsafe { sets.allocate(layout) }.unwrap();
    sets.validate();
    set
}

/// Frees a set that was never submitted.
pub fn free(sets: &Sets, set: DescriptorSet) {
    unsafe { sets.free(set) }.unwrap();
    sets.validate();
}

impl End for Sets {
    fn end(self) {
        assert_eq!(unsafe { self.destroy() }, []);
    }
}
