package apitest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"ferry/shared/blob"
	"ferry/shared/table"
)

// Log keeps what the service logs and shows what is an error.
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

// String returns all that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Objects returns the keys of the objects in an area.
func (s *Server) Objects(area blob.Area) []string {
	s.Helper()
	objects, err := s.store().List(s.Context(), area, "", blob.MaxList)
	if err != nil {
		s.Fatalf("listing the %s area: %v", area, err)
	}
	keys := make([]string, len(objects))
	for i, o := range objects {
		keys[i] = o.Key
	}
	return keys
}

// store is the blob store behind what counts its calls.
func (s *Server) store() blob.Store {
	if s.InStack() {
		return s.Data.Ports.Blobs
	}
	return s.Data.Disk
}

// Files returns all files of users by their areas and keys, and the paths, below
// Dir, of halves.
func (s *Server) Files() []string {
	s.Helper()
	var all []string
	for _, area := range []blob.Area{blob.Files, blob.Backup} {
		for _, key := range s.Objects(area) {
			all = append(all, string(area)+"/"+key)
		}
	}
	if s.InStack() {
		return all
	}
	return append(all, s.inFolder("tmp")...)
}

// inFolder returns the paths of what is in a folder of the data, which may be missing.
func (s *Server) inFolder(name string) []string {
	s.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Dir, name, "*"))
	if err != nil {
		s.Fatalf("looking into %s: %v", name, err)
	}
	return paths
}

// Sessions returns the folders of the sessions whose parts are kept.
func (s *Server) Sessions() []string {
	s.Helper()
	s.InProcess("it looks into the folder of sessions")
	return s.inFolder("parts")
}

// Items returns the stored items, in text, by their key. Delayed updates may
// be missing until Close.
func (s *Server) Items() map[string]string {
	s.Helper()
	items := map[string]string{}
	t := s.Data.Ports.Table
	if !s.InStack() {
		t = s.Data.Table // behind what counts its calls
	}
	err := t.Scan(s.Context(), func(i table.Item) (err error) {
		text := i.Raw
		if text == nil { // the table keeps none
			var all map[string]any
			err = i.Decode(&all)
			text, _ = json.Marshal(all) // what was decoded from JSON's kinds
		}
		items[i.Key.String()] = string(text)
		return err
	})
	if err != nil {
		s.Fatalf("reading the table: %v", err)
	}
	return items
}

// Partitions returns the items whose keys begin with prefix.
func (s *Server) Partitions(prefix string) map[string]string {
	s.Helper()
	items := s.Items()
	maps.DeleteFunc(items, func(key, _ string) bool { return !strings.HasPrefix(key, prefix) })
	return items
}
