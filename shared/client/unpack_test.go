package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/bundle"
	"ferry/shared/client"
)

// archive returns the bundle of a tree with some bytes exchanged. It keeps its length.
func (tr tree) archive(t *testing.T, change ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := bundle.NewWriter(&b)
	for _, e := range tr.entries() {
		must(t, w.Add(e, tr[e.Path]))
	}
	must(t, w.Close())
	return []byte(strings.NewReplacer(change...).Replace(b.String()))
}

func TestAHostileArchiveIsRefused(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	harmless := tree{"aa/evil.txt": []byte("content"), "b.txt": []byte("more")}
	once := harmless.archive(t)
	copy(once[bytes.Index(once, []byte("aa/")):], "ab/")
	for what, k := range map[string]struct {
		archive []byte
		says    string
	}{
		"a way up": {harmless.archive(
			t,
			"aa/evil",
			"../evil",
		), `"../evil.txt" has the path element ".."`},
		"a header with another name":     {once, `"aa/evil.txt" has a local header that does not agree`},
		"no archive":                     {bytesOf(1, 100), "is not a ZIP archive"},
		"the name of the unpacking room": {tree{"evil.zip.unpacking/1": []byte("x")}.archive(t), "a name that unpacking needs"},
	} {
		file, err := c.Upload(t.Context(), "evil.zip", "", k.archive, client.Delivery{})
		must(t, err)
		outer := t.TempDir()
		_, err = c.Unpack(t.Context(), file.Link, client.UnpackOptions{Path: filepath.Join(outer, "in", "side")})
		if _, ok := errors.AsType[*bundle.Error](err); !ok || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v", what, err)
		}
		tree{"in/": nil}.wantIn(t, outer)
	}
}

func TestWrongBytesAreToldAndTheOthersKept(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	tr := tree{"a.txt": []byte("first"), "b.txt": []byte("second"), "c.txt": []byte("third"), "d.txt": []byte("fourth")}
	f, err := c.Upload(t.Context(), "x.zip", "", tr.archive(t, "second", "zecond", "third", "thurd"), client.Delivery{})
	must(t, err)
	dir := t.TempDir()
	_, err = c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir})
	if !errors.Is(err, client.ErrDigest) ||
		!strings.Contains(fmt.Sprint(err), `"b.txt" has the CRC-32 `) ||
		!strings.HasSuffix(err.Error(), "other files with wrong bytes: 1") {
		t.Error(err)
	}
	tree{"a.txt": tr["a.txt"], "d.txt": tr["d.txt"]}.wantIn(t, dir)
}

func TestOnlyChosenFilesAreLoaded(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	tr := usualTree()
	f := tr.put(t, c, client.PutOptions{})
	dir, before := t.TempDir(), s.Log.String()
	only := func(path string) bool { return strings.HasPrefix(path, "tree/e") || path == "z.txt" }
	if _, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir, Only: only}); err != nil {
		t.Error(err)
	}
	tree{"tree/empty": nil, "tree/empty folder/": nil, "z.txt": tr["z.txt"]}.wantIn(t, dir)
	if requests := strings.TrimPrefix(s.Log.String(), before); strings.Count(requests, "msg=request") != 3 { // one for the name, the directory, the files
		t.Errorf("the requests are %s", requests)
	}
	_, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir, Only: func(string) bool { return false }})
	if !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

func TestWhatIsInTheWayStays(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	tr := tree{"a.txt": []byte("first"), "tree/b.txt": []byte("second"), "tree/empty/": nil}
	f := tr.put(t, c, client.PutOptions{})
	outside := t.TempDir()
	for what, k := range map[string]struct {
		make   func(dir string) error
		forced bool // whether force replaces it
	}{
		"another file": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("mine"), 0o600)
		}, true},
		"a file of the same length": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("third"), 0o600)
		}, true},
		"a link": {func(dir string) error {
			return os.Symlink(filepath.Join(outside, "a"), filepath.Join(dir, "a.txt"))
		}, true},
		"a folder": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "a.txt"), 0o700)
		}, false},
		"a file instead of a folder": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tree"), nil, 0o600)
		}, false},
		"a folder that leads out": {func(dir string) error {
			return os.Symlink(outside, filepath.Join(dir, "tree"))
		}, false},
	} {
		for _, force := range []bool{false, true} {
			dir := t.TempDir()
			must(t, k.make(dir))
			before, _ := os.ReadDir(dir)
			_, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{Path: dir, Force: force})
			if (err == nil) != (force && k.forced) {
				t.Errorf("%s, force %v: %v", what, force, err)
			}
			if after, _ := os.ReadDir(dir); err != nil && len(after) != len(before) {
				t.Errorf("%s, force %v: the folder has %v, and had %v", what, force, after, before)
			} else if err == nil {
				tr.wantIn(t, dir)
			}
		}
	}
	tree{}.wantIn(t, outside)
}

func TestAnInterruptedUnpackGoesOnByFile(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	tr := tree{}
	for i := range 40 {
		tr[fmt.Sprintf("tree/%d", i)] = bytesOf(uint64(i), 200_000)
	}
	f := tr.put(t, c, client.PutOptions{Delivery: client.Delivery{Limits: client.Limits{Downloads: 1}}}) // one is enough
	dir, rounds, most := t.TempDir(), 0, int64(0)
	for ; ; rounds++ {
		cut := cutter(3<<20, 2)
		weak := connect(t, s, "", func(o *client.Options) { o.HTTP, o.Retry.Tries = cut.client(), 1 })
		ctx, stop := context.WithCancel(t.Context())
		var loaded atomic.Int64
		had := int64(0)
		_, err := weak.Unpack(ctx, f.Link, client.UnpackOptions{Path: dir, Connections: 1, Verify: client.Verify{
			Started: func(r client.Remote, have int64) { had = have },
			Progress: func(n int64) {
				if loaded.Add(n) > 3_000_000 {
					stop()
				}
			},
		}})
		stop()
		most = max(most, had)
		if left, _ := os.ReadDir(dir); err == nil && len(left) != 1 {
			t.Errorf("the folder holds more than the tree: %v", left)
		}
		if err == nil {
			break
		}
		if rounds > 50 {
			t.Fatal(err)
		}
	}
	if rounds == 0 || most < 2_000_000 {
		t.Errorf("after %d rounds %d bytes were not loaded again", rounds, most)
	}
	tr.wantIn(t, dir)
}

// TestStretchesOfALongFileAreLoadedAtOnce from a store, with a claim, over a bad line.
func TestStretchesOfALongFileAreLoadedAtOnce(t *testing.T) {
	t.Parallel()
	s, up := start(t)
	tr := tree{"a": []byte("first"), "long": bytesOf(7, 40<<20), "z": []byte("last")}
	f := tr.put(t, up, client.PutOptions{Delivery: client.Delivery{Limits: client.Limits{
		Downloads: 1,
		Password:  linkPassword,
	}}})
	root, requests := behindStore(t, s, tr.archive(t))
	cut, dir := cutter(4<<20, 12), t.TempDir()
	c := connect(t, s, "", func(o *client.Options) { o.HTTP, o.Retry.Tries = cut.client(), 40 })
	_, err := c.Unpack(t.Context(), strings.Replace(f.Link, s.Root, root, 1), client.UnpackOptions{
		Path:   dir,
		Verify: client.Verify{Password: typed()},
	})
	if err != nil || requests.Load() < 4 || cut.cuts < 3 {
		t.Errorf("%d requests, %d cuts, %v", requests.Load(), cut.cuts, err)
	}
	tr.wantIn(t, dir)
}

func TestAFlatBundleGetsAFolder(t *testing.T) {
	_, c := start(t)
	for _, tr := range []tree{{
		"a": []byte("first"),
		"b": []byte("second"),
	}, {"folder/a": []byte("first"), "folder/b": []byte("second")}} {
		f := tr.put(t, c, client.PutOptions{})
		dir := t.TempDir()
		t.Chdir(dir)
		u, err := c.Unpack(t.Context(), f.Link, client.UnpackOptions{})
		if _, flat := tr["a"]; flat {
			dir = filepath.Join(dir, "tree")
		}
		if there, _ := filepath.Abs(u.Path); err != nil || there != dir {
			t.Errorf("unpacked to %s, %v", u.Path, err)
		}
		tr.wantIn(t, dir)
	}
}
