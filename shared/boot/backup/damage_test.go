package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/backup"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/service"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

var (
	damageSeed   = flag.Uint64("damage-seed", 1, "seed of the random damage; 0 takes a random one")
	damageRounds = flag.Int("damage-rounds", 300, "how often the data is damaged")
)

// damageDays is how long after the uploads the data is damaged. The days in all keys have come,
// so that a sweep looks at everything, but nothing is due to expire: see outlive.
const damageDays = 100

// ruin is data that is damaged at random, with an earlier backup and an older table.
type ruin struct {
	*testing.T
	*rand.Rand
	dir, backup, older string
	contents           map[string]files.File // what was uploaded, and how its record was at the end
	done               []string              // what was damaged and run
}

// TestNoToolDestroysWhatDamageLeft damages one thing, and then runs the operator's tools in
// random order. Bytes that could be read must stay readable, or lie in removed or the backup,
// and bytes that lie anywhere must stay somewhere. What a check calls whole must be whole.
func TestNoToolDestroysWhatDamageLeft(t *testing.T) {
	t.Parallel()
	seed := *damageSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-damage-seed %d", seed)
	base := newRuin(t)
	for round := range *damageRounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := base
			r.T, r.Rand = t, rand.New(rand.NewPCG(seed, uint64(round)))
			r.dir, r.backup = t.TempDir(), t.TempDir()
			expect.NoErr(
				t,
				errors.Join(os.CopyFS(r.dir, os.DirFS(base.dir)), os.CopyFS(r.backup, os.DirFS(base.backup))),
			)
			r.round()
		})
	}
}

// newRuin makes the data that each round damages a copy of.
func newRuin(t *testing.T) ruin {
	r := ruin{
		T:        t,
		dir:      t.TempDir(),
		backup:   t.TempDir(),
		older:    filepath.Join(t.TempDir(), "older"),
		contents: map[string]files.File{},
	}
	s := apitest.Open(t, r.dir)
	alice, bob := s.Add("alice", apitest.Quota(1<<30)), s.Add("bob")
	put := func(c apitest.Caller, query, content string) {
		c.Upload("file=x&"+query, content)
		r.contents[content] = files.File{}
	}
	large := func(name string) string { return strings.Repeat(name, 10_000) }
	put(alice, "", "small")
	put(alice, "m=carl@example.com", large("large"))
	put(alice, "", large("large and moved"))
	put(bob, "", "small of bob")
	expect.NoErr(t, sqlite.CopyFile(t.Context(), tableOf(r.dir), r.older))
	_, err := backup.Make(t.Context(), s.Data, r.backup, false, unseen)
	expect.NoErr(t, err)
	put(alice, "", "small and newer")
	put(alice, "d=bob", large("to bob"))
	alice.Ask("DELETE /files/3", "").Want(200)
	alice.Ask("DELETE /files/4", "").Want(200)
	for content := range r.contents {
		for _, f := range records(t, s.Data) {
			if f.Length == int64(len(content)) {
				r.contents[content] = f
			}
		}
	}
	s.Close()
	for _, path := range []string{tableOf(r.dir), tableOf(r.backup), r.older} {
		r.outlive(path)
	}
	return r
}

// outlive lets all files of a table expire 300 days later than the days in their keys.
func (r *ruin) outlive(path string) {
	const later = ` = CAST(json_set(CAST(doc AS TEXT), '$.%[1]s', json_extract(CAST(doc AS TEXT), '$.%[1]s') + 300 * 86400) AS BLOB)`
	r.query(
		path,
		fmt.Sprintf(`UPDATE items SET doc`+later+` WHERE pk LIKE 'files#%%' OR pk LIKE 'backup#%%'`, "expires"),
	)
	r.query(
		path,
		fmt.Sprintf(`UPDATE items SET ttl = ttl + 300 * 86400, doc`+later+` WHERE pk LIKE 'link#%%'`, "file.expires"),
	)
}

// records returns the records that can be read.
func records(t *testing.T, d *local.Data) (all []files.File) {
	for _, owner := range []string{"alice", "bob"} {
		for _, area := range blob.Areas() {
			page, err := on(d).Files().List(t.Context(), users.User{Name: owner}, area, 0, 100)
			expect.NoErr(t, err)
			for _, f := range page.Files {
				all = append(all, f.File)
			}
		}
	}
	return all
}

func (r *ruin) round() {
	defer func() {
		if r.Failed() {
			r.Logf("what was done:\n\t%s", strings.Join(r.done, "\n\t"))
		}
	}()
	r.damage()
	readable, held := r.readable(), r.held(r.dir, r.backup)
	r.use(func(d *local.Data) {
		for range 3 + r.IntN(3) {
			r.run(d)
		}
	})
	after := r.readable()
	maps.Copy(after, r.held(filepath.Join(r.dir, "removed"), r.backup))
	r.wantAll("could be read and now is nowhere to be found", readable, after)
	r.wantAll("is gone", held, r.held(r.dir, r.backup))
	r.wantWholeIfSaid()
}

func (r *ruin) wantAll(otherwise string, before, now map[string]bool) {
	for content := range before {
		if !now[content] {
			r.Errorf("%.20q of file %d %s", content, r.contents[content].ID, otherwise)
		}
	}
}

// damage damages one thing.
func (r *ruin) damage() {
	kinds := []func(){
		func() { r.item(r.dir, "%") },
		func() { r.item(r.dir, "%") },
		func() { r.item(r.dir, "files#%") },
		func() { r.item(r.dir, "link#%") },
		func() { r.item(r.dir, "user%") },
		func() { r.row(r.dir) },
		func() { r.file(r.dir) },
		func() { r.row(r.backup) },
		func() { r.item(r.backup, "%") },
		func() { r.file(r.backup) },
		func() {
			r.note("an older table")
			name := tableOf(r.dir)
			old, err := os.ReadFile(r.older)
			expect.NoErr(
				r.T,
				errors.Join(err, os.RemoveAll(name+"-wal"), os.RemoveAll(name+"-shm"), os.WriteFile(name, old, 0o600)),
			)
		},
	}
	kinds[r.IntN(len(kinds))]()
}

func (r *ruin) note(format string, args ...any) {
	r.done = append(r.done, fmt.Sprintf(format, args...))
}

func tableOf(dir string) string { return filepath.Join(dir, "table.sqlite") }

// query runs a statement on a table that no process has open, and returns its rows.
func (r *ruin) query(path, text string, args ...any) (rows [][]string) {
	conn, err := zombie.OpenConn(path, zombie.OpenReadWrite)
	expect.NoErr(r.T, err)
	defer conn.Close()
	expect.NoErr(r.T, sqlitex.Execute(conn, text, &sqlitex.ExecOptions{
		Args: args,
		ResultFunc: func(s *zombie.Stmt) error {
			row := make([]string, s.ColumnCount())
			for i := range row {
				row[i] = s.ColumnText(i)
			}
			rows = append(rows, row)
			return nil
		},
	}))
	return rows
}

// item damages one of the items whose partition is like a pattern. Without their format all data
// are refused, and nothing happens to them.
func (r *ruin) item(dir, like string) {
	all := r.query(
		tableOf(dir),
		`SELECT pk, sk, doc FROM items WHERE pk LIKE ? AND pk != 'format' ORDER BY pk, sk`,
		like,
	)
	one := all[r.IntN(len(all))]
	doc := map[string]json.RawMessage{}
	expect.NoErr(r.T, json.Unmarshal([]byte(one[2]), &doc))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(doc)), func(name string) bool { return name == "expires" }) // nothing is to expire
	name := names[r.IntN(len(names))]
	switch old := doc[name]; r.IntN(5) {
	case 0:
		r.note("item %s %s of %s removed", one[0], one[1], filepath.Base(dir))
		r.query(tableOf(dir), `DELETE FROM items WHERE pk = ? AND sk = ?`, one[0], one[1])
		return
	case 1:
		doc = nil
	case 2:
		delete(doc, name)
	case 3:
		doc[name] = []byte(`[["x"]]`)
	case 4:
		if text := strings.Trim(string(old), `"`); text != string(old) {
			doc[name], _ = json.Marshal(text + "x")
		} else if old[0] >= '0' && old[0] <= '9' {
			doc[name] = append(old[:len(old)-1:len(old)-1], '1')
		}
	}
	text, err := json.Marshal(doc)
	expect.NoErr(r.T, err)
	if doc == nil {
		text = []byte(one[2][:len(one[2])/2])
	}
	r.note("item %s %s of %s is %s", one[0], one[1], filepath.Base(dir), text)
	r.query(tableOf(dir), `UPDATE items SET doc = ? WHERE pk = ? AND sk = ?`, text, one[0], one[1])
}

// row damages one of the small files.
func (r *ruin) row(dir string) {
	all := r.query(tableOf(dir), `SELECT area, key, content FROM blobs ORDER BY key`)
	one := all[r.IntN(len(all))]
	r.note("row %s %s of %s", one[0], one[1], filepath.Base(dir))
	if r.IntN(2) == 0 {
		r.query(tableOf(dir), `DELETE FROM blobs WHERE key = ?`, one[1])
		return
	}
	r.query(tableOf(dir), `UPDATE blobs SET content = ? WHERE key = ?`, r.spoilt([]byte(one[2])), one[1])
}

// file damages one of the large files.
func (r *ruin) file(dir string) {
	all, err := filepath.Glob(filepath.Join(dir, "[fb]*", "*", "*"))
	expect.NoErr(r.T, err)
	path := all[r.IntN(len(all))]
	r.note("file %s", path)
	content, err := os.ReadFile(path)
	expect.NoErr(r.T, errors.Join(err, os.Remove(path)))
	switch r.IntN(4) {
	case 0:
	case 1:
		expect.NoErr(r.T, os.Mkdir(path, 0o700))
	default:
		expect.NoErr(r.T, os.WriteFile(path, r.spoilt(content), 0o600))
	}
}

// spoilt returns content that is shorter, or has another byte.
func (r *ruin) spoilt(content []byte) []byte {
	n := r.IntN(len(content))
	if r.IntN(2) == 0 {
		return content[:n]
	}
	content[n] ^= 1
	return content
}

// use opens the data, days after the uploads.
func (r *ruin) use(do func(*local.Data)) {
	now := func() time.Time { return time.Now().AddDate(0, 0, damageDays) }
	d, err := local.Open(r.dir, local.Options{Existing: true, NoSync: true, Hash: apitest.Cheap(), Now: now})
	expect.NoErr(r.T, err)
	do(d)
	expect.NoErr(r.T, d.Close())
}

// on returns a service on data.
func on(d *local.Data) *service.Service {
	return service.New(d.Ports, service.Settings{Retention: files.Retention{KeepDays: 30, BackupDays: 90}})
}

// readable returns the contents that can be downloaded by a file's own link.
func (r *ruin) readable() map[string]bool {
	all := map[string]bool{}
	r.use(func(d *local.Data) {
		for content, f := range r.contents {
			for _, f.Area = range blob.Areas() {
				for _, f.Key = range []int64{0, 1} {
					if got, err := r.download(on(d), f); err == nil && got == content {
						all[content] = true
					}
				}
			}
		}
	})
	return all
}

func (r *ruin) download(s *service.Service, f files.File) (string, error) {
	l, err := s.Links().Find(r.Context(), f.Area, s.Links().Token(f), "")
	if err != nil {
		return "", err
	}
	b, err := s.Files().Open(r.Context(), l.File, func(ctx context.Context) (files.File, error) {
		return s.Links().FindAgain(ctx, l)
	})
	if err != nil {
		return "", err
	}
	defer b.Close()
	got, err := io.ReadAll(b)
	return string(got), err
}

// held returns the contents that are anywhere in folders, in files or in their tables.
func (r *ruin) held(dirs ...string) map[string]bool {
	all := map[string]bool{}
	note := func(content string) {
		if _, ok := r.contents[content]; ok {
			all[content] = true
		}
	}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "table.sqlite" {
				for _, row := range r.query(path, `SELECT content FROM blobs`) {
					note(row[0])
				}
			} else if err == nil && e.Type().IsRegular() && !strings.HasPrefix(e.Name(), "table.sqlite") {
				content, _ := os.ReadFile(path)
				note(string(content))
			}
			return nil
		})
	}
	return all
}

// run runs one of the tools.
func (r *ruin) run(d *local.Data) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Minute)
	defer cancel()
	switch tool := r.IntN(4); tool {
	case 0:
		copied, err := backup.Make(ctx, d, r.backup, r.IntN(2) == 0, unseen)
		r.note("backup: %+v, %v", copied, err)
		expect.NoErr(r.T, err)
	case 1:
		sweeper := &files.Sweeper{Service: on(d).Files(), Grace: 25 * time.Hour}
		did, err := sweeper.Run(ctx)
		r.note("sweep: %+v, %v", did, err)
		expect.NoErr(r.T, err)
	default:
		r.check(ctx, d, tool == 3)
	}
}

func (r *ruin) check(ctx context.Context, d *local.Data, repair bool) files.CheckReport {
	var all []string
	c := files.Check{
		Service: on(d).Files(), Grace: 25 * time.Hour, Repair: repair, Expect: unseen.Expect, Done: unseen.Done,
		Found: func(f files.Finding) { all = append(all, fmt.Sprintf("%+v", f)) },
	}
	report, err := c.Run(ctx)
	r.note("check, repair %v: %+v %q, %v", repair, report, all, err)
	expect.NoErr(r.T, err)
	return report
}

// wantWholeIfSaid checks, if a check finds no fault, that all records lead to what was uploaded,
// and that all users can upload.
func (r *ruin) wantWholeIfSaid() {
	r.use(func(d *local.Data) {
		if r.check(r.Context(), d, false).Found > 0 {
			return
		}
		for _, f := range records(r.T, d) {
			if got, err := r.download(on(d), f); err != nil || r.contents[got].ID != f.ID {
				r.Errorf("the check finds nothing, but file %d of %s has %d bytes, %v", f.ID, f.Owner, len(got), err)
			}
		}
		for _, name := range []string{"alice", "bob"} {
			u, err := (&users.Service{Table: d.Table, Now: time.Now}).Get(r.Context(), name)
			expect.NoErr(r.T, err)
			up, err := on(d).Files().Begin(
				r.Context(),
				name,
				files.ByOf(identity.Identity{User: u}),
				1,
				files.Sending{},
			)
			expect.NoErr(r.T, err)
			expect.NoErr(r.T, up.Add(r.Context(), files.Part{Name: "after", Body: strings.NewReader("x"), Size: 1}))
			if _, err = up.Commit(r.Context(), 10); err != nil {
				r.Errorf("the check finds nothing, but %s cannot upload: %v", name, err)
			}
		}
	})
}
