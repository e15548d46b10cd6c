//go:build !linux

package disk

import (
	"errors"
	"os"
)

func lock(*os.File) error           { return errors.ErrUnsupported }
func syncData(f *os.File) error     { return f.Sync() }
func syncFileSystem(*os.File) error { return errors.ErrUnsupported }
