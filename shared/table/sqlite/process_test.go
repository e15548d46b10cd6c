package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// roleEnv makes the test binary act as another process. Until it is killed,
// "store PATH" writes records with their bytes, and "beside PATH" items that are
// not records. "count PATH N" adds 1 to a counter N times.
const roleEnv = "FERRY_TEST_SQLITE_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := act(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type number struct {
	N    int64  `json:"n"`
	Text string `json:"text,omitempty"`
}

func numberKey(worker, i int) table.Key {
	return table.Key{PK: fmt.Sprint("worker", worker), SK: fmt.Sprint("item", i)}
}

func act(role string) error {
	var kind, path string
	var times int
	if _, err := fmt.Sscan(role, &kind, &path, &times); err != nil {
		return err
	}
	db, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	switch kind {
	case "count":
		return count(db, times)
	case "store":
		return store(context.Background(), db, func(key string) { fmt.Println(key) })
	}
	return beside(context.Background(), db)
}

func count(db *sqlite.DB, times int) error {
	for range times {
		if err := db.Write(context.Background(), table.Update(counterKey()).Add("n", 1)); err != nil {
			return err
		}
	}
	return nil
}

func counterKey() table.Key { return table.Key{PK: "counter", SK: "k"} }

func command(t *testing.T, kind, path string, times int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", roleEnv, kind, path, times))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestProcessesWriteToOneFileAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "table.db")
	const each, processes = 50, 3
	var running []*exec.Cmd
	for range processes {
		cmd := command(t, "count", path, each)
		must(t, cmd.Start())
		running = append(running, cmd)
	}
	db := open(t, path, sqlite.Options{})
	second := open(t, path, sqlite.Options{})
	for _, db := range []*sqlite.DB{db, second} {
		if err := count(db, each); err != nil {
			t.Error(err)
		}
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, db := range []*sqlite.DB{db, second} {
		wantNumber(t, db, counterKey(), each*(processes+2))
	}
}
