package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// The exit codes are those of BSD's sysexits.
const (
	exitOK         = 0
	exitOther      = 1
	exitUsage      = 64
	exitDamaged    = 65
	exitUnknown    = 67
	exitPort       = 69
	exitFull       = 74
	exitBusy       = 75
	exitPermission = 77
	exitSettings   = 78
)

const exitCodes = `Exit codes: 0 done, 64 wrong usage, 65 data damaged or of a newer version, 67 no such user, 69 address cannot be used,
74 disk full or failing, 75 data busy, 77 no permission, 78 wrong settings, 1 anything else.`

// coded is an error whose exit code is known where it arises.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

func exitCode(err error) int {
	var c *coded
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, sqlite.ErrDamaged), errors.Is(err, sqlite.ErrNewer), errors.Is(err, local.ErrKey):
		return exitDamaged
	case errors.Is(err, users.ErrUnknown):
		return exitUnknown
	case errors.Is(err, table.ErrFull), errors.Is(err, blob.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EIO):
		return exitFull
	case errors.Is(err, table.ErrBusy):
		return exitBusy
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return exitPermission
	case errors.Is(err, local.ErrNoData), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return exitSettings // a directory of the data that cannot be one
	}
	return exitOther
}

// explain is the one sentence that a person gets.
func explain(err error) string {
	var path *os.PathError
	if errors.As(err, &path) && strings.HasSuffix(err.Error(), path.Error()) {
		prefix := strings.TrimSuffix(err.Error(), path.Error())
		return prefix + path.Path + ": " + path.Err.Error()
	}
	if errors.Is(err, local.ErrNoData) {
		return err.Error() + "; say where they are with --data or FERRY_DATA"
	}
	if errors.Is(err, sqlite.ErrDamaged) {
		return once(err.Error(), sqlite.ErrDamaged.Error())
	}
	return err.Error()
}

// once leaves out what an error says between two mentions of its kind.
func once(text, kind string) string {
	return text[:strings.Index(text, kind)] + text[strings.LastIndex(text, kind):]
}
