//! Folders that are written into. What root refuses is in tests/python/test_foreign_folders.py.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

use knee_store::folder::{Error, Folder, Readers, open_readable};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

#[test]
fn a_path_leads_through_links_and_dots_to_the_folder_that_the_kernel_would_find() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("real/deep")).unwrap();
    symlink("real", root.join("relative")).unwrap();
    symlink(root.join("real/deep"), root.join("absolute")).unwrap();
    for (path, reached) in [
        ("relative/deep", "real/deep"),
        ("absolute", "real/deep"),
        ("absolute/../new/er", "real/new/er"),
        ("./relative/./", "real"),
    ] {
        let folder = Folder::make(&root.join(path)).unwrap();
        let mut file = folder.create("file", Readers::Own).unwrap();
        file.write_all(path.as_bytes()).unwrap();
        let file = root.join(reached).join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), path);
        fs::remove_file(file).unwrap();
    }
    symlink("loop", root.join("loop")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    for path in ["loop", "file", "file/below"] {
        assert!(matches!(
            Folder::make(&root.join(path)),
            Err(Error::Io { .. })
        ));
    }
    assert!(Folder::open(&root.join("none")).is_err());
}

#[test]
fn another_folder_in_the_paths_place_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::make(&dir.path().join("a")).unwrap();
    assert!(folder.made());
    fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
    symlink("/", dir.path().join("a")).unwrap();
    folder.write("file", b"content").unwrap();
    let names: Vec<_> = fs::read_dir(dir.path().join("b")).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left");
    let written = fs::read_to_string(dir.path().join("b/file")).unwrap();
    assert_eq!(written, "content");
}

#[test]
fn a_name_that_is_taken_is_refused_and_what_is_no_file_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    fs::write(dir.path().join("victim"), "kept").unwrap();
    symlink("victim", dir.path().join("link")).unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    for name in ["victim", "link", "folder"] {
        assert!(folder.create(name, Readers::Own).is_err());
    }
    for name in ["link", "folder"] {
        assert!(matches!(
            folder.temporary(name, Readers::Own),
            Err(Error::NotOurs { .. })
        ));
    }
    assert!(matches!(folder.lock("link"), Err(Error::NotOurs { .. })));
    assert_eq!(
        fs::read_to_string(dir.path().join("victim")).unwrap(),
        "kept"
    );
}

#[test]
fn only_files_of_the_names_asked_for_go_and_a_link_is_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir_all(outside.join("kept")).unwrap();
    let folder = Folder::make(&dir.path().join("inside")).unwrap();
    for name in ["ours-1", "ours-2", "theirs"] {
        drop(folder.create(name, Readers::Own).unwrap());
    }
    symlink(&outside, dir.path().join("inside/ours-link")).unwrap();
    folder
        .remove_those(|name| name.starts_with("ours-"))
        .unwrap();
    assert_eq!(folder.names().unwrap(), ["theirs"]);
    assert!(outside.join("kept").is_dir());
    symlink(&outside, dir.path().join("inside/link")).unwrap();
    for name in ["link", "theirs", "absent"] {
        assert!(folder.open_folder(name).unwrap().is_none(), "{name}");
    }
    drop(folder.folder("empty").unwrap());
    assert!(folder.open_folder("empty").unwrap().is_some());
    folder.remove_empty("empty").unwrap();
    assert!(folder.remove_empty("link").is_err());
}

#[test]
fn what_is_read_is_a_file_and_nobody_waits_for_a_fifo() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "whole").unwrap();
    symlink(at("file"), at("link")).unwrap();
    mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
    symlink(at("fifo"), at("link-to-fifo")).unwrap();
    symlink("/dev/zero", at("device")).unwrap();
    for name in ["file", "link"] {
        let file = open_readable(&at(name)).unwrap();
        assert_eq!(std::io::read_to_string(file).unwrap(), "whole");
    }
    let said = |name: &str| open_readable(&at(name)).unwrap_err().to_string();
    for name in ["fifo", "link-to-fifo"] {
        assert!(said(name).ends_with("is a FIFO; expected a regular file. Move it away."));
    }
    assert!(said("device").contains("is a device"));
    assert!(said("absent").contains("cannot read: No such file"));
}

#[test]
fn one_holds_the_lock_and_only_left_temporary_files_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let held = folder.lock(".lock").unwrap().unwrap();
    assert!(folder.lock(".lock").unwrap().is_none());
    drop(held);
    assert!(folder.lock(".lock").unwrap().is_some());
    for name in [
        ".a.tmp",
        "a.0123456789abcdef.tmp",
        ".a.0123456789abcdeg.tmp",
    ] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let before = folder.names().unwrap();
    drop(folder.temporary("a", Readers::Own).unwrap());
    folder.sweep().unwrap();
    assert_eq!(folder.names().unwrap(), before);
}

#[test]
fn a_file_that_others_may_write_and_a_link_are_not_our_own() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    assert!(folder.open_own("file").unwrap().is_none());
    let path = dir.path().join("file");
    fs::write(&path, "ours").unwrap();
    for (mode, is_own) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = folder.open_own("file");
        assert_eq!(opened.is_ok(), is_own, "mode {mode:o}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("other users may write"));
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("file", dir.path().join("link")).unwrap();
    assert!(matches!(
        folder.open_own("link"),
        Err(Error::NotOurs { .. })
    ));
}
