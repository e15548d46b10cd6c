//go:build !windows

package disk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Space returns how many bytes the file system of a folder has left for this process, and
// how many it has in all.
func Space(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("reading the free space of the disk: %w", err)
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil
}

// inodes returns how many more files the file system of a folder takes, and how many in all; both
// are 0 if it has no such bound.
func inodes(dir string) (free, total uint64, err error) {
	var st unix.Statfs_t
	err = unix.Statfs(dir, &st)
	return uint64(st.Ffree), uint64(st.Files), err
}

// state returns what changes when the bytes of an open file do: device, inode, length, and the times of change.
func state(f *os.File) string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	return fmt.Sprintln(st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
}
