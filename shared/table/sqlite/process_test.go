package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// roleEnv makes the test binary act as another process. Until it is killed,
// "forever PATH" writes items, "store PATH" records with their bytes, and "beside
// PATH" items that are not records. "count PATH N" adds 1 to a counter N times.
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
	case "beside":
		return beside(context.Background(), db)
	}
	return forever(db)
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

// forever writes items, and prints the number of each when its write is answered.
func forever(db *sqlite.DB) error {
	const workers = 8
	var mu sync.Mutex
	errs := make(chan error)
	for worker := range workers {
		go func() {
			for i := 0; ; i++ {
				item := number{N: int64(i), Text: strings.Repeat("x", i%3000)}
				err := db.Write(context.Background(), table.Put(numberKey(worker, i), item), table.Update(counterKey()).Add("n", 1))
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				fmt.Println(worker, i)
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

func command(t *testing.T, kind, path string, times int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", roleEnv, kind, path, times))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestAKilledProcessLosesNoAnsweredWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "table.db")
	answered := map[[2]int]bool{}
	for round := range 3 {
		cmd := command(t, "forever", path, 0)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines, n := bufio.NewScanner(out), 0
		for lines.Scan() {
			var item [2]int
			if _, err := fmt.Sscan(lines.Text(), &item[0], &item[1]); err != nil {
				continue // the kill cut the last line
			}
			answered[item] = true
			if n++; n == 300+100*round {
				must(t, cmd.Process.Kill())
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended by itself")
		}
		checkAnswered(t, path, answered)
	}
}

// checkAnswered checks that the answered items are there, and that no write was
// half done: the counter went up with every item, even one written again.
func checkAnswered(t *testing.T, path string, answered map[[2]int]bool) {
	t.Helper()
	db, err := sqlite.Open(path, sqlite.Options{})
	must(t, err)
	defer db.Close()
	for item := range answered {
		var got number
		if err := db.Get(t.Context(), numberKey(item[0], item[1]), &got); err != nil {
			t.Fatalf("item %v was answered, but getting it gives: %v", item, err)
		}
		if got.N != int64(item[1]) || len(got.Text) != item[1]%3000 {
			t.Fatalf("item %v is %+v", item, got)
		}
	}
	stored := 0
	err = db.Scan(t.Context(), func(item table.Item) error {
		if strings.HasPrefix(item.Key.PK, "worker") {
			stored++
		}
		return nil
	})
	must(t, err)
	var counter number
	if err := db.Get(t.Context(), counterKey(), &counter); err != nil || counter.N < int64(stored) {
		t.Errorf("%d items are stored, but the counter is %d, error %v", stored, counter.N, err)
	}
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
		var counter number
		if err := db.Get(t.Context(), counterKey(), &counter); err != nil || counter.N != each*(processes+2) {
			t.Errorf("the counter is %d, want %d, error %v", counter.N, each*(processes+2), err)
		}
	}
}
