package files_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/table"
)

// linkKeys returns the keys of the links that a file has in the table.
func (s server) linkKeys(f files.File) (all []table.Key) {
	s.Helper()
	for _, key := range s.keys("link#") {
		var l links.Link
		s.must(s.Data.Table.Get(s.Context(), key, &l))
		if l.File.ID == f.ID {
			all = append(all, key)
		}
	}
	return all
}

// TestAFileGetsANewKeyForItsBytes uses a file in the backup area, which has two links.
func TestAFileGetsANewKeyForItsBytes(t *testing.T) {
	t.Parallel()
	store := func(s server, content string) func(files.File) error {
		return func(f files.File) error {
			_, err := s.Data.Disk.Create(t.Context(), f.Area, f.Blob, strings.NewReader(content), -1)
			return err
		}
	}
	nothing := func(server, files.File) {}
	for name, c := range map[string]struct {
		before  func(server, files.File)
		moves   bool // the bytes lie elsewhere, and are moved
		refused bool
	}{
		"the bytes are stored under it": {before: nothing},
		"the bytes are moved to it":     {before: nothing, moves: true},
		"its record and links are unreadable": {before: func(s server, f files.File) {
			for _, key := range append(s.linkKeys(f), keyOf(f)) {
				s.Spoil(key)
			}
		}},
		"its links are missing": {before: func(s server, f files.File) {
			for _, key := range s.linkKeys(f) {
				s.write(table.Delete(key))
			}
		}},
		"its key was renewed meanwhile": {before: func(s server, f files.File) { s.update(keyOf(f), "key", int64(2)) }, refused: true},
		"it was moved meanwhile":        {before: func(s server, f files.File) { s.update(keyOf(f), "blob", "D0-never/3-0000000000000000000003-alice") }, refused: true},
		"it was removed meanwhile":      {before: func(s server, f files.File) { s.write(table.Delete(keyOf(f))) }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, all := newChecked(t)
			f, service := all[2], file.Service(s.Data.Ports)
			objects := len(s.Objects(blob.Backup))
			c.before(s, f)
			from, put := []string(nil), store(s, "abc")
			if c.moves {
				from, put = []string{"files/D0-never/3-0000000000000000000003-alice"}, nil
				s.must(s.Data.Disk.Copy(t.Context(), f.Area, f.Blob, blob.Files, "D0-never/3-0000000000000000000003-alice"))
			}
			now, err := service.Rekey(t.Context(), f, from, put)
			if c.refused {
				if n := len(s.Objects(blob.Backup)); !errors.Is(err, table.ErrCondition) || n != objects {
					t.Errorf("%d objects, %v", n, err)
				}
				return
			}
			s.must(err)
			s.must(service.MoveBytes(t.Context(), now.Owner, now.ID))
			s.must(s.Data.Disk.Delete(t.Context(), f.Area, f.Blob))
			s.wantFindings("at the end", nil)
			if of, err := file.Links(s.Data.Ports).Of(t.Context(), now); err != nil || len(of) != 2 || of[1].File.Blob == f.Blob {
				t.Errorf("%+v, %v", of, err)
			}
		})
	}
}
