package operator

import (
	"errors"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/blob"
	"ferry/shared/boot/backup"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// known are the errors of a service's data with an exit code of their own.
var known = []struct {
	code   int
	errors []error
}{
	{cli.ExitDamaged, []error{
		sqlite.ErrOlder, sqlite.ErrNewer, local.ErrNoTable, local.ErrNoKey, local.ErrKey,
		backup.ErrForeign, table.ErrUnreadable, users.ErrDamaged, table.ErrFormat,
	}},
	{cli.ExitNoFile, []error{notify.ErrUnknown, backup.ErrNoFile}},
	{cli.ExitExists, []error{backup.ErrTaken}},
	{cli.ExitUsage, []error{backup.ErrInside}},
	{cli.ExitUnknown, []error{users.ErrUnknown}},
	{cli.ExitFull, []error{table.ErrFull, blob.ErrFull}},
	{cli.ExitBusy, []error{notify.ErrLeased, table.ErrBusy}},
	{cli.ExitRefused, []error{notify.ErrSent, notify.ErrFailed}},
}

// Known gives the errors of a service's data their exit codes, and says what to do about them.
func Known(err error) error {
	switch {
	case cli.HasCode(err):
		return err
	case errors.Is(err, sqlite.ErrDamaged):
		return cli.WithCode(cli.ExitDamaged, &damaged{err})
	case errors.Is(err, backup.ErrHasData):
		return cli.Fail(cli.ExitExists, "%w; name another directory with --data", err)
	case errors.Is(err, local.ErrNoData):
		return cli.Fail(cli.ExitSettings, "%w; say where it is with --data or FERRY_DATA", err)
	}
	for _, k := range known {
		if cli.IsAny(err, k.errors...) {
			return cli.WithCode(k.code, err)
		}
	}
	return err
}

// damaged is sqlite.ErrDamaged, which may be wrapped twice, but says so once.
type damaged struct{ error }

func (d *damaged) Error() string {
	text, kind := d.error.Error(), sqlite.ErrDamaged.Error()
	return text[:strings.Index(text, kind)] + text[strings.LastIndex(text, kind):]
}

func (d *damaged) Unwrap() error { return d.error }
