package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"ferry/shared/blob"
)

const mib = 1 << 20

func createTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"objects of all sizes come back, length announced or not": createSizes,
		"the checksum is CRC-64/NVME":                             createChecksum,
		"readers that give little at a time are read to the end":  createSlowly,
		"a taken key is ErrExists and keeps what is there":        createTaken,
		"areas do not share keys":                                 createAreas,
		"a key can be used again after its deletion":              createAgain,
		"an object is not seen before it is whole":                createUnseen,
		"sweeping disturbs neither objects nor young creates":     createDuringSweep,
	}
}

func createSizes(t *testing.T, s suite) {
	for _, size := range []int{0, 1, 4096, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5*mib - 1, 5 * mib, 5*mib + 1, 20 * mib} {
		data := content(t, size)
		for name, announced := range map[string]int64{"announced": int64(size), "unknown": -1} {
			key := s.key(fmt.Sprintf("%s-%d", name, size))
			got, err := s.Create(t.Context(), blob.Files, key, reader(data), announced)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if want := (blob.Written{Size: int64(size), CRC64NVME: crc(data)}); got != want {
				t.Errorf("%s: got %+v, want %+v", key, got, want)
			}
			s.wantContent(blob.Files, key, data)
		}
	}
}

func createChecksum(t *testing.T, s suite) {
	for name, announced := range map[string]int64{"announced": 9, "unknown": -1} {
		got, err := s.Create(t.Context(), blob.Files, s.key(name), reader([]byte("123456789")), announced)
		if err != nil || got.CRC64NVME != 0xAE8B14860A799888 {
			t.Errorf("%s: got checksum %x and error %v, want that of the specification", name, got.CRC64NVME, err)
		}
	}
	got, err := s.Create(t.Context(), blob.Files, s.key("empty"), reader(nil), 0)
	if err != nil || got != (blob.Written{}) {
		t.Errorf("no bytes: got %+v and error %v, want zeros", got, err)
	}
}

func createSlowly(t *testing.T, s suite) {
	data := content(t, 50_000)
	readers := map[string]io.Reader{
		"one-byte":     iotest.OneByteReader(bytes.NewReader(data)),
		"half":         iotest.HalfReader(bytes.NewReader(data)),
		"data-and-eof": iotest.DataErrReader(bytes.NewReader(data)),
	}
	for name, r := range readers {
		if _, err := s.Create(t.Context(), blob.Files, s.key(name), r, int64(len(data))); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s.wantContent(blob.Files, s.key(name), data)
	}
}

func createTaken(t *testing.T, s suite) {
	for _, size := range []int{0, 10, 6 * mib} {
		key, first := s.key(fmt.Sprint("k", size)), content(t, size)
		s.create(blob.Files, key, first)
		for _, second := range [][]byte{nil, content(t, 10), content(t, 6*mib)} {
			for _, announced := range []int64{int64(len(second)), -1} {
				if _, err := s.Create(t.Context(), blob.Files, key, reader(second), announced); !errors.Is(err, blob.ErrExists) {
					t.Errorf("creating %s again: got error %v, want ErrExists", key, err)
				}
			}
		}
		s.wantContent(blob.Files, key, first)
	}
}

func createAreas(t *testing.T, s suite) {
	one, two := content(t, 10), content(t, 20)
	s.create(blob.Files, s.key("k"), one)
	s.wantNone(blob.Backup, s.key("k"))
	s.create(blob.Backup, s.key("k"), two)
	s.wantContent(blob.Files, s.key("k"), one)
	s.wantContent(blob.Backup, s.key("k"), two)
}

func createAgain(t *testing.T, s suite) {
	s.create(blob.Files, s.key("k"), content(t, 10))
	if err := s.Delete(t.Context(), blob.Files, s.key("k")); err != nil {
		t.Fatal(err)
	}
	data := content(t, 20)
	s.create(blob.Files, s.key("k"), data)
	s.wantContent(blob.Files, s.key("k"), data)
}

func createUnseen(t *testing.T, s suite) {
	for name, size := range map[string]int{"small": 100, "large": 12 * mib} {
		key, data := s.key(name), content(t, size)
		for _, announced := range []int64{int64(size), -1} {
			looked := hookReader{r: bytes.NewReader(data), at: size / 2, hook: func() { s.wantNone(blob.Files, key) }}
			if _, err := s.Create(t.Context(), blob.Files, key, &looked, announced); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			s.wantContent(blob.Files, key, data)
			if err := s.Delete(t.Context(), blob.Files, key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// createDuringSweep sweeps what is older than an hour, so that it can run
// against a store that others use.
func createDuringSweep(t *testing.T, s suite) {
	done, under := content(t, 1000), content(t, 8*mib)
	s.create(blob.Files, s.key("done"), done)
	sweeps := hookReader{r: bytes.NewReader(under), at: 6 * mib, hook: func() {
		if _, err := s.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Errorf("sweeping: %v", err)
		}
	}}
	if _, err := s.Create(t.Context(), blob.Files, s.key("under"), &sweeps, -1); err != nil {
		t.Fatalf("the create that was under way failed: %v", err)
	}
	s.wantContent(blob.Files, s.key("done"), done)
	s.wantContent(blob.Files, s.key("under"), under)
}

// hookReader calls hook once, when it has given at bytes.
type hookReader struct {
	r     io.Reader
	at    int
	hook  func()
	given int
}

func (h *hookReader) Read(p []byte) (int, error) {
	if h.hook != nil && h.given >= h.at {
		h.hook()
		h.hook = nil
	}
	if h.hook != nil && len(p) > h.at-h.given {
		p = p[:h.at-h.given]
	}
	n, err := h.r.Read(p)
	h.given += n
	return n, err
}
