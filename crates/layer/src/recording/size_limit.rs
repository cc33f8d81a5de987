//! The process's limit on the sizes of files. A write beyond it raises a signal, which would end the program.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the C library is called")
)]

use std::io;

/// Returns an error if the process may not have a file of this many bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn check(bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives during the call.
    let result = unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, &mut limit) };
    if result == 0 && bytes > limit.rlim_cur { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// Does nothing: the limit is unknown, and a system that has one may end the program.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn check(_: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::process::Command;
    use std::{env, fs};

    use super::super::file::WatchFile;
    use super::*;

    /// A shell sets the limit of a second process, which runs the same test.
    #[test]
    fn a_limit_on_file_sizes_does_not_end_the_program() {
        const FOLDER: &str = "SUBLET_TEST_FOLDER";
        if let Some(folder) = env::var_os(FOLDER) {
            let path = std::path::Path::new(&folder).join("limited.trace");
            let mut file = WatchFile::create(&path, b"head").unwrap();
            assert_eq!(file.take().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
            file.finish().unwrap();
            let large = vec![0; 1 << 20];
            let refused = WatchFile::create(&path.with_extension("2"), &large).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
            assert!(!path.with_extension("2").exists());
            return;
        }
        let folder = env::temp_dir().join(format!("sublet-limit-{}", std::process::id()));
        // A killed process with the same number may have left it.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let output = Command::new("sh")
            .args(["-c", "ulimit -f 512 && exec \"$0\" a_limit_on_file_sizes"])
            .arg(env::current_exe().unwrap())
            .env(FOLDER, &folder)
            // Not the streams of this process: they may be files beyond the limit.
            .output();
        fs::remove_dir_all(&folder).unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}
