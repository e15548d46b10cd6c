package table_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

func TestDataAreOfOneFormatOrRefused(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "table.sqlite"), sqlite.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { db.Close() })
	accounts, key := &users.Service{Table: db, Now: time.Now}, table.Key{PK: "format", SK: "format"}
	type format struct {
		V       int64  `json:"v"`
		Version string `json:"version"`
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := table.CheckFormat(t.Context(), db); err != nil {
				t.Errorf("new data: %v", err)
			}
		})
	}
	all.Wait()
	var is format
	expect.NoErr(t, db.Get(t.Context(), key, &is))
	if is.V != table.Format || is.Version == "" {
		t.Errorf("new data have the format %+v", is)
	}
	expect.NoErr(t, accounts.Add(t.Context(), users.User{Name: "alice", State: users.Active, Password: "hash"}))
	expect.NoErr(t, accounts.Disable(t.Context(), "alice"))
	expect.NoErr(t, accounts.Remove(t.Context(), "alice"))
	for _, c := range []struct {
		what string
		op   table.Op
		want string
	}{
		{what: "this version's", op: table.Put(key, format{table.Format, "v1"})},
		{
			what: "those of an earlier version",
			op:   table.Put(key, format{table.Format - 1, "v0"}),
			want: "it knows format 1, and version v0 wrote them in format 0",
		},
		{
			what: "those of a later version",
			op:   table.Put(key, format{table.Format + 1, "v2"}),
			want: "it knows format 1, and version v2 wrote them in format 2",
		},
		{
			what: "those of before the first release",
			op:   table.Delete(key),
			want: "it knows format 1, and a version from before the first release wrote them",
		},
	} {
		expect.NoErr(t, db.Write(t.Context(), c.op))
		err := table.CheckFormat(t.Context(), db)
		if errors.Is(err, table.ErrFormat) != (c.want != "") ||
			c.want != "" && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	expect.Err(t, "the format of the refused data", db.Get(t.Context(), key, &is), table.ErrNotFound)
	expect.NoErr(t, db.Write(t.Context(), table.Put(key, struct {
		V string `json:"v"`
	}{"x"})))
	expect.Err(t, "a damaged item", table.CheckFormat(t.Context(), db), table.ErrUnreadable)
}
