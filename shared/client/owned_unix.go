//go:build unix

package client

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether a file belongs to the user of this process.
func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
