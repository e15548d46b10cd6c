package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
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
	exitInterrupt  = 130 // as in shells
)

const exitCodes = `Exit codes: 0 done, 64 wrong usage, 65 data damaged or of a newer version, or wrong bytes in a transfer, 66 no such file, 67 no such user,
69 address cannot be used or service not reached, 73 a file is in the way, 74 disk full or failing, 75 busy: try again, 76 the service refuses the request,
77 no permission or no login, 78 wrong settings, 130 interrupted, 1 anything else. If several things fail, the first decides.`

var (
	// errInterrupted means Ctrl-C; errPaused means the same for a command that can
	// be resumed.
	errInterrupted = errors.New("interrupted")
	errPaused      = fmt.Errorf("%w; %s", errInterrupted, toResume)
)

const toResume = "run the same command again to resume"

// pausing adds how to resume a transfer that Ctrl-C or the network has ended, if that is
// possible: a pipe cannot be resumed.
func pausing(ctx context.Context, err error, pipe bool) error {
	switch {
	case err != nil && ctx.Err() != nil && pipe:
		return errInterrupted
	case err != nil && ctx.Err() != nil:
		return errPaused
	case client.IsNetwork(err) && !pipe:
		return fmt.Errorf("%w; %s", err, toResume)
	}
	return err
}

// coded is an error with its exit code.
type coded struct {
	code int
	error
}

func (e *coded) Unwrap() error { return e.error }

// usage returns an error about what the user typed.
func usage(format string, values ...any) error {
	return &coded{exitUsage, fmt.Errorf(format, values...)}
}

func exitCode(err error) int {
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	if client.IsNetwork(err) {
		return exitPort
	}
	for _, k := range []struct {
		code  int
		kinds []error
	}{
		{exitInterrupt, []error{errInterrupted}},
		{exitPermission, []error{client.ErrNoLogin}},
		{exitDamaged, []error{
			client.ErrDigest, sqlite.ErrDamaged, sqlite.ErrNewer, local.ErrNoTable, local.ErrNoKey, local.ErrKey,
		}},
		{exitNoFile, []error{client.ErrNotFound, notify.ErrUnknown}},
		{exitExists, []error{client.ErrExists, local.ErrHasData}},
		{exitUsage, []error{local.ErrInside}},
		{exitUnknown, []error{auth.ErrUnknownUser, client.ErrUnknownUser}},
		{exitFull, []error{table.ErrFull, blob.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO}},
		{exitBusy, []error{client.ErrChanged, notify.ErrHeld, table.ErrBusy}},
		{exitRefused, []error{client.ErrAnswer, notify.ErrSent, notify.ErrFailed}},
		{exitPermission, []error{fs.ErrPermission, syscall.EROFS}},
		// something that cannot be a data directory
		{exitSettings, []error{local.ErrNoData, fs.ErrNotExist, syscall.ENOTDIR}},
	} {
		if slices.ContainsFunc(k.kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			return k.code
		}
	}
	statuses := map[int]int{
		0: exitOther, 401: exitPermission, 403: exitPermission, 507: exitFull,
		429: exitBusy, 500: exitBusy, 502: exitBusy, 503: exitBusy, 504: exitBusy,
	}
	return cmp.Or(statuses[client.StatusOf(err)], exitRefused)
}

// explain returns the one sentence that a person reads.
func explain(err error) string {
	var path *os.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &path) && strings.HasSuffix(err.Error(), path.Error()):
		return strings.TrimSuffix(err.Error(), path.Error()) + path.Path + ": " + path.Err.Error()
	case errors.Is(err, local.ErrNoData):
		return err.Error() + "; say where it is with --data or FERRY_DATA"
	case errors.Is(err, sqlite.ErrDamaged): // say it once, without what is between two mentions of it
		text, kind := err.Error(), sqlite.ErrDamaged.Error()
		return text[:strings.Index(text, kind)] + text[strings.LastIndex(text, kind):]
	case client.StatusOf(err) == 400: // about what a flag has said
		return strings.NewReplacer("the parameters c and m ", "--sms and --mail ", "the parameter c ", "--sms ",
			"the parameter m ", "--mail ", "the parameter i ", "--message ", "the parameter d ", "--to ",
			"the parameter notify ", "--notify ", "the parameter partSize ", "--part-size ").Replace(err.Error())
	}
	return err.Error()
}

// failures collects the errors of a command on several things, some of which may
// succeed.
type failures struct {
	out   console
	meter *meter // drawn at the same time; may be nil
	first error  // the caller prints it
}

// add keeps the first error, and prints the others.
func (f *failures) add(name string, err error) {
	if err == nil {
		return
	}
	err = &failure{name, err}
	if f.first == nil {
		f.first = err
		return
	}
	f.meter.print(f.out.Err, "ferry: %s", err)
}

// each runs f on each of several things until ctx ends. It continues after errors:
// it returns the first and prints the others.
func each(ctx context.Context, out console, names []string, f func(name string) error) error {
	failed := failures{out: out}
	for _, name := range names {
		if ctx.Err() != nil {
			return cmp.Or(failed.first, ctx.Err())
		}
		failed.add(name, f(name))
	}
	return failed.first
}

// report prints the results as JSON, if wanted, and returns the first failure.
func report(out console, asJSON bool, results any, failed error) error {
	if asJSON {
		return cmp.Or(printJSON(out, results), failed)
	}
	return failed
}

// failure is the error of one of several things.
type failure struct {
	name string
	err  error
}

// Error names the thing, once.
func (f *failure) Error() string {
	text, name := explain(f.err), cmp.Or(printable(f.name), `""`)
	if strings.HasPrefix(text, name+": ") || strings.HasSuffix(text, ": "+name) {
		return text
	}
	return name + ": " + text
}

func (f *failure) Unwrap() error { return f.err }
