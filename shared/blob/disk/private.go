package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// WritePrivate durably writes a file that only its owner can read, and lets place put
// it at its path.
func WritePrivate(path string, content io.Reader, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
