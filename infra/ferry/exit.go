package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"

	"ferry/shared/auth"
)

// The exit codes are those of BSD's sysexits.
const (
	exitOK         = 0
	exitOther      = 1
	exitUsage      = 64
	exitDamaged    = 65
	exitNoFile     = 66
	exitUnknown    = 67
	exitPort       = 69
	exitExists     = 73
	exitFull       = 74
	exitBusy       = 75
	exitRefused    = 76
	exitPermission = 77
	exitSettings   = 78
	exitInterrupt  = 130 // as shells have it
)

const exitCodes = `Exit codes: 0 done, 64 wrong usage, 65 data damaged or of a newer version, or wrong bytes in a transfer, 66 no such file, 67 no such user,
69 address cannot be used or service not reached, 73 a file is in the way, 74 disk full or failing, 75 busy: try again, 76 the service refuses the request,
77 no permission or no login, 78 wrong settings, 130 interrupted, 1 anything else. Of several failures the first counts.`

var (
	// errInterrupted is the end by Ctrl-C, and errPaused that of what can be
	// gone on with.
	errInterrupted = errors.New("interrupted")
	errPaused      = fmt.Errorf("%w; %s", errInterrupted, toGoOn)
)

const toGoOn = "run the same command again to go on"

// pausing says of a transfer that the network has ended how to go on.
func pausing(err error) error {
	if client.IsNetwork(err) {
		return fmt.Errorf("%w; %s", err, toGoOn)
	}
	return err
}

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
	case errors.Is(err, errInterrupted):
		return exitInterrupt
	case isRemote(err):
		return remoteCode(err)
	case errors.Is(err, sqlite.ErrDamaged), errors.Is(err, sqlite.ErrNewer), errors.Is(err, local.ErrNoTable), errors.Is(err, local.ErrKey):
		return exitDamaged
	case errors.Is(err, local.ErrHasData):
		return exitExists
	case errors.Is(err, local.ErrInside):
		return exitUsage
	case errors.Is(err, auth.ErrUnknownUser):
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

// isRemote tells errors of talking to a service.
func isRemote(err error) bool {
	for _, kind := range []error{client.ErrNoLogin, client.ErrDigest, client.ErrChanged, client.ErrExists, client.ErrNotFound, client.ErrAnswer} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return client.IsNetwork(err) || client.StatusOf(err) != 0
}

func remoteCode(err error) int {
	switch {
	case errors.Is(err, client.ErrNoLogin):
		return exitPermission
	case errors.Is(err, client.ErrDigest):
		return exitDamaged
	case errors.Is(err, client.ErrNotFound):
		return exitNoFile
	case errors.Is(err, client.ErrExists):
		return exitExists
	case errors.Is(err, client.ErrChanged):
		return exitBusy
	case client.IsNetwork(err):
		return exitPort
	}
	switch client.StatusOf(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitPermission
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitBusy
	case http.StatusInsufficientStorage:
		return exitFull
	}
	return exitRefused
}
