package apitest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"ferry/shared/blob"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// Log keeps what the service logs, and shows errors in the test's output.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
	out  io.Writer
}

// Write takes one line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte("level=ERROR")) {
		l.out.Write(line)
	}
	return l.text.Write(line)
}

// String returns everything logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Objects returns the keys of the objects in an area.
func (s *Server) Objects(area blob.Area) []string {
	s.Helper()
	objects, err := s.store().List(s.Context(), area, "", blob.MaxList)
	check(s.TB, "listing the "+string(area)+" area", err)
	keys := make([]string, len(objects))
	for i, o := range objects {
		keys[i] = o.Key
	}
	return keys
}

// store returns the blob store without call counting.
func (s *Server) store() blob.Store {
	if s.InStack() {
		return s.Data.Ports.Blobs
	}
	return s.Data.Disk
}

// Files returns the areas and keys of all stored files, and the paths of
// unfinished ones below Dir.
func (s *Server) Files() []string {
	s.Helper()
	var all []string
	for _, area := range blob.Areas() {
		for _, key := range s.Objects(area) {
			all = append(all, string(area)+"/"+key)
		}
	}
	if s.InStack() {
		return all
	}
	return append(all, s.inFolder("tmp")...)
}

// inFolder returns the paths in a data folder, which may be missing.
func (s *Server) inFolder(name string) []string {
	s.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Dir, name, "*"))
	check(s.TB, "looking into "+name, err)
	return paths
}

// Sessions returns the folders of open upload sessions.
func (s *Server) Sessions() []string {
	s.Helper()
	s.InProcess("it looks into the folder of sessions")
	return s.inFolder("parts")
}

// Spoil makes an item of the table unreadable, as damage to its file would.
func (s *Server) Spoil(key table.Key) {
	s.Helper()
	s.InProcess("it damages the file of the table")
	conn, err := sqlite.OpenConn(filepath.Join(s.Dir, "table.sqlite"), sqlite.OpenReadWrite)
	check(s.TB, "opening the table", err)
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	const damage = `UPDATE items SET doc = CAST('{"no JSON' AS BLOB) WHERE pk = ? AND sk = ?`
	check(
		s.TB,
		"damaging an item",
		sqlitex.Execute(conn, damage, &sqlitex.ExecOptions{Args: []any{key.PK, key.SK}}),
	)
	if conn.Changes() != 1 {
		s.Fatalf("there is no item %s", key)
	}
}

// Items returns the stored items as text by their keys. Delayed updates may be
// missing until Close.
func (s *Server) Items() map[string]string {
	s.Helper()
	items := map[string]string{}
	t := s.Data.Ports.Table
	if !s.InStack() {
		t = s.Data.Table // without call counting
	}
	err := t.Scan(s.Context(), func(i table.Item) (err error) {
		text := i.Raw
		if text == nil { // the table keeps no raw text
			var all map[string]any
			err = i.Decode(&all)
			text, _ = json.Marshal(all) // it was decoded from JSON's types
		}
		items[i.Key.String()] = string(text)
		return err
	})
	check(s.TB, "reading the table", err)
	return items
}

// Partitions returns the items whose keys begin with prefix, without what is left of dead links.
func (s *Server) Partitions(prefix string) map[string]string {
	s.Helper()
	items := s.Items()
	maps.DeleteFunc(items, func(key, text string) bool {
		return !strings.HasPrefix(key, prefix) || strings.Contains(text, `"dead":"`)
	})
	return items
}

// Outbox returns the notices in the outbox by channel and name.
func (s *Server) Outbox() (all []notify.Notice) {
	s.Helper()
	for key, text := range s.Partitions(notify.OutboxPrefix) {
		var n notify.Notice
		check(s.TB, "reading the notice "+key, json.Unmarshal([]byte(text), &n))
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b notify.Notice) int {
		return strings.Compare(string(a.Channel)+a.Name, string(b.Channel)+b.Name)
	})
	return all
}
