package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/table"
)

func TestDataAreOfOneFormatOrRefused(t *testing.T) {
	t.Parallel()
	db := open(t)
	users, key := auth.NewUsers(db, time.Now), table.Key{PK: "format", SK: "format"}
	type format struct {
		V       int64  `json:"v"`
		Version string `json:"version"`
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := auth.CheckFormat(t.Context(), db); err != nil {
				t.Errorf("new data: %v", err)
			}
		})
	}
	all.Wait()
	var is format
	must(t, db.Get(t.Context(), key, &is))
	if is.V != auth.Format || is.Version == "" {
		t.Errorf("new data have the format %+v", is)
	}
	add(t, users, "alice", auth.Active)
	must(t, users.Disable(t.Context(), "alice"))
	must(t, users.Remove(t.Context(), "alice"))
	for _, c := range []struct {
		what string
		op   table.Op
		want string
	}{
		{"this version's", table.Put(key, format{auth.Format, "v1"}), ""},
		{"those of an earlier version", table.Put(key, format{auth.Format - 1, "v0"}), "it knows format 1, and version v0 wrote them in format 0"},
		{"those of a later version", table.Put(key, format{auth.Format + 1, "v2"}), "it knows format 1, and version v2 wrote them in format 2"},
		{"those of before the first release", table.Delete(key), "it knows format 1, and a version from before the first release wrote them"},
	} {
		must(t, db.Write(t.Context(), c.op))
		err := auth.CheckFormat(t.Context(), db)
		if errors.Is(err, auth.ErrFormat) != (c.want != "") || c.want != "" && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
	apitest.WantErr(t, "the format of the refused data", db.Get(t.Context(), key, &is), table.ErrNotFound)
	must(t, db.Write(t.Context(), table.Put(key, struct {
		V string `json:"v"`
	}{"x"})))
	apitest.WantErr(t, "a damaged item", auth.CheckFormat(t.Context(), db), table.ErrUnreadable)
}
