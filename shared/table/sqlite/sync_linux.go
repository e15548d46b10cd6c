package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes a file's bytes durable, and of the rest only what is needed
// to read them: without its times that is half the work.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
