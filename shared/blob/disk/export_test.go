package disk

import (
	"io"
	"os"

	"ferry/shared/blob"
)

// SetLink replaces how links are made, to act like another file system.
func (s *Store) SetLink(link func(from, to string) error) { s.link = link }

// SetOrdered makes the store rely, or not, on a sync of a file for its name.
func (s *Store) SetOrdered(ordered bool) { s.ordered = ordered }

// FailJournal makes the journal's syncs fail from now on.
func (s *Store) FailJournal(err error) error {
	j, opening := s.journal.get()
	if opening == nil && j != nil {
		j.flush = func() error { return err }
	}
	return opening
}

// HasJournal reports whether small objects go through the journal.
func (s *Store) HasJournal() bool {
	j, err := s.journal.get()
	return j != nil && err == nil
}

// ErrNoJournal is of an object that a journal did not take.
var ErrNoJournal = errNoJournal

// Journal is one by itself.
type Journal struct{ j *journal }

// OpenJournal has flushTree in place of the syncs of the file system.
func OpenJournal(path string, flushTree func() error, restore func(area blob.Area, key string, content []byte) error) (Journal, error) {
	j, err := openJournal(path, func(*os.File) error { return flushTree() }, restore)
	return Journal{j}, err
}

func (j Journal) Add(key string, content []byte) error { return j.j.add(blob.Files, key, content) }
func (j Journal) Close() error                         { return j.j.close() }
func (j Journal) Kill() error                          { return j.j.file.Close() }

// Replay reads one half of a journal.
func Replay(r io.Reader, restore func(area blob.Area, key string, content []byte) error) error {
	_, err := replay(r, restore)
	return err
}
