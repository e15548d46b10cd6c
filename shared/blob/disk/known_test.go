package disk_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
)

// TestKnownFilesAreBoundedInNumberAndMemory is not parallel: it measures the heap.
func TestKnownFilesAreBoundedInNumberAndMemory(t *testing.T) {
	s := open(t, t.TempDir(), disk.Options{NoSync: true})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range uint64(150_000) {
		var mark blob.Mark
		binary.BigEndian.PutUint64(mark[:], i+1)
		s.Know(mark)
	}
	took := heap() - before
	if n := s.CountKnown(); n != 100_000 || took > 64*100_000 {
		t.Errorf("%d known files take %d bytes", n, took)
	}
	s.Know(blob.Mark{})
	if n := s.CountKnown(); n != 100_000 {
		t.Errorf("with a mark of nothing %d files are known", n)
	}
}
