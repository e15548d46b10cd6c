package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's bytes durable, with only the attributes needed to read them: skipping
// the times halves the work.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
