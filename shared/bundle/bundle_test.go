package bundle_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
)

// made is an entry and its bytes.
type made struct {
	bundle.Entry
	content string
}

// samples has one of each kind of entry.
func samples() []made {
	at := time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC)
	return []made{
		{bundle.Entry{Path: "tree/", Modified: at}, ""},
		{bundle.Entry{Path: "tree/empty folder/", Modified: at}, ""},
		{bundle.Entry{Path: "tree/empty.txt", Modified: at}, ""},
		{bundle.Entry{Path: "tree/run.sh", Modified: at, Executable: true}, "#!/bin/sh\necho hello\n"},
		{bundle.Entry{Path: "tree/Grüße aus Köln.txt", Modified: at}, "Grüße"},
		{bundle.Entry{Path: "tree/ελληνικά/αρχείο.txt", Modified: at}, "αβγ"},
		{bundle.Entry{Path: "tree/日本語/ファイル.txt", Modified: at}, "日本語"},
		{bundle.Entry{Path: "tree/русский файл.txt", Modified: at}, "привет"},
		{bundle.Entry{Path: "tree/ملف عربي.txt", Modified: at}, "مرحبا"},
		{bundle.Entry{
			Path:     "tree/emoji \U0001f469\u200d\U0001f52c.txt",
			Modified: at,
		}, strings.Repeat("0123456789", 1000)},
		{bundle.Entry{Path: "a.txt", Modified: at.Add(2 * time.Second)}, "a"},
	}
}

func entriesOf(all []made) (entries []bundle.Entry) {
	for _, m := range all {
		m.Length = int64(len(m.content))
		entries = append(entries, m.Entry)
	}
	return entries
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// archive writes a bundle.
func archive(t testing.TB, all []made) []byte {
	t.Helper()
	var b bytes.Buffer
	w := bundle.NewWriter(&b)
	for _, m := range all {
		must(t, w.Add(m.Entry, []byte(m.content)))
	}
	must(t, w.Close())
	return b.Bytes()
}

// from is a source of r's bytes.
func from(r io.ReaderAt) bundle.Source {
	return func(_ context.Context, off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, off, n)), nil
	}
}

func read(t testing.TB, data []byte) (*bundle.Layout, error) {
	t.Helper()
	return bundle.Read(t.Context(), from(bytes.NewReader(data)), int64(len(data)))
}

func TestAPlanAndAWriterAndAReaderAgree(t *testing.T) {
	t.Parallel()
	data := archive(t, samples())
	plan, err := bundle.Plan(entriesOf(samples()))
	must(t, err)
	got, err := read(t, data)
	must(t, err)
	if got.Length != int64(len(data)) || got.Length != plan.Length || got.Directory != plan.Directory {
		t.Errorf("%d bytes with the directory at %d; planned %d and %d",
			got.Length, got.Directory, plan.Length, plan.Directory)
	}
	for i, e := range got.Entries {
		want := samples()[i]
		if string(data[e.Offset:e.Offset+e.Length]) != want.content {
			t.Errorf("%s has other bytes", e.Path)
		}
		if err := e.Agrees(data[e.Header:e.Offset]); err != nil {
			t.Error(err)
		}
		e.CRC32 = 0
		if e != plan.Entries[i] || e.Path != want.Path || e.Modified != want.Modified ||
			e.Executable != want.Executable {
			t.Errorf("entry %d is %+v, planned %+v", i, e, plan.Entries[i])
		}
	}
}

// TestPathsAreRelativeAndClean has what testdata/bundles.json lacks: JSON has no other bytes than UTF-8.
func TestPathsAreRelativeAndClean(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"..a", "a..", "1:", "a/c:", strings.Repeat("a/", 512)} {
		if err := bundle.CheckPath(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{"a\xff", "\xed\xa0\x80", "\xc0\xaf", strings.Repeat("a/", 512) + "b"} {
		expect.Equal(t, "the refused path", reasonOf(t, bundle.CheckPath(path)).Path, path)
	}
}

func TestNothingIsThereTwiceOrBothAFileAndAFolder(t *testing.T) {
	t.Parallel()
	for paths, wrong := range map[string]string{
		"a a! a.b a0": "",
		// Others that sort between a file and what would lie in it.
		"a a! a.b a0 a/b":     "a/b",
		"a! a/b a.b a0 a":     "a",
		"a/ a/b/ a/b/c a/b!":  "",
		"a/b/c a/b/ a/ a/b/d": "",
		"A a":                 "", // which a file system may see otherwise
		"é e\u0301":           "",
	} {
		var entries []bundle.Entry
		for _, path := range strings.Fields(paths) {
			entries = append(entries, bundle.Entry{Path: path})
		}
		_, err := bundle.Plan(entries)
		expect.Equal(t, paths, reasonOf(t, err).Path, wrong)
	}
}

// numbered returns n entries with paths of a length in bytes, of which most are in folders.
func numbered(n, length int) []bundle.Entry {
	entries := make([]bundle.Entry, n)
	for i := range entries {
		name := fmt.Sprintf("%05d", i*7919%n) // not sorted
		entries[i].Path = name + strings.Repeat("/x", (length-len(name))/2)
	}
	return entries
}

func TestABundleHasLimits(t *testing.T) {
	t.Parallel()
	const most = 364 // bytes in a path, so that 10,000 entries stay below 4 MiB
	full, err := bundle.Plan(numbered(bundle.MaxEntries, most))
	if err != nil || full.Length-full.Directory > bundle.MaxDirectory+22 {
		t.Errorf("a full bundle: %v", err)
	}
	for name, c := range map[string]struct {
		entries []bundle.Entry
		want    string
	}{
		"too long": {numbered(
			bundle.MaxEntries,
			most+2,
		), "the bundle has names that need more than 4 MiB together"},
		"a huge length": {[]bundle.Entry{{Path: "a", Length: 1<<63 - 1}}, `"a" has an impossible length`},
		"a huge sum": {[]bundle.Entry{{Path: "a", Length: 1 << 61}, {Path: "b", Length: 1 << 62}},
			`"b" has an impossible length`},
	} {
		if _, err := bundle.Plan(c.entries); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFullBundleReadsBackInTwoReads(t *testing.T) {
	t.Parallel()
	for entries, want := range map[int]int{1: 1, 100: 1, bundle.MaxEntries: 2} {
		var all []made
		for _, e := range numbered(entries, 300) {
			all = append(all, made{e, "some bytes"})
		}
		data, reads := archive(t, all), 0
		got, err := bundle.Read(t.Context(), func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
			reads++
			return from(bytes.NewReader(data))(ctx, off, n)
		}, int64(len(data)))
		if err != nil || len(got.Entries) != entries || reads != want {
			t.Errorf("%d entries take %d reads, %v", entries, reads, err)
		}
	}
}

func TestAWriterRefusesWhatAPlanRefuses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := bundle.NewWriter(&out)
	var refused *bundle.Error
	if err := w.Close(); !errors.As(err, &refused) {
		t.Errorf("an empty bundle: %v", err)
	}
	if err := w.Add(bundle.Entry{Path: "../a"}, []byte("x")); !errors.As(err, &refused) || out.Len() > 0 {
		t.Errorf("a path upwards: %v after %d bytes", err, out.Len())
	}
	if err := w.Add(bundle.Entry{Path: "a/"}, []byte("x")); !errors.As(err, &refused) || out.Len() > 0 {
		t.Errorf("a folder with bytes: %v after %d bytes", err, out.Len())
	}
}

// failing fails at its nth write.
type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestAWriterReturnsErrorsOfWriting(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		w := bundle.NewWriter(&failing{n})
		err := w.Add(bundle.Entry{Path: "a"}, []byte("x"))
		if err == nil {
			err = w.Close()
		}
		expect.Err(t, fmt.Sprint("write ", n), err, io.ErrShortWrite)
	}
}

func FuzzABundleReadsBackTheSame(f *testing.F) {
	f.Add("a", "b/", "one", int64(1e9), true)
	f.Add("a", "a/b", "", int64(-1), false)
	f.Add("é/x", "é/ \U0001f469", "x", int64(1)<<40, true)
	f.Fuzz(func(t *testing.T, first, second, content string, seconds int64, executable bool) {
		var b bytes.Buffer
		w := bundle.NewWriter(&b)
		at := time.Unix(seconds, 0)
		if w.Add(bundle.Entry{Path: first, Modified: at, Executable: executable}, []byte(content)) != nil ||
			w.Add(bundle.Entry{Path: second, Modified: at}, nil) != nil {
			return
		}
		must(t, w.Close())
		got, err := read(t, b.Bytes())
		must(t, err)
		if e := got.Entries; e[0].Path != first || e[1].Path != second ||
			e[0].Executable != (executable && !e[0].IsFolder()) {
			t.Errorf("%q and %q read back as %+v", first, second, e)
		}
		opensInGo(t, bytes.NewReader(b.Bytes()), got)
	})
}

// opensInGo checks that archive/zip reads the same directory.
func opensInGo(t *testing.T, r io.ReaderAt, l *bundle.Layout) {
	t.Helper()
	z, err := zip.NewReader(r, l.Length)
	if err != nil || len(z.File) != len(l.Entries) {
		t.Fatalf("archive/zip: %v", err)
	}
	for i, e := range l.Entries {
		f := z.File[i]
		mode, runs := f.Mode(), e.Executable || e.IsFolder()
		if f.Name != e.Path || f.UncompressedSize64 != uint64(e.Length) || f.CompressedSize64 != uint64(e.Length) ||
			f.CRC32 != e.CRC32 || !f.Modified.Equal(e.Modified) || f.Method != zip.Store || f.NonUTF8 ||
			mode.IsDir() != e.IsFolder() || mode.IsRegular() == e.IsFolder() || (mode&0o100 != 0) != runs {
			t.Errorf("entry %d is %+v in archive/zip, and %+v", i, f.FileHeader, e)
		}
		header := make([]byte, e.Offset-e.Header)
		if _, err := r.ReadAt(header, e.Header); err != nil || e.Agrees(header) != nil {
			continue // archive/zip trusts the local header's length
		}
		if off, err := f.DataOffset(); err != nil || off != e.Offset {
			t.Errorf("%q begins at %d, %v; want %d", e.Path, off, err, e.Offset)
		}
	}
}
