package client_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/bundle"
	"ferry/shared/client"
)

// tree has the content of files by their paths in a bundle; folders end in a slash. A path that
// ends in .sh is executable.
type tree map[string][]byte

// theTime is when all files of a tree were changed.
func theTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (tr tree) entries() (all []bundle.Entry) {
	for _, path := range slices.Sorted(maps.Keys(tr)) {
		all = append(all, bundle.Entry{
			Path: path, Length: int64(len(tr[path])), Modified: theTime(), Executable: strings.HasSuffix(path, ".sh"),
		})
	}
	return all
}

// source returns the bundle of a tree.
func (tr tree) source(t *testing.T) client.Source {
	t.Helper()
	entries := tr.entries()
	l, err := bundle.Plan(entries)
	must(t, err)
	return client.Bundle("tree.zip", l, func(entry int) (bundle.File, error) {
		return inMemory{bytes.NewReader(tr[entries[entry].Path])}, nil
	})
}

func (tr tree) put(t *testing.T, c *client.Client, o client.PutOptions) client.File {
	t.Helper()
	f, err := c.Put(t.Context(), tr.source(t), o)
	must(t, err)
	return f
}

// wantIn checks that a folder holds the tree and nothing else.
func (tr tree) wantIn(t *testing.T, dir string) {
	t.Helper()
	found := tree{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if children, _ := os.ReadDir(path); err != nil || d.IsDir() {
			if _, wanted := tr[name+"/"]; len(children) == 0 || wanted {
				found[name+"/"] = nil
			}
			return err
		}
		info, err := d.Info()
		if err != nil ||
			!info.ModTime().Equal(theTime()) ||
			(info.Mode()&0o111 != 0) != strings.HasSuffix(name, ".sh") {
			t.Errorf("%s has the time %v and the mode %v, %v", name, info.ModTime(), info.Mode(), err)
		}
		found[name], err = os.ReadFile(path)
		return err
	}))
	delete(found, "./")
	if !maps.EqualFunc(found, tr, bytes.Equal) {
		t.Errorf("the folder has %v, want %v", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(tr)))
	}
}

// usualTree has a file that is longer than a part, before and after small ones.
func usualTree() tree {
	return tree{
		"tree/a.txt": []byte("first"), "tree/big.bin": bytesOf(
			1,
			2*partSize+4321,
		), "tree/empty": nil, "tree/empty folder/": nil,
		"tree/run.sh": []byte("#!/bin/sh\n"), "tree/été/日本語.txt": []byte("nom"), "tree/имя/файл": bytesOf(
			2,
			300_000,
		), "z.txt": []byte("last"),
	}
}

func TestABundleComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	tr := usualTree()
	var sent, got atomic.Int64
	f := tr.put(t, c, client.PutOptions{PartSize: partSize, Progress: func(n int64) { sent.Add(n) }})
	if f.Name != "tree.zip" || sent.Load() != f.Length {
		t.Errorf("%+v, and the progress ends at %d", f, sent.Load())
	}
	dir := t.TempDir()
	u, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{
		Path:   dir,
		Verify: client.Verify{Progress: func(n int64) { got.Add(n) }},
	})
	if err != nil || u.Files != 7 || u.Length != got.Load() {
		t.Errorf("%+v of %d bytes, %v", u, got.Load(), err)
	}
	tr.wantIn(t, dir)
}

func TestABundleIsResumedWhereItEnded(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	tr := usualTree()
	tr["tree/big.bin"] = bytesOf(3, 4*partSize)
	session := stopAfter(t, c, tr.source(t), 2*partSize)
	var had atomic.Int64
	f := tr.put(t, c, client.PutOptions{Session: session, Had: func(n int64) { had.Add(n) }})
	if had.Load() < 2*partSize {
		t.Errorf("only %d bytes were not sent again", had.Load())
	}
	dir := t.TempDir()
	_, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir})
	must(t, err)
	tr.wantIn(t, dir)
	wantNoSessions(t, c)
}

func TestAFileThatChangesEndsItsBundleAndIsNamed(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	tr := usualTree()
	var once sync.Once
	_, err := c.Put(t.Context(), tr.source(t), client.PutOptions{
		PartSize:    partSize,
		Connections: 1,
		Progress: func(int64) {
			once.Do(func() { tr["tree/big.bin"][2*partSize-1000]++ })
		},
	})
	if !errors.Is(err, client.ErrChanged) || !strings.Contains(err.Error(), `"tree/big.bin" changed`) {
		t.Error(err)
	}
}
