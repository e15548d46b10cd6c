package bundle_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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

// patch changes bytes, such as 0@10=0800 of the first record and end@4=01 of the end, or appends some, as 1+78.
func (f *forgery) patch(t *testing.T, text string) {
	t.Helper()
	where, change, found := strings.Cut(text, "@")
	if !found {
		where, change, _ = strings.Cut(text, "+")
	}
	record := &f.end
	if where != "end" {
		record = &f.records[int(where[0]-'0')]
	}
	at := len(*record)
	if found {
		_, err := fmt.Sscanf(change, "%d=%s", &at, &change)
		must(t, err)
	}
	b, err := hex.DecodeString(change)
	must(t, err)
	*record = append((*record)[:at], append(b, (*record)[min(len(*record), at+len(b)):]...)...)
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

// patched are faults: a name, how a bundle of two entries is patched, and how the error begins. At 30 is the length
// of a record's extra fields.
const patched = `
a compressed entry         | 0@10=0800                                              | "one" is compressed
an encrypted entry         | 0@8=0108                                               | "one" has other flags
a data descriptor          | 0@8=0808                                               | "one" has other flags
a name of old              | 0@8=0000                                               | "one" has other flags
a lower packed length      | 0@20=02000000                                          | "one" has two different lengths
a comment                  | 0@32=0100 0+78                                         | "one" has a comment
another disk               | 0@34=0100                                              | "one" has a record
internal attributes        | 0@36=0100                                              | "one" has a record
another version            | 0@6=3f00                                               | "one" has a record
another system             | 0@4=2d00                                               | "one" has a record
a symbolic link            | 0@38=0000ffa1                                          | "one" is neither a file
a device                   | 0@38=0000a461                                          | "one" is neither a file
a set-uid program          | 0@38=0000ed89                                          | "one" is neither a file
a folder by mode           | 0@38=1000ed41                                          | "one" is neither a file
a file by mode             | 1@38=0000a481                                          | "two/" is neither a file
no mode                    | 0@38=00000000                                          | "one" is neither a file
an overlap                 | 1@42=2c000000                                          | "two/" does not begin where
the same twice             | 1@42=00000000                                          | "two/" does not begin where
a gap                      | 1@42=2e000000                                          | "two/" does not begin where
a gap by length            | 0@20=0200000002000000                                  | "two/" does not begin where
two times                  | 0@12=0100                                              | "one" has two different times
a time after 2038          | 0@54=00000080                                          | "one" has other extra fields
an access time             | 0@53=03                                                | "one" has other extra fields
another field              | 0@49=7578                                              | "one" has other extra fields
one more field             | 0@30=0d00 0+75780000                                   | "one" has other extra fields
one more byte              | 0@30=0a00 0+78                                         | "one" has other extra fields
a longer extra field       | 0@51=0600 0@30=0a00 0+78                               | "one" has other extra fields
ZIP64 without need         | 0@30=1d00 0+0100100003000000000000000300000000000000   | "one" has other extra fields
a needless ZIP64 length    | 0@20=ffffffffffffffff 0@30=1d00 0+0100100003000000000000000300000000000000 | "one" has two different lengths
a length without ZIP64     | 0@20=ffffffffffffffff                                  | "one" has other extra fields
a cut ZIP64 field          | 0@20=ffffffffffffffff 0@30=1400 0+0100080000000000000100 | "one" has other extra fields
a length that wraps        | 0@24=ffffffff 0@30=1d00 0+01001000ffffffffffffffffffffffffffffffff | "one" has an impossible length
a length that nearly wraps | 0@24=ffffffff 0@30=1d00 0+01001000f5ffffffffffff7ff5ffffffffffff7f | "one" has an impossible length
an offset that wraps       | 1@42=ffffffff 1@30=1500 1+01000800ffffffffffffffff     | "two/" does not begin where
a folder's bytes           | 1@24=01000000                                          | "two/" is a folder with bytes
a folder's CRC-32          | 1@16=01000000                                          | "two/" has a CRC-32 but no bytes
a path upwards             | 0@46=2e2e2f                                            | "../" has the path element ".."
an absolute path           | 0@46=2f                                                | "/ne" is an absolute path
a path not UTF-8           | 0@46=ff                                                | "\xffne" is not UTF-8
no path                    | 0@28=0000 0@30=0c00                                    | the bundle has an entry without a path
a long path                | 0@28=ffff                                              | the bundle has an entry that is longer
a broken record            | 1@0=78                                                 | the bundle has fewer entries
a digital signature        | 1+504b05050000                                         | the bundle has a directory with more than its entries
an unread comment          | end@20=01                                              | the bundle has end records
a disk                     | end@4=01                                               | the bundle has end records
a disk with the directory  | end@6=01                                               | the bundle
a signature of another     | end@2=06                                               | the bundle
an archive comment         | end@20=01 end+78                                       | the bundle is not a ZIP archive
a count too high           | end@8=03000300                                         | the bundle
a count too low            | end@8=01000100                                         | the bundle
two counts                 | end@8=01                                               | the bundle
many entries               | end@8=11271127                                         | the bundle
a count for ZIP64          | end@8=ffffffff                                         | the bundle
a directory too long       | end@12=76                                              | the bundle
a directory too short      | end@12=74                                              | the bundle
a directory over 4 MiB     | end@12=01004000                                        | the bundle
a directory of 4 GiB       | end@12=ffffffff                                        | the bundle
a directory not there      | end@12=00000000                                        | the bundle
a directory beyond         | end@12=00100000                                        | the bundle
an offset too high         | end@16=59                                              | 
an offset too low          | end@16=57                                              | 
an offset in a ZIP64 end   | end@16=ffffffff                                        | the bundle
`

func TestOnlyTheOneFormIsABundle(t *testing.T) {
	t.Parallel()
	refuses := func(name string, data []byte, want string) {
		t.Helper()
		var refused *bundle.Error
		if _, err := read(t, data); !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(patched)) {
		all := strings.Split(line, "|")
		f := forge(t)
		f.join(false)
		stale := strings.Contains(all[1], "end")
		for _, patch := range strings.Fields(all[1]) {
			f.patch(t, patch)
		}
		refuses(all[0], f.join(stale), strings.TrimSpace(all[2]))
	}
	for name, c := range map[string]struct {
		change func(f *forgery)
		want   string
	}{
		"bytes at the start": {func(f *forgery) { f.entries = slices.Concat([]byte("x"), f.entries) },
			`"two/" is the last entry`},
		"all moved": {func(f *forgery) {
			f.entries = slices.Concat([]byte("x"), f.entries)
			f.patch(t, "0@42=01000000")
			f.patch(t, "1@42=2e000000")
		}, `"one" does not begin`},
		"bytes at the end": {func(f *forgery) { f.entries = append(f.entries, 'x') }, `"two/" is the last entry`},
		"a header too few": {func(f *forgery) { f.entries = f.entries[1:] }, `"two/" is the last entry`},
		"another order":    {func(f *forgery) { slices.Reverse(f.records) }, `"two/" does not begin`},
		"no extra field": {func(f *forgery) {
			f.patch(t, "0@30=0000")
			f.records[0] = f.records[0][:49]
		}, `"one" has other extra fields`},
		"a repeated path": {func(f *forgery) { f.records = append(f.records, f.records[0]) }, `"one" occurs twice`},
		"no entries":      {func(f *forgery) { f.records, f.entries = nil, nil }, "the bundle has no entries"},
		"half a record":   {func(f *forgery) { f.records[1] = f.records[1][:20] }, "the bundle has fewer entries"},
	} {
		f := forge(t)
		c.change(f)
		refuses(name, f.join(false), c.want)
	}
	whole := forge(t).join(false)
	_, err := read(t, whole)
	must(t, err)
	directory := len(whole) - 22
	refuses("a needless ZIP64 end", slices.Concat(whole[:directory], make([]byte, 76), whole[directory:]), "the bundle")
}

func TestEachByteOfTheDirectoryCounts(t *testing.T) {
	t.Parallel()
	data := archive(t, samples())
	whole, err := read(t, data)
	must(t, err)
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
	must(t, err)
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
	must(t, err)
	return l.Tail(), l.Directory
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
