package disk

import "golang.org/x/sys/unix"

// ordered reports whether the file system of a folder writes changes of its
// structure in their order, so that an fsync of a file which was just named
// also keeps the name. ext4, XFS and Btrfs do; POSIX does not promise it. A
// folder that does not exist yet counts as of an unknown one.
func ordered(dir string) bool {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false
	}
	switch int64(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}
