package disk

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

func TestBytesArriveAlignedOrNot(t *testing.T) {
	t.Parallel()
	data := make([]byte, 2*directSize+directAlign)
	rand.Read(data)
	for name, test := range map[string]struct {
		memory, at, size int
	}{
		"aligned":                    {0, directAlign, directSize},
		"with a rest":                {0, 0, directSize + 1},
		"less than one block":        {0, directAlign, 100},
		"in the midst of a block":    {0, 5, directSize},
		"from a place in the memory": {1, 0, directSize},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "data")
			plain, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			f := &dataFile{File: plain, direct: openDirect(path)}
			defer f.Close()
			want := data[test.memory : test.memory+test.size]
			if n, err := f.WriteAt(want, int64(test.at)); n != test.size || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got[test.at:], want) {
				t.Errorf("other bytes are there: %v", err)
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
		t.Error("one more than allowed was lent")
	}
	releases[0]()
	if buf, _ := d.take(); buf == nil {
		t.Error("none was lent after one came back")
	}
}
