package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file for this process, if no other has it.
func lock(f *os.File) error {
	return os.NewSyscallError("flock", unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}

// syncData makes a file's bytes durable, and of the rest only what is needed
// to read them.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// syncFileSystem makes everything durable that the file system of f was given.
func syncFileSystem(f *os.File) error {
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}
