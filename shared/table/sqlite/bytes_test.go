package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// record names the bytes that are stored with it.
type record struct {
	Area blob.Area `json:"area"`
	Blob string    `json:"blob"`
}

// bytesOf returns up to 12,000 bytes that depend only on an object's key.
func bytesOf(name string) []byte {
	return bytes.Repeat([]byte(name), int(name[0])*int(name[1])%450)
}

// store stores bytes and then their record with a count, as an upload does, and
// moves some to the other area. It calls answered with the key of each record that was stored.
func store(ctx context.Context, db *sqlite.DB, answered func(key string)) error {
	const workers = 4
	var mu sync.Mutex
	errs := make(chan error, workers)
	for worker := range workers {
		go func() {
			for i := 0; ; i++ {
				id := rand.Text()
				if err := storeOne(ctx, db, id, (worker+i)%3 == 0); err != nil {
					errs <- err
					return
				}
				mu.Lock()
				answered(id)
				mu.Unlock()
			}
		}()
	}
	var err error
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return err
}

func storeOne(ctx context.Context, db *sqlite.DB, id string, move bool) error {
	key, small := table.Key{PK: "record", SK: id}, db.Blobs()
	if err := small.Create(ctx, blob.Files, id+"/a", bytesOf(id)); err != nil {
		return err
	}
	err := db.Write(ctx, table.Put(key, record{blob.Files, id + "/a"}), table.Update(counterKey()).Add("n", 1))
	if err != nil || !move {
		return err
	}
	if err := small.Copy(ctx, blob.Files, id+"/a", blob.Backup, id+"/b"); err != nil {
		return err
	}
	if err := db.Write(ctx, table.Put(key, record{blob.Backup, id + "/b"})); err != nil {
		return err
	}
	return small.Delete(ctx, blob.Files, id+"/a")
}

// beside writes items that have nothing to do with files, as "ferry user add" does.
func beside(ctx context.Context, db *sqlite.DB) error {
	if err := db.LeaveLog(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		err := db.Write(ctx, table.Put(table.Key{PK: "user", SK: fmt.Sprint(i % 100)}, number{Text: rand.Text()}))
		if err != nil {
			return err
		}
	}
}

// wantBytes fails unless each record has its bytes and was counted, and all
// wanted records are there. It returns the number of records.
func wantBytes(t *testing.T, path string, wanted []string) int {
	t.Helper()
	db, err := sqlite.Open(path, sqlite.Options{NoSync: true})
	must(t, err)
	defer db.Close()
	there := map[string]bool{}
	err = db.Scan(t.Context(), func(item table.Item) error {
		if item.Key.PK != "record" {
			return nil
		}
		there[item.Key.SK] = true
		var r record
		if err := item.Decode(&r); err != nil {
			return err
		}
		content, err := db.Blobs().Read(t.Context(), r.Area, r.Blob)
		if err != nil || !bytes.Equal(content, bytesOf(item.Key.SK)) {
			return fmt.Errorf("record %s has %d bytes in %s: %w", item.Key.SK, len(content), r.Area, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, id := range wanted {
		if !there[id] {
			t.Errorf("record %s was answered but is lost", id)
		}
	}
	var counted number
	err = db.Get(t.Context(), counterKey(), &counted)
	if len(there) > 0 && err != nil || counted.N != int64(len(there)) {
		t.Errorf("%d records are there, but %d were counted, error %v", len(there), counted.N, err)
	}
	return len(there)
}

func TestAKillLeavesNoRecordWithoutItsBytes(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var answered []string
	for range 3 {
		storing, second := command(t, "store", path, 0), command(t, "beside", path, 0)
		out, err := storing.StdoutPipe()
		must(t, errors.Join(err, storing.Start(), second.Start()))
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if len(lines.Text()) == len(rand.Text()) { // the kill may cut the last line
				answered = append(answered, lines.Text())
			}
			if n == 200 {
				err = errors.Join(storing.Process.Kill(), second.Process.Kill())
			}
		}
		for _, cmd := range []*exec.Cmd{storing, second} {
			if cmd.Wait() == nil || err != nil {
				t.Fatalf("a process ended by itself, or error %v", err)
			}
		}
		wantBytes(t, path, answered)
	}
}

// powerLoss is what the disk may hold after a loss of power: the table and its log
// as they were when copied, but only any part of the log's unsynced end.
type powerLoss struct {
	table, log      []byte
	durable, frames int // numbers of frames in the log
	answered        []string
}

// SQLite documents the layouts of its log and of the index beside it.
const (
	logHeader = 32
	frameSize = 24 + 4096
	framesAt  = 16 // where the index has the number of frames in the log
	foldedAt  = 96 // where it has the number of those that are already in the table
)

func (p powerLoss) at(frame int) int { return min(len(p.log), logHeader+frame*frameSize) }

// cuts returns logs as the loss may leave them: cut off at the end of a frame, cut
// off inside a frame, and with one frame missing before others.
func (p powerLoss) cuts() (logs [][]byte) {
	for range 4 {
		frame := p.durable + mathrand.IntN(p.frames-p.durable+1)
		torn := min(p.at(frame)+mathrand.IntN(frameSize), len(p.log))
		hole := slices.Clone(p.log)
		clear(hole[p.at(frame):p.at(frame+1)])
		logs = append(logs, p.log[:p.at(frame)], p.log[:torn], hole)
	}
	return logs
}

// lose copies the table and its log while other commits wait. It starts another
// process, because closing the files in this one would drop SQLite's locks.
func lose(t *testing.T, path string, answered []string) powerLoss {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(
		t.Context(),
		"cp",
		path,
		path+"-wal",
		path+"-shm",
		dir,
	).CombinedOutput(); err != nil {
		t.Fatalf("copying: %v: %s", err, out)
	}
	read := func(name string) []byte {
		all, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return all
	}
	name := filepath.Base(path)
	index := read(name + "-shm")
	return powerLoss{
		table: read(name), log: read(name + "-wal"), answered: answered,
		frames:  int(binary.NativeEndian.Uint32(index[framesAt:])),
		durable: int(binary.NativeEndian.Uint32(index[foldedAt:])), // the log is synced before it is folded
	}
}

// TestALossOfPowerLeavesNoRecordWithoutItsBytes while a second process writes to
// the same file and a third connection folds the log at any moment.
func TestALossOfPowerLeavesNoRecordWithoutItsBytes(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db, folding := open(t, path, sqlite.Options{}), raw(t, path)
	must(t, db.LeaveLog())
	second := command(t, "beside", path, 0)
	must(t, second.Start())
	var mu sync.Mutex
	var answered []string
	ctx, stop := context.WithCancel(t.Context())
	stored := make(chan error)
	go func() {
		stored <- store(ctx, db, func(id string) { mu.Lock(); answered = append(answered, id); mu.Unlock() })
	}()
	var losses []powerLoss
	run(t, folding, "PRAGMA busy_timeout = 10000")
	for round := range 12 {
		var until []string
		for len(until) < 3*(round+1) {
			time.Sleep(time.Millisecond)
			mu.Lock()
			until = slices.Clone(answered)
			mu.Unlock()
		}
		run(t, folding, "BEGIN IMMEDIATE")
		losses = append(losses, lose(t, path, until))
		run(t, folding, "ROLLBACK")
		if round%3 == 2 {
			run(t, folding, "PRAGMA wal_checkpoint(PASSIVE)")
		}
	}
	stop()
	wantErr(t, <-stored, context.Canceled)
	_ = second.Process.Kill()
	_ = second.Wait()
	lost := 0
	for _, p := range losses {
		all := wantBytes(t, write(t, p.table, p.log), p.answered)
		for _, log := range p.cuts() {
			lost += all - wantBytes(t, write(t, p.table, log), nil)
		}
	}
	if lost == 0 {
		t.Error("no loss removed a record: the test proves nothing")
	}
}

// write makes a new folder with a table and its log.
func write(t *testing.T, table, log []byte) string {
	t.Helper()
	path := newPath(t)
	must(t, errors.Join(os.WriteFile(path, table, 0o600), os.WriteFile(path+"-wal", log, 0o600)))
	return path
}

func TestBlobsCreateStoresNothingAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, db.Blobs().Create(ctx, blob.Files, "a/a", nil), context.Canceled)
	_, err := db.Blobs().Read(t.Context(), blob.Files, "a/a")
	wantErr(t, err, blob.ErrNotFound)
}

func TestBlobsCreateOnAFullMediumIsErrFull(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), sqlite.Options{})
	db.LimitPages(t, 12)
	err := db.Blobs().Create(t.Context(), blob.Files, "a/a", []byte(strings.Repeat("x", 60_000)))
	wantErr(t, err, blob.ErrFull)
	if left, err := db.Blobs().List(t.Context(), blob.Files, "", 10); err != nil || len(left) != 0 {
		t.Errorf("listing gives %v and error %v, want none", left, err)
	}
}
