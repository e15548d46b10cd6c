package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"ferry/shared/table"
)

// translate gives the errors of the driver and the operating system that mean
// something to callers the name that callers know.
func translate(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", table.ErrFull, err)
	}
	coded, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}
	switch coded.Code() & 0xff { // the higher bits only say where it happened
	case codes.SQLITE_FULL:
		return fmt.Errorf("%w: %w", table.ErrFull, err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", table.ErrBusy, err)
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
