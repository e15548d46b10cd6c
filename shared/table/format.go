package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// Format is the number of the format in which this version stores all data: the table's items,
// the keys of objects and the files beside them. If you change one of them so that another
// version could misread it, increase Format.
const Format = 1

// ErrFormat is returned by CheckFormat for data that this version cannot use.
var ErrFormat = errors.New("this version of Ferry cannot use these data")

// formatItem says which format all data have, and which version of Ferry stored the first of
// them. Every version must be able to read it.
type formatItem struct {
	Format  int64  `json:"v"`
	Version string `json:"version"`
}

func formatKey() Key { return Key{PK: "format", SK: "format"} }

// CheckFormat refuses data of another format, without changing anything. New data get the format
// of this version. It must run before anything else uses the data. It costs one read, so the
// functions of the stack leave it to the sweep.
func CheckFormat(ctx context.Context, t Table) error {
	var is formatItem
	err := t.Get(ctx, formatKey(), &is)
	if errors.Is(err, ErrNotFound) {
		if err = numberNew(ctx, t); err == nil {
			err = t.Get(ctx, formatKey(), &is)
		}
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf(
			"%w: it knows format %d, and a version from before the first release wrote them", ErrFormat, Format,
		)
	case err != nil:
		return fmt.Errorf("reading the format of the data: %w", err)
	case is.Format != Format:
		return fmt.Errorf("%w: it knows format %d, and version %s wrote them in format %d",
			ErrFormat, Format, is.Version, is.Format)
	}
	return nil
}

// numberNew gives new data their format, unless another process has done so. Data are new if no
// user was ever listed: the list keeps even removed users.
func numberNew(ctx context.Context, t Table) error {
	users, err := t.Query(ctx, Query{PK: UserList, Limit: 1})
	if err != nil || len(users.Items) > 0 {
		return err
	}
	build, _ := debug.ReadBuildInfo()
	item := formatItem{Format, cmp.Or(
		cmp.Or(build, &debug.BuildInfo{}).Main.Version,
		"(devel)",
	)}
	err = t.Write(ctx, Put(formatKey(), item).If(NotExists()))
	if err == nil || errors.Is(err, ErrCondition) {
		return nil
	}
	return fmt.Errorf("storing the format of the data: %w", err)
}

// UserList is the partition that lists all users. It keeps removed users' counters, and a later
// user of the same name continues them: no token or link of the first works for the second.
const UserList = "users"
