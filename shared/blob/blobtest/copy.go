package blobtest

import (
	"errors"
	"testing"

	"ferry/shared/blob"
)

func copyTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"a copy appears whole in the other area, both ways":  copyBothWays,
		"a copy lives on when the first object is deleted":   copyIsApart,
		"a copy of a missing object is ErrNotFound":          copyMissing,
		"a copy can be repeated":                             copyAgain,
		"a deleted object is gone from its area alone":       deleteRemoves,
		"deleting again, or what never was, is no error":     deleteTwice,
		"deleting the last object of an owner harms nothing": deleteLast,
	}
}

func (s suite) copy(from blob.Area, fromKey string, to blob.Area, toKey string) {
	s.Helper()
	if err := s.Store.Copy(s.Context(), from, fromKey, to, toKey); err != nil {
		s.Fatalf("copying %s from %s to %s in %s: %v", fromKey, from, toKey, to, err)
	}
}

func (s suite) delete(area blob.Area, key string) {
	s.Helper()
	if err := s.Store.Delete(s.Context(), area, key); err != nil {
		s.Fatalf("deleting %s from %s: %v", key, area, err)
	}
}

func copyBothWays(t *testing.T, s suite) {
	for name, size := range map[string]int{"empty": 0, "small": 100, "large": 20 * mib} {
		data := content(t, size)
		s.create(blob.Files, s.key(name), data)
		s.copy(blob.Files, s.key(name), blob.Backup, s.key(name+"-2"))
		s.wantContent(blob.Backup, s.key(name+"-2"), data)
		s.wantContent(blob.Files, s.key(name), data)
		s.wantNone(blob.Backup, s.key(name))
		s.copy(blob.Backup, s.key(name+"-2"), blob.Files, s.owner+".other/"+name+"-3")
		s.wantContent(blob.Files, s.owner+".other/"+name+"-3", data)
	}
	for _, o := range s.list(blob.Backup) {
		if o.Key == s.key("large-2") && o.Size != 20*mib {
			t.Errorf("the copy is listed as %+v", o)
		}
	}
}

func copyIsApart(t *testing.T, s suite) {
	data := content(t, 1000)
	s.create(blob.Files, s.key("k"), data)
	s.copy(blob.Files, s.key("k"), blob.Backup, s.key("k"))
	s.delete(blob.Files, s.key("k"))
	s.wantNone(blob.Files, s.key("k"))
	s.wantContent(blob.Backup, s.key("k"), data)
	other := content(t, 1000)
	s.create(blob.Files, s.key("k"), other)
	s.wantContent(blob.Backup, s.key("k"), data)
	s.delete(blob.Backup, s.key("k"))
	s.wantContent(blob.Files, s.key("k"), other)
}

func copyMissing(t *testing.T, s suite) {
	s.create(blob.Backup, s.key("k"), []byte("x"))
	err := s.Copy(t.Context(), blob.Files, s.key("k"), blob.Backup, s.key("new"))
	if !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got error %v, want ErrNotFound", err)
	}
	s.wantNone(blob.Backup, s.key("new"))
	s.wantContent(blob.Backup, s.key("k"), []byte("x"))
}

func copyAgain(t *testing.T, s suite) {
	data := content(t, 1000)
	s.create(blob.Files, s.key("k"), data)
	for range 3 {
		s.copy(blob.Files, s.key("k"), blob.Backup, s.key("k"))
		s.wantContent(blob.Backup, s.key("k"), data)
	}
	if got := keys(s.list(blob.Backup)); len(got) != 1 {
		t.Errorf("got %q, want one object", got)
	}
}

func deleteRemoves(t *testing.T, s suite) {
	for _, area := range areas() {
		s.create(area, s.key("k"), []byte(area))
		s.create(area, s.key("k2"), []byte(area))
	}
	s.delete(blob.Files, s.key("k"))
	s.wantNone(blob.Files, s.key("k"))
	s.wantContent(blob.Files, s.key("k2"), []byte(blob.Files))
	s.wantContent(blob.Backup, s.key("k"), []byte(blob.Backup))
}

func deleteTwice(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), []byte("x"))
	s.delete(blob.Files, s.key("k"))
	s.delete(blob.Files, s.key("k"))
	s.delete(blob.Files, s.key("never"))
	s.delete(blob.Backup, s.owner+"-never/never")
	s.wantNone(blob.Files, s.key("k"))
}

func deleteLast(t *testing.T, s suite) {
	for range 3 {
		s.create(blob.Files, s.key("k"), []byte("x"))
		s.delete(blob.Files, s.key("k"))
	}
	if own := s.list(blob.Files); len(own) != 0 {
		t.Errorf("got %+v, want nothing", own)
	}
}
