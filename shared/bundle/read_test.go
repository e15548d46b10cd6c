package bundle_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"ferry/shared/bundle"
)

// forgery is an archive whose parts a test changes before they are joined.
type forgery struct {
	entries []byte   // the headers and bytes
	records [][]byte // of "one", of 3 bytes, and of "two/"
	end     []byte
}

func forge(t testing.TB) *forgery {
	t.Helper()
	data := archive(t, []made{{bundle.Entry{Path: "one"}, "abc"}, {bundle.Entry{Path: "two/"}, ""}})
	directory := bytes.Index(data, []byte("PK\x01\x02"))
	second := bytes.LastIndex(data, []byte("PK\x01\x02"))
	end := len(data) - 22
	records := [][]byte{bytes.Clone(data[directory:second]), bytes.Clone(data[second:end])}
	return &forgery{data[:directory], records, data[end:]}
}

// put16 and put32 change a field of a record.
func (f *forgery) put16(record, at int, value uint16) {
	binary.LittleEndian.PutUint16(f.records[record][at:], value)
}
func (f *forgery) put32(record, at int, value uint32) {
	binary.LittleEndian.PutUint32(f.records[record][at:], value)
}

// extend appends an extra field to a record.
func (f *forgery) extend(record int, field string) {
	r := f.records[record]
	binary.LittleEndian.PutUint16(r[30:], binary.LittleEndian.Uint16(r[30:])+uint16(len(field)))
	f.records[record] = append(r, field...)
}

// join writes the lengths and offset of the directory as they are by now, except after stale.
func (f *forgery) join(stale bool) []byte {
	directory := bytes.Join(f.records, nil)
	if !stale {
		binary.LittleEndian.PutUint16(f.end[8:], uint16(len(f.records)))
		binary.LittleEndian.PutUint16(f.end[10:], uint16(len(f.records)))
		binary.LittleEndian.PutUint32(f.end[12:], uint32(len(directory)))
		binary.LittleEndian.PutUint32(f.end[16:], uint32(len(f.entries)))
	}
	return slices.Concat(f.entries, directory, f.end)
}

// zip64Of is a ZIP64 field with these values.
func zip64Of(values ...uint64) string {
	b := binary.LittleEndian.AppendUint16([]byte{1, 0}, uint16(8*len(values)))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return string(b)
}

func TestOnlyTheOneFormIsABundle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *forgery)
		want   string
	}{
		"unchanged":             {func(*forgery) {}, ""},
		"a compressed entry":    {func(f *forgery) { f.put16(0, 10, 8) }, `"one" is compressed`},
		"an encrypted entry":    {func(f *forgery) { f.put16(0, 8, 0x801) }, `"one" has other flags`},
		"a data descriptor":     {func(f *forgery) { f.put16(0, 8, 0x808) }, `"one" has other flags`},
		"a name of old":         {func(f *forgery) { f.put16(0, 8, 0) }, `"one" has other flags`},
		"a lower packed length": {func(f *forgery) { f.put32(0, 20, 2) }, `"one" has two different lengths`},
		"a comment": {func(f *forgery) { f.put16(0, 32, 1); f.records[0] = append(f.records[0], 'x') },
			`"one" has a comment`},
		"another disk":        {func(f *forgery) { f.put16(0, 34, 1) }, `"one" has a record`},
		"internal attributes": {func(f *forgery) { f.put16(0, 36, 1) }, `"one" has a record`},
		"another version":     {func(f *forgery) { f.put16(0, 6, 63) }, `"one" has a record`},
		"another system":      {func(f *forgery) { f.put16(0, 4, 45) }, `"one" has a record`},
		"a symbolic link":     {func(f *forgery) { f.put32(0, 38, 0o120777<<16) }, `"one" is neither a file`},
		"a device":            {func(f *forgery) { f.put32(0, 38, 0o060644<<16) }, `"one" is neither a file`},
		"a set-uid program":   {func(f *forgery) { f.put32(0, 38, 0o104755<<16) }, `"one" is neither a file`},
		"a folder by mode":    {func(f *forgery) { f.put32(0, 38, 0o040755<<16|0x10) }, `"one" is neither a file`},
		"a file by mode":      {func(f *forgery) { f.put32(1, 38, 0o100644<<16) }, `"two/" is neither a file`},
		"no mode":             {func(f *forgery) { f.put32(0, 38, 0) }, `"one" is neither a file`},
		"an overlap":          {func(f *forgery) { f.put32(1, 42, 44) }, `"two/" does not begin where`},
		"the same twice":      {func(f *forgery) { f.put32(1, 42, 0) }, `"two/" does not begin where`},
		"a gap":               {func(f *forgery) { f.put32(1, 42, 46) }, `"two/" does not begin where`},
		"a gap by length":     {func(f *forgery) { f.put32(0, 20, 2); f.put32(0, 24, 2) }, `"two/" does not begin where`},
		"bytes at the start": {func(f *forgery) { f.entries = slices.Concat([]byte("x"), f.entries) },
			`"two/" is the last entry`},
		"all moved": {func(f *forgery) {
			f.entries = slices.Concat([]byte("x"), f.entries)
			f.put32(0, 42, 1)
			f.put32(1, 42, 46)
		}, `"one" does not begin`},
		"bytes at the end":  {func(f *forgery) { f.entries = append(f.entries, 'x') }, `"two/" is the last entry`},
		"a header too few":  {func(f *forgery) { f.entries = f.entries[1:] }, `"two/" is the last entry`},
		"another order":     {func(f *forgery) { slices.Reverse(f.records) }, `"two/" does not begin`},
		"two times":         {func(f *forgery) { f.put16(0, 12, 1) }, `"one" has two different times`},
		"a time after 2038": {func(f *forgery) { f.put32(0, 46+3+5, 1<<31) }, `"one" has other extra fields`},
		"an access time":    {func(f *forgery) { f.records[0][46+3+4] = 3 }, `"one" has other extra fields`},
		"another field":     {func(f *forgery) { f.put16(0, 46+3, 0x7875) }, `"one" has other extra fields`},
		"one more field":    {func(f *forgery) { f.extend(0, "ux\x00\x00") }, `"one" has other extra fields`},
		"one more byte":     {func(f *forgery) { f.extend(0, "x") }, `"one" has other extra fields`},
		"a longer extra field": {func(f *forgery) { f.put16(0, 46+3+2, 6); f.extend(0, "x") },
			`"one" has other extra fields`},
		"no extra field": {func(f *forgery) { f.put16(0, 30, 0); f.records[0] = f.records[0][:49] },
			`"one" has other extra fields`},
		"ZIP64 without need": {func(f *forgery) { f.extend(0, zip64Of(3, 3)) }, `"one" has other extra fields`},
		"a needless ZIP64 length": {func(f *forgery) {
			f.put32(0, 20, math.MaxUint32)
			f.put32(0, 24, math.MaxUint32)
			f.extend(0, zip64Of(3, 3))
		}, `"one" has two different lengths`},
		"a length without ZIP64": {func(f *forgery) { f.put32(0, 20, math.MaxUint32); f.put32(0, 24, math.MaxUint32) },
			`"one" has other extra fields`},
		"a cut ZIP64 field": {func(f *forgery) {
			f.put32(0, 20, math.MaxUint32)
			f.put32(0, 24, math.MaxUint32)
			f.extend(0, zip64Of(1 << 40)[:11])
		}, `"one" has other extra fields`},
		"a length that wraps": {func(f *forgery) {
			f.put32(0, 24, math.MaxUint32)
			f.extend(0, zip64Of(math.MaxUint64, math.MaxUint64))
		}, `"one" has an impossible length`},
		"a length that nearly wraps": {func(f *forgery) {
			f.put32(0, 24, math.MaxUint32)
			f.extend(0, zip64Of(math.MaxInt64-10, math.MaxInt64-10))
		}, `"one" has an impossible length`},
		"an offset that wraps": {func(f *forgery) {
			f.put32(1, 42, math.MaxUint32)
			f.extend(1, zip64Of(math.MaxUint64))
		}, `"two/" does not begin where`},
		"a folder's bytes":  {func(f *forgery) { f.put32(1, 24, 1) }, `"two/" is a folder with bytes`},
		"a folder's CRC-32": {func(f *forgery) { f.put32(1, 16, 1) }, `"two/" has a CRC-32 but no bytes`},
		"a path upwards":    {func(f *forgery) { copy(f.records[0][46:], "../") }, `"../" has the path element ".."`},
		"an absolute path":  {func(f *forgery) { f.records[0][46] = '/' }, `"/ne" is an absolute path`},
		"a path not UTF-8":  {func(f *forgery) { f.records[0][46] = 0xff }, `"\xffne" is not UTF-8`},
		"a repeated path":   {func(f *forgery) { f.records = append(f.records, f.records[0]) }, `"one" occurs twice`},
		"no path": {func(f *forgery) { f.put16(0, 28, 0); f.put16(0, 30, 12) },
			"the bundle has an entry without a path"},
		"a long path":     {func(f *forgery) { f.put16(0, 28, math.MaxUint16) }, "the bundle has an entry that is longer"},
		"no entries":      {func(f *forgery) { f.records, f.entries = nil, nil }, "the bundle has no entries"},
		"a broken record": {func(f *forgery) { f.records[1][0] = 'x' }, "the bundle has fewer entries"},
		"half a record":   {func(f *forgery) { f.records[1] = f.records[1][:20] }, "the bundle has fewer entries"},
		"an archive comment": {func(f *forgery) { f.end = append(f.end, 'x'); f.end[20] = 1 },
			"the bundle is not a ZIP archive"},
		"an unread comment": {func(f *forgery) { f.end[20] = 1 }, "the bundle has end records"},
		"a disk":            {func(f *forgery) { f.end[4] = 1 }, "the bundle has end records"},
		"a digital signature": {func(f *forgery) { f.records[1] = append(f.records[1], "PK\x05\x05\x00\x00"...) },
			"the bundle has a directory with more than its entries"},
		"a needless ZIP64 end": {func(f *forgery) { f.end = append(make([]byte, 76), f.end...) }, "the bundle"},
	} {
		f := forge(t)
		c.change(f)
		_, err := read(t, f.join(name == "an archive comment" || name == "a needless ZIP64 end"))
		var refused *bundle.Error
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheEndRecordMustFit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(end []byte){
		"a count too high":          func(end []byte) { end[8], end[10] = 3, 3 },
		"a count too low":           func(end []byte) { end[8], end[10] = 1, 1 },
		"two counts":                func(end []byte) { end[8] = 1 },
		"many entries":              func(end []byte) { end[8], end[9], end[10], end[11] = 0x11, 0x27, 0x11, 0x27 },
		"a count for ZIP64":         func(end []byte) { copy(end[8:], "\xff\xff\xff\xff") },
		"a directory too long":      func(end []byte) { end[12]++ },
		"a directory too short":     func(end []byte) { end[12]-- },
		"a directory over 4 MiB":    func(end []byte) { copy(end[12:], "\x01\x00\x40\x00") },
		"a directory of 4 GiB":      func(end []byte) { copy(end[12:], "\xff\xff\xff\xff") },
		"a directory not there":     func(end []byte) { copy(end[12:], "\x00\x00\x00\x00") },
		"a directory beyond":        func(end []byte) { copy(end[12:], "\x00\x10\x00\x00") },
		"an offset too high":        func(end []byte) { end[16]++ },
		"an offset too low":         func(end []byte) { end[16]-- },
		"an offset in a ZIP64 end":  func(end []byte) { copy(end[16:], "\xff\xff\xff\xff") },
		"a signature of another":    func(end []byte) { end[2] = 6 },
		"a disk with the directory": func(end []byte) { end[6] = 1 },
	} {
		f := forge(t)
		f.join(false)
		change(f.end)
		var refused *bundle.Error
		if _, err := read(t, f.join(true)); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEachByteOfTheDirectoryCounts(t *testing.T) {
	t.Parallel()
	data := archive(t, samples())
	whole, err := read(t, data)
	if err != nil {
		t.Fatal(err)
	}
	for at := whole.Directory; at < whole.Length; at++ {
		for bit := range 8 {
			changed := bytes.Clone(data)
			changed[at] ^= 1 << bit
			if l, err := read(t, changed); err == nil {
				if slices.Equal(l.Entries, whole.Entries) {
					t.Errorf("bit %d of byte %d does not count", bit, at)
				}
				opensInGo(t, bytes.NewReader(changed), l)
			}
		}
	}
	for n := range data {
		if _, err := read(t, data[:n]); err == nil {
			t.Errorf("the first %d bytes are a bundle", n)
		}
		if _, err := read(t, data[n:]); err == nil && n > 0 {
			t.Errorf("the bundle from byte %d is one", n)
		}
	}
}

func TestALocalHeaderMustAgreeToTheByte(t *testing.T) {
	t.Parallel()
	data := archive(t, samples())
	l, err := read(t, data)
	if err != nil {
		t.Fatal(err)
	}
	e := l.Entries[4]
	header := data[e.Header:e.Offset]
	if err := e.Agrees(header); err != nil {
		t.Error(err)
	}
	for i := range header {
		changed := bytes.Clone(header)
		changed[i] ^= 1
		if err := e.Agrees(changed); err == nil {
			t.Errorf("byte %d of the header does not count", i)
		}
	}
	if e.Agrees(header[:len(header)-1]) == nil || e.Agrees(nil) == nil || e.Agrees(append(header, 0)) == nil {
		t.Error("a header of another length agrees")
	}
}

func TestAnErrorOfReadingIsNotTheBundles(t *testing.T) {
	t.Parallel()
	data := archive(t, samples())
	cut := errors.New("line cut")
	for name, source := range map[string]bundle.Source{
		"no answer": func(context.Context, int64, int64) (io.ReadCloser, error) { return nil, cut },
		"a broken answer": func(context.Context, int64, int64) (io.ReadCloser, error) {
			return io.NopCloser(iotest.ErrReader(cut)), nil
		},
		"a short answer": func(_ context.Context, _, n int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(make([]byte, n-1))), nil
		},
	} {
		var refused *bundle.Error
		_, err := bundle.Read(t.Context(), source, int64(len(data)))
		if errors.As(err, &refused) || !errors.Is(err, cut) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var refused *bundle.Error
	for size := range int64(22) {
		if _, err := bundle.Read(t.Context(), nil, size); !errors.As(err, &refused) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// behind reads as many zeros and then the rest.
type behind struct {
	zeros int64
	rest  []byte
}

func (z behind) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	if off < z.zeros {
		n = int(min(int64(len(b)), z.zeros-off))
		clear(b[:n])
	}
	if n == len(b) {
		return n, nil
	}
	more, err := bytes.NewReader(z.rest).ReadAt(b[n:], off+int64(n)-z.zeros)
	return n + more, err
}

// directoryOf returns what follows the bytes of the files.
func directoryOf(t testing.TB, entries []bundle.Entry) (rest []byte, before int64) {
	t.Helper()
	l, err := bundle.Plan(entries)
	if err != nil {
		t.Fatal(err)
	}
	return l.Tail(), l.Directory
}

func TestZIP64FieldsAreThereOnlyWhereNeeded(t *testing.T) {
	t.Parallel()
	const most = math.MaxUint32
	const header, records, end, end64 = 30 + 1 + 9, 2 * (46 + 1 + 9), 22, 22 + 20 + 56
	for _, c := range []struct {
		first int64 // the length of the first of two files; the second is empty
		after int64 // the length of all after their bytes
	}{
		{most - 1 - 2*header, records + end},  // the directory is at most-1
		{most - 2*header, records + end64},    // the directory is at most
		{most - 1 - header, records + end64},  // the second header is at most-1
		{most - header, records + 12 + end64}, // the second header is at most
		{most - 1, records + 12 + end64},      // the first length is most-1
		{most, records + 20 + 12 + end64},     // the first length is most
		{1 << 61, records + 20 + 12 + end64},  // all are far beyond
	} {
		rest, before := directoryOf(t, []bundle.Entry{{Path: "a", Length: c.first}, {Path: "b"}})
		r := behind{before, rest}
		l, err := bundle.Read(t.Context(), from(r), before+int64(len(rest)))
		if err != nil || int64(len(rest)) != c.after {
			t.Errorf("after %d bytes there are %d, want %d, %v", c.first, len(rest), c.after, err)
			continue
		}
		opensInGo(t, r, l)
	}
}

// FuzzADirectoryIsRefusedOrOpensInGo tries directories behind any number of bytes.
func FuzzADirectoryIsRefusedOrOpensInGo(f *testing.F) {
	add := func(entries ...bundle.Entry) {
		rest, before := directoryOf(f, entries)
		f.Add(rest, before)
	}
	add(entriesOf(samples())...)
	add(bundle.Entry{Path: "a"})
	const most = math.MaxUint32
	add(bundle.Entry{Path: "a", Length: most - 1}, bundle.Entry{Path: "b", Length: most},
		bundle.Entry{Path: "c", Executable: true})
	add(bundle.Entry{Path: "a", Length: 1 << 61}, bundle.Entry{Path: "b/"}, bundle.Entry{Path: "b/c", Length: 1 << 40})
	forged := forge(f)
	f.Add(forged.join(false), int64(0))
	f.Fuzz(func(t *testing.T, rest []byte, before int64) {
		if before < 0 || before > math.MaxInt64-int64(len(rest)) {
			return
		}
		r := behind{before, rest}
		l, err := bundle.Read(t.Context(), from(r), before+int64(len(rest)))
		var refused *bundle.Error
		if err != nil {
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			return
		}
		opensInGo(t, r, l)
		if again, err := bundle.Plan(l.Entries); err != nil || !slices.Equal(again.Entries, l.Entries) {
			t.Errorf("planning the entries again gives %v, %v", again, err)
		}
	})
}
