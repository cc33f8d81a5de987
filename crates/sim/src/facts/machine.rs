//! The machine that the simulated device runs on.

/// The most memory that this process can have, in bytes: the machine's, and under Linux no more than the control group
/// allows. `None` where the system does not report it.
#[must_use]
pub fn host_memory() -> Option<u64> {
    system::total()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::fs;

    pub(crate) fn total() -> Option<u64> {
        let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
        // Control groups of version 2 and of version 1, as a container sees its own.
        let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let group = groups.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
        group.chain(machine).min()
    }

    /// The line is `MemTotal:       24624812 kB`.
    pub(crate) fn of_machine(text: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }
}

#[cfg(windows)]
#[expect(unsafe_code, reason = "calls the system")]
mod system {
    /// `MEMORYSTATUSEX`.
    #[repr(C)]
    #[derive(Default)]
    struct Status {
        length: u32,
        load: u32,
        total_physical: u64,
        others: [u64; 6],
    }

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut Status) -> std::ffi::c_int;
    }

    const LENGTH: u32 = 64;
    const _: () = assert!(size_of::<Status>() == 64);

    pub(crate) fn total() -> Option<u64> {
        let mut status = Status { length: LENGTH, ..Status::default() };
        // SAFETY: it is the structure that the function fills, with its length.
        let done = unsafe { GlobalMemoryStatusEx(&mut status) };
        (done != 0).then_some(status.total_physical)
    }
}

#[cfg(target_vendor = "apple")]
#[expect(unsafe_code, reason = "calls the system")]
mod system {
    use std::ffi::{c_char, c_int, c_void};

    unsafe extern "C" {
        fn sysctlbyname(
            name: *const c_char,
            old: *mut c_void,
            old_length: *mut usize,
            new: *mut c_void,
            new_length: usize,
        ) -> c_int;
    }

    pub(crate) fn total() -> Option<u64> {
        let mut bytes = 0_u64;
        let mut length = size_of::<u64>();
        let to = std::ptr::from_mut(&mut bytes).cast();
        // SAFETY: the name ends with a null, and `to` has `length` bytes; nothing is set.
        let failed =
            unsafe { sysctlbyname(c"hw.memsize".as_ptr(), to, &mut length, std::ptr::null_mut(), 0) };
        (failed == 0 && length == size_of::<u64>()).then_some(bytes)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", windows, target_vendor = "apple")))]
mod system {
    pub(crate) fn total() -> Option<u64> {
        None
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::system::of_machine;

    #[test]
    fn the_line_of_the_total_is_found() {
        assert_eq!(of_machine("MemFree: 1 kB\nMemTotal:       24624812 kB\n"), Some(24_624_812 * 1024));
        for text in ["", "MemTotal:", "MemTotal: many kB", "MemTotal: 1", "MemTotal: 18446744073709551615 kB"]
        {
            assert_eq!(of_machine(text), None, "{text}");
        }
    }
}
