package local_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
)

func TestABackupKeepsSmallFilesThatTheDataHasLost(t *testing.T) {
	t.Parallel()
	s, to := apitest.New(t), t.TempDir()
	s.AddUser("alice", password)
	s.Put(s.Login("alice", password), "file=x", "small")
	key, small := s.Objects(blob.Files)[0], s.Data.Table.Blobs()
	lose := func() error { return small.Delete(t.Context(), blob.Files, key) }
	for _, step := range []struct {
		what string
		do   func() error
		want local.Copied
	}{
		{"the first backup", func() error { return nil }, local.Copied{Files: 1, New: 1, Bytes: 5}},
		{"a repeated backup", func() error { return nil }, local.Copied{Files: 1}},
		{"a backup after the loss", lose, local.Copied{Files: 1}},
		{"a repeated backup after the loss", func() error { return nil }, local.Copied{Files: 1}},
	} {
		check(t, step.do())
		got, err := s.Data.Backup(t.Context(), to, local.Progress{Expect: func(int64) {}, Done: func(int64) {}})
		if err != nil || !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: %+v, %v; want %+v", step.what, got, err, step.want)
		}
		copied, err := local.Open(to, api.Settings{}, local.Options{Existing: true, NoSync: true})
		check(t, err)
		r, err := copied.Disk.Open(t.Context(), blob.Files, key)
		check(t, err)
		if content, err := io.ReadAll(r); err != nil || string(content) != "small" {
			t.Errorf("%s has %q, %v", step.what, content, err)
		}
		check(t, errors.Join(r.Close(), copied.Close()))
	}
	check(t, small.Create(t.Context(), blob.Files, key, []byte("other")))
	got, err := s.Data.Backup(t.Context(), to, local.Progress{Expect: func(int64) {}, Done: func(int64) {}})
	if want := (local.Copied{Files: 1, Damaged: []string{"alice/1 x"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a backup of changed bytes: %+v, %v; want %+v", got, err, want)
	}
}

func TestALostTableIsReportedEvenIfAllFilesWereInIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := apitest.Open(t, dir)
	s.AddUser("alice", password)
	s.Put(s.Login("alice", password), "file=x", "small")
	s.Close()
	key, err := os.ReadFile(filepath.Join(dir, "link.key"))
	check(t, err)
	check(t, os.Remove(filepath.Join(dir, "table.sqlite")))
	for _, existing := range []bool{true, false} {
		_, err := local.Open(dir, api.Settings{}, local.Options{Existing: existing, NoSync: true})
		if now, _ := os.ReadFile(filepath.Join(dir, "link.key")); !errors.Is(err, local.ErrNoTable) || !bytes.Equal(now, key) {
			t.Errorf("existing %v: %v", existing, err)
		}
	}
}
