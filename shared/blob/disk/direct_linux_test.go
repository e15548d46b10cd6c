package disk

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

func TestWritesArriveWhetherAlignedOrNot(t *testing.T) {
	t.Parallel()
	data := make([]byte, 2*directSize+directAlign)
	rand.Read(data)
	for name, test := range map[string]struct {
		memory, at, size int
	}{
		"aligned bytes arrive":                  {0, directAlign, directSize},
		"a remainder arrives":                   {0, 0, directSize + 1},
		"less than one block arrives":           {0, directAlign, 100},
		"bytes in the middle of a block arrive": {0, 5, directSize},
		"bytes from an odd address arrive":      {1, 0, directSize},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "data")
			plain, err := os.Create(path)
			must(t, err)
			f := &dataFile{File: plain, direct: openDirect(path)}
			defer f.Close()
			want := data[test.memory : test.memory+test.size]
			if n, err := f.WriteAt(want, int64(test.at)); n != test.size || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got[test.at:], want) {
				t.Errorf("the file has other bytes, or error %v", err)
			}
		})
	}
}

func TestDirectBuffersAreBounded(t *testing.T) {
	t.Parallel()
	d := make(directBuffers, directWriters)
	var releases []func()
	for range directWriters {
		buf, release := d.take()
		if len(buf) != directSize {
			t.Fatalf("a buffer has %d bytes", len(buf))
		}
		releases = append(releases, release)
	}
	if buf, _ := d.take(); buf != nil {
		t.Error("one more buffer than allowed was lent")
	}
	releases[0]()
	if buf, _ := d.take(); buf == nil {
		t.Error("no buffer was lent after one came back")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
