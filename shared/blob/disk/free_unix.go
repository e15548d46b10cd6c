//go:build !windows

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the file system of the store has left for it.
func (s *Store) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return 0, fmt.Errorf("reading the free space of the disk: %w", err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
