//go:build !windows

package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// servingName is the prefix of files in the data folder: each holds the public URL of a
// process that serves the data and keeps the file locked. The system unlocks it when the
// process ends, even by a kill.
const servingName = "serving-"

// Serving tells other processes that this one serves the data in a folder, until leave is
// called or the process ends. It returns the public URLs of the others that differ.
func Serving(dir, publicURL string) (others []string, leave func(), err error) {
	own, err := os.CreateTemp(dir, "."+servingName+"*")
	if err != nil {
		return nil, func() {}, fmt.Errorf("telling other processes that the data is served: %w",
			err)
	}
	path := filepath.Join(dir, filepath.Base(own.Name())[1:])
	leave = func() {
		_ = os.Remove(own.Name())
		_ = os.Remove(path)
		_ = own.Close()
	}
	_, err = own.WriteString(publicURL)
	err = errors.Join(err, unix.Flock(int(own.Fd()), unix.LOCK_EX), os.Rename(own.Name(), path)) // locked before it is seen
	found, _ := fs.Glob(os.DirFS(dir), servingName+"*")
	for _, name := range found {
		f, openErr := os.Open(filepath.Join(dir, name))
		if openErr != nil {
			continue // it has just ended
		}
		locked := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if locked == nil { // left behind by a kill
			_ = os.Remove(f.Name())
		} else if text, _ := io.ReadAll(f); errors.Is(locked, unix.EWOULDBLOCK) &&
			string(text) != publicURL {
			others = append(others, string(text))
		}
		_ = f.Close()
	}
	return others, leave, err
}
