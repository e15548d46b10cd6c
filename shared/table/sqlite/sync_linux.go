package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's bytes durable, and only those of its attributes that
// are needed to read them: without the times that is half the work.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
