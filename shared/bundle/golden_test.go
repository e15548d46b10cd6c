package bundle_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
	"ferry/shared/wire"
)

// The cases of testdata/bundles.json are for the makers of bundles in other languages: shared/web/static
// makes them in a browser, and must come to the same. UPDATE_GOLDEN=1 writes the file again.

// goldenEntry is an entry as the file has it. The bytes follow from the seed.
type goldenEntry struct {
	Path       string `json:"path"`
	Length     int64  `json:"length"`
	Seed       uint32 `json:"seed,omitempty"`
	CRC32      uint32 `json:"crc32,omitempty"` // instead of bytes
	Modified   int64  `json:"modified"`        // Unix milliseconds
	Executable bool   `json:"executable,omitempty"`
}

// goldenBundle is a bundle and what is known of it.
type goldenBundle struct {
	Name      string        `json:"name"`
	Entries   []goldenEntry `json:"entries,omitempty"`
	Count     int           `json:"count,omitempty"`  // of entries Prefix0.txt, Prefix1.txt and so on, instead
	Prefix    string        `json:"prefix,omitempty"` // of their paths
	Length    int64         `json:"length"`
	Directory int64         `json:"directory"`
	Headers   []int64       `json:"headers,omitempty"` // where the local headers begin
	Offsets   []int64       `json:"offsets,omitempty"` // where the bytes begin

	SHA256 string   `json:"sha256,omitempty"` // of the whole
	CRC64  string   `json:"crc64nvme,omitempty"`
	Part   int64    `json:"part,omitempty"`  // the size of a part
	Order  []int    `json:"order,omitempty"` // in which to send
	Sums   []string `json:"sums,omitempty"`  // CRC64NVME of the parts

	Locals []string `json:"locals,omitempty"` // in hexadecimal, where there are no bytes
	Tail   string   `json:"tail,omitempty"`
}

// goldenRefusal is what cannot be a bundle.
type goldenRefusal struct {
	Entries []goldenEntry `json:"entries,omitempty"`
	Count   int           `json:"count,omitempty"`
	Prefix  string        `json:"prefix,omitempty"`
	Path    string        `json:"path"` // of the error
	Reason  string        `json:"reason"`
}

// goldenPath is a path, and why it is refused; empty if it is not.
type goldenPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// golden is the file: a case on each line.
type golden struct {
	Bundles, Large []goldenBundle // with bytes, and without
	Paths          []goldenPath
	Refused        []goldenRefusal
}

// goldenBytes returns n bytes that every language can make: those of a linear congruential generator.
func goldenBytes(seed uint32, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

func (g goldenBundle) plan() ([]bundle.Entry, *bundle.Layout, error) {
	for i := range g.Count {
		g.Entries = append(g.Entries, goldenEntry{
			Path:     fmt.Sprintf("%s%d.txt", g.Prefix, i),
			Length:   int64(i % 3),
			Seed:     uint32(i),
			Modified: 1e12,
		})
	}
	var all []bundle.Entry
	for _, e := range g.Entries {
		all = append(all, bundle.Entry{
			Path:       e.Path,
			Length:     e.Length,
			Modified:   time.UnixMilli(e.Modified),
			Executable: e.Executable,
		})
	}
	l, err := bundle.Plan(all)
	return all, l, err
}

// seedOf returns the seed of an entry.
func (g goldenBundle) seedOf(i int) uint32 {
	if g.Count > 0 {
		return uint32(i)
	}
	return g.Entries[i].Seed
}

// measured returns a bundle with all that is known of it.
func measured(t *testing.T, g goldenBundle) goldenBundle {
	t.Helper()
	_, l, err := g.plan()
	if err != nil {
		t.Fatal(g.Name, err)
	}
	g.Length, g.Directory = l.Length, l.Directory
	if g.Count == 0 {
		for _, e := range l.Entries {
			g.Headers, g.Offsets = append(g.Headers, e.Header), append(g.Offsets, e.Offset)
		}
	}
	if g.Part == 0 {
		for i := range l.Entries {
			l.Entries[i].CRC32 = g.Entries[i].CRC32
			g.Locals = append(g.Locals, hex.EncodeToString(l.Entries[i].Local()))
		}
		g.Tail = hex.EncodeToString(l.Tail())
		r := behind{l.Directory, l.Tail()}
		if got, err := bundle.Read(t.Context(), from(r), l.Length); err != nil ||
			!slices.Equal(got.Entries, l.Entries) {
			t.Errorf("%s reads back as %+v, %v", g.Name, got, err)
		}
		opensInGo(t, r, l)
		return g
	}
	parts := bundle.NewParts(l, g.Part, func(i int) (bundle.File, error) {
		return inMemory{bytes.NewReader(goldenBytes(g.seedOf(i), l.Entries[i].Length))}, nil
	})
	g.Order = parts.Order()
	whole, crc := sha256.New(), uint64(0)
	for number := 1; number <= parts.Count(); number++ {
		r := parts.Open(context.Background(), number)
		sum, n, err := wire.CRC64NVME(io.TeeReader(r, whole))
		if err != nil {
			t.Fatal(g.Name, err)
		}
		_ = r.Close()
		g.Sums, crc = append(g.Sums, wire.CRC64Text(sum)), wire.CombineCRC64(crc, sum, n)
	}
	g.SHA256, g.CRC64 = hex.EncodeToString(whole.Sum(nil)), wire.CRC64Text(crc)
	return g
}

// known gives entries seeds, and moves their times by as many milliseconds.
func known(by int64, entries ...goldenEntry) []goldenEntry {
	seed := uint32(0)
	for i := range entries {
		e := &entries[i]
		e.Modified += by
		if e.Length > 0 && e.Seed == 0 && e.CRC32 == 0 {
			seed++
			e.Seed = seed
		}
	}
	return entries
}

func goldenBundles() []goldenBundle {
	leap := time.Date(2024, 2, 29, 23, 59, 59, 999e6, time.UTC).UnixMilli()
	scripts := known(leap, []goldenEntry{
		{Path: "tree/"},
		{Path: "tree/empty folder/"},
		{Path: "tree/empty.txt"},
		{Path: "tree/run.sh", Length: 21, Executable: true},
		{Path: "tree/Grüße aus Köln.txt", Length: 7},
		{Path: "tree/Gru\u0308ße decomposed.txt", Length: 8},
		{Path: "tree/ελληνικά/αρχείο.txt", Length: 6},
		{Path: "tree/日本語/ファイル.txt", Length: 9},
		{Path: "tree/русский файл.txt", Length: 12},
		{Path: "tree/ملف عربي.txt", Length: 10},
		{Path: "tree/हिन्दी.txt", Length: 1},
		{Path: "tree/emoji \U0001f469\u200d\U0001f52c.txt", Length: 10_000},
		{Path: "CON", Length: 3},
		{Path: "aux.txt", Length: 3},
		{Path: "a.txt", Length: 1, Modified: 1001},
		{Path: "A.txt", Length: 1},
		{Path: "tree!", Length: 1},
		{Path: "tree/run.sh.d/", Executable: true},
	}...)
	times := []goldenEntry{}
	for i, at := range []int64{
		0,
		1,
		999,
		1000,
		-1,
		-62135596800000,
		315532799999,
		315532800000,
		315532801000,
		951782400000,
		4102444800000,
		2147483646999,
		2147483647000,
		2147483648000,
		1e15,
	} {
		times = append(times, goldenEntry{
			Path:     fmt.Sprintf("%02d", i),
			Length:   int64(i),
			Seed:     uint32(i),
			Modified: at,
		})
	}
	long := known(1e12, []goldenEntry{
		{Path: "before", Length: 100},
		{Path: "long", Length: 9000},
		{Path: "between/"},
		{Path: "longer", Length: 25_001, Executable: true},
		{Path: "short", Length: 4},
		{Path: "last", Length: 5000},
	}...)
	return []goldenBundle{
		{Name: "all scripts", Entries: scripts, Part: 16 << 20},
		{Name: "all scripts in small parts", Entries: scripts, Part: 100},
		{Name: "times", Entries: times, Part: 512},
		{Name: "one file", Entries: known(1e12, goldenEntry{Path: "x", Length: 3 << 20, Seed: 77}), Part: 1 << 20},
		{Name: "one empty folder", Entries: known(1e12, goldenEntry{Path: "x/"}), Part: 16 << 20},
		{Name: "one empty file", Entries: known(1e12, goldenEntry{Path: "x"}), Part: 7},
		{Name: "files longer than a part", Entries: long, Part: 4096},
		{Name: "single bytes", Entries: long[:1], Part: 1},
		{
			Name: "the longest path", Part: 1000,
			Entries: known(1e12, goldenEntry{Path: strings.Repeat(strings.Repeat("é", 127)+"e/", 4)}),
		},
		{Name: "the most entries", Count: bundle.MaxEntries, Prefix: "folder/", Part: 16 << 20},
	}
}

func largeBundles() []goldenBundle {
	return []goldenBundle{
		{Name: "4 GiB", Entries: []goldenEntry{
			{Path: "first.txt", Length: 5, CRC32: crc32.ChecksumIEEE([]byte("first"))},
			{Path: "zeros", Length: 1<<32 + 1, CRC32: 0xfedcba98},
			{Path: "後/"},
			{Path: "後/after.txt", Length: 24, CRC32: 1, Executable: true},
		}},
		{Name: "just not ZIP64", Entries: []goldenEntry{{Path: "x", Length: 0xFFFFFFFE, CRC32: 2}}},
		{Name: "just ZIP64", Entries: []goldenEntry{{Path: "x", Length: 0xFFFFFFFF, CRC32: 3}}},
		{
			Name:    "the directory begins just before",
			Entries: []goldenEntry{{Path: "x", Length: 0xFFFFFFFE - 40, CRC32: 4}},
		},
		{
			Name:    "the directory begins just there",
			Entries: []goldenEntry{{Path: "x", Length: 0xFFFFFFFF - 40, CRC32: 4}},
		},
		{Name: "the second file begins just there", Entries: []goldenEntry{
			{Path: "x", Length: 0xFFFFFFFF - 40, CRC32: 4}, {Path: "y"}}},
		{Name: "5 TiB", Entries: []goldenEntry{
			{Path: "a", Length: 5 << 40, CRC32: 0xffffffff}, {Path: "b", Length: 1 << 50, CRC32: 6}, {Path: "c"}}},
	}
}

func goldenPaths() []string {
	long := strings.Repeat("x", 255)
	return []string{
		"a", "a/", "a/b/c.txt", " ", ". ", "...", "a b", "CON", "nul.txt", "a:b", "ab:", "-", "a\u200bb", "a\u00a0b", "\u202egpj.exe", "~", "a*?\"<>|",
		"\U0001f469\u200d\U0001f52c", "a\u2028b", "\ufeff", long, long + "/", strings.Repeat(
			long+"/",
			4,
		), strings.Repeat("é", 127) + "e",
		"", "/", "/a", "//", "a//b", "a//", ".", "..", "./a", "../a", "a/..", "a/../b", "a/.", "a/./b", "../", "./",
		`a\b`, `\`, "C:", "c:/x", "z:x", "Z:", "a\x00b", "a\nb", "\x7f", "a\u0085b", "a\u009fb", "\t", long +
			"x", "a/" + long + "x/b",
		strings.Repeat("é", 128), strings.Repeat(long+"/", 4) + "x",
	}
}

func goldenRefusals() []goldenRefusal {
	of := func(paths ...string) (g goldenRefusal) {
		for _, p := range paths {
			g.Entries = append(g.Entries, goldenEntry{Path: p})
		}
		return g
	}
	deep := strings.Repeat(strings.Repeat("x", 250)+"/", 4)
	return []goldenRefusal{
		{}, of(
			"a",
			"a",
		), of(
			"a/",
			"a/",
		), of("a", "a/"), of("a/", "a"), of("a", "a/b"), of("a/b", "a"), of("a/b/c", "a"), of("a", "a/b/c"),
		of("a/b", "a/b/c/d/"), of("a", "a!", "a b", "a.", "a/b"), of("a!", "a b", "a/b", "a"), of("x", "日本", "日本/語"),
		of("ok", "../up"), {Entries: []goldenEntry{{
			Path:   "folder/",
			Length: 1,
		}}}, {Entries: []goldenEntry{{Path: "a", Length: -1}}},
		{Count: 4100, Prefix: deep}, {Count: bundle.MaxEntries + 1}, {Count: 1<<16 + 1},
	}
}

func TestOtherMakersOfBundlesHaveTheSameCases(t *testing.T) {
	var all golden
	for _, g := range goldenBundles() {
		all.Bundles = append(all.Bundles, measured(t, g))
	}
	for _, g := range largeBundles() {
		known(1e12, g.Entries...)
		all.Large = append(all.Large, measured(t, g))
	}
	for _, p := range goldenPaths() {
		all.Paths = append(all.Paths, goldenPath{p, reasonOf(t, bundle.CheckPath(p)).Reason})
	}
	for _, g := range goldenRefusals() {
		_, _, err := goldenBundle{Entries: g.Entries, Count: g.Count, Prefix: g.Prefix}.plan()
		if err == nil {
			t.Errorf("%.100v is not refused", g)
		}
		why := reasonOf(t, err)
		g.Path, g.Reason = why.Path, why.Reason
		all.Refused = append(all.Refused, g)
	}
	expect.Golden(t, "bundles.json", fmt.Sprintf("{%s,%s,%s,%s}\n", lines(t, "bundles", all.Bundles),
		lines(t, "large", all.Large), lines(t, "paths", all.Paths), lines(t, "refused", all.Refused)))
}

func reasonOf(t *testing.T, err error) (why bundle.Error) {
	t.Helper()
	if refused, ok := errors.AsType[*bundle.Error](err); ok {
		return *refused
	} else if err != nil {
		t.Error(err)
	}
	return why
}

// lines returns a field of a JSON object, whose value has a line for each case.
func lines[T any](t *testing.T, name string, cases []T) string {
	t.Helper()
	var all []string
	for _, c := range cases {
		text, err := json.Marshal(c)
		must(t, err)
		all = append(all, string(text))
	}
	return fmt.Sprintf("%q: [\n%s\n]", name, strings.Join(all, ",\n"))
}
