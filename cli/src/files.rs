//! Files that only this user may read.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes `files` into a new directory that only this user may read.
///
/// # Errors
/// If the directory exists or cannot be written.
pub fn write_private(directory: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory)?;
    for (name, content) in files {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(name))?;
        file.write_all(content.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_user_may_read() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("private");
        write_private(&directory, &[("a", "1")]).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join("a"))), (0o700, 0o600));
        assert!(write_private(&directory, &[]).is_err());
    }
}
