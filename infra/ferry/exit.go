package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/notices"
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
	// resumed.
	errInterrupted = errors.New("interrupted")
	errPaused      = fmt.Errorf("%w; %s", errInterrupted, toResume)
)

const toResume = "run the same command again to resume"

// pausing tells how to resume a transfer that Ctrl-C or the network has ended.
func pausing(ctx context.Context, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return errPaused
	case client.IsNetwork(err):
		return fmt.Errorf("%w; %s", err, toResume)
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

// usage is an error of what was typed.
func usage(format string, values ...any) error {
	return &coded{exitUsage, fmt.Errorf(format, values...)}
}

func exitCode(err error) int {
	var c *coded
	switch {
	case errors.As(err, &c):
		return c.code
	case client.IsNetwork(err):
		return exitPort
	}
	for _, k := range []struct {
		code  int
		kinds []error
	}{
		{exitInterrupt, []error{errInterrupted}},
		{exitPermission, []error{client.ErrNoLogin}},
		{exitDamaged, []error{client.ErrDigest, sqlite.ErrDamaged, sqlite.ErrNewer, local.ErrNoTable, local.ErrKey}},
		{exitNoFile, []error{client.ErrNotFound, notices.ErrUnknown}},
		{exitExists, []error{client.ErrExists, local.ErrHasData}},
		{exitUsage, []error{local.ErrInside}},
		{exitUnknown, []error{users.ErrUnknown}},
		{exitFull, []error{table.ErrFull, blob.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO}},
		{exitBusy, []error{client.ErrChanged, notices.ErrHeld, table.ErrBusy}},
		{exitRefused, []error{client.ErrAnswer, notices.ErrSent, notices.ErrFailed}},
		{exitPermission, []error{fs.ErrPermission, syscall.EROFS}},
		// a directory of the data that cannot be one
		{exitSettings, []error{local.ErrNoData, fs.ErrNotExist, syscall.ENOTDIR}},
	} {
		if slices.ContainsFunc(k.kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			return k.code
		}
	}
	return statusCode(client.StatusOf(err))
}

// statusCode is the exit code for a status of the service; 0 is none.
func statusCode(status int) int {
	switch status {
	case 0:
		return exitOther
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitPermission
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitBusy
	case http.StatusInsufficientStorage:
		return exitFull
	}
	return exitRefused
}

// explain is the one sentence that a person gets.
func explain(err error) string {
	var path *os.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &path) && strings.HasSuffix(err.Error(), path.Error()):
		prefix := strings.TrimSuffix(err.Error(), path.Error())
		return prefix + path.Path + ": " + path.Err.Error()
	case errors.Is(err, local.ErrNoData):
		return err.Error() + "; say where they are with --data or FERRY_DATA"
	case errors.Is(err, sqlite.ErrDamaged): // once, without what is said between two mentions of it
		text, kind := err.Error(), sqlite.ErrDamaged.Error()
		return text[:strings.Index(text, kind)] + text[strings.LastIndex(text, kind):]
	}
	return err.Error()
}
