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

// Known gives the errors of a service's data their exit codes, and says what to do about them.
func Known(err error) error {
	switch {
	case cli.HasCode(err):
		return err
	case cli.IsAny(err, sqlite.ErrDamaged):
		return cli.WithCode(cli.ExitDamaged, &damaged{err})
	case cli.IsAny(err,
		sqlite.ErrOlder, sqlite.ErrNewer, local.ErrNoTable, local.ErrNoKey, local.ErrKey,
		backup.ErrForeign, table.ErrUnreadable, users.ErrDamaged, table.ErrFormat):
		return cli.WithCode(cli.ExitDamaged, err)
	case cli.IsAny(err, notify.ErrUnknown, backup.ErrNoFile):
		return cli.WithCode(cli.ExitNoFile, err)
	case errors.Is(err, backup.ErrHasData):
		return cli.Fail(cli.ExitExists, "%w; name another directory with --data", err)
	case cli.IsAny(err, backup.ErrTaken):
		return cli.WithCode(cli.ExitExists, err)
	case cli.IsAny(err, backup.ErrInside):
		return cli.WithCode(cli.ExitUsage, err)
	case cli.IsAny(err, users.ErrUnknown):
		return cli.WithCode(cli.ExitUnknown, err)
	case cli.IsAny(err, table.ErrFull, blob.ErrFull):
		return cli.WithCode(cli.ExitFull, err)
	case cli.IsAny(err, notify.ErrLeased, table.ErrBusy):
		return cli.WithCode(cli.ExitBusy, err)
	case cli.IsAny(err, notify.ErrSent, notify.ErrFailed):
		return cli.WithCode(cli.ExitRefused, err)
	case cli.IsAny(err, local.ErrNoData):
		return cli.Fail(cli.ExitSettings, "%w; say where it is with --data or FERRY_DATA", err)
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
