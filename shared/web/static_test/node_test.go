// Package static_test runs the tests of the pages' modules by node, which needs no browser and no
// package, and compares what they send to a service of this process with what has arrived. It is
// skipped where there is no node. In this folder `node --test` runs all but those with a service.
package static_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

// sent is a file that the tests have sent.
type sent struct {
	Name     string
	Seed     uint32
	Length   int64
	Modified int64   // of all entries, in Unix milliseconds
	Entries  []entry // of a bundle
}

type entry struct {
	Path       string
	Seed       uint32
	Length     int64
	Executable bool
}

func TestModulesOfThePages(t *testing.T) {
	node := findNode(t)
	s := apitest.New(t)
	ann := s.Add("ann")
	link := apitest.Read[struct{ LinkURL string }](ann.Ask("POST /requests", `{"title":"For the tests","password":"größer"}`).Want(201))
	_, token, _ := strings.Cut(link.LinkURL, "&k=")
	manifest := filepath.Join(t.TempDir(), "manifest.json")

	files, err := filepath.Glob("*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests for node", err)
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{"--test", "--test-reporter=dot"}, files...)...)
	cmd.Env = append(os.Environ(), "NODE_OPTIONS=", "FERRY_BASE="+s.Base+"/", "FERRY_LOGIN=ann:"+apitest.Password, "FERRY_REQUEST="+token, "FERRY_MANIFEST="+manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var all []sent
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 8 {
		t.Fatalf("the manifest is %.300s, %v", text, err)
	}
	arrived := apitest.Read[struct{ Files []apitest.File }](ann.Ask("GET /download/list", "").Want(200)).Files
	if len(arrived) != len(all) {
		t.Errorf("%d files have arrived, %d were sent", len(arrived), len(all))
	}
	for _, want := range all {
		i := slices.IndexFunc(arrived, func(f apitest.File) bool { return f.Name == want.Name })
		if i < 0 {
			t.Errorf("%s has not arrived", want.Name)
			continue
		}
		content := []byte(s.Get(arrived[i].LinkURL))
		if want.Entries != nil {
			wantEntries(t, content, want)
		} else if !bytes.Equal(content, bytesOf(want.Seed, want.Length)) {
			t.Errorf("%s has other bytes", want.Name)
		}
	}
}

// findNode returns the path of node, or skips the test.
func findNode(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing: the modules of the pages are not tested")
	}
	if exec.CommandContext(t.Context(), node, "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)").Run() != nil {
		t.Skip("node is older than 20: the modules of the pages are not tested")
	}
	return node
}

// bytesOf returns n bytes that follow from a seed, as those of cases.mjs.
func bytesOf(seed uint32, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

// wantEntries compares what a usual program reads in a bundle with what was put in.
func wantEntries(t *testing.T, archive []byte, want sent) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != len(want.Entries) {
		t.Fatalf("%s has %d entries, want %d", want.Name, len(z.File), len(want.Entries))
	}
	for i, e := range want.Entries {
		f := z.File[i]
		r, err := f.Open()
		if err != nil {
			t.Fatal(e.Path, err)
		}
		content, err := io.ReadAll(r) // which compares the CRC-32
		folder, executable := strings.HasSuffix(e.Path, "/"), f.Mode()&0o100 != 0 && !f.Mode().IsDir()
		if err != nil || f.Name != e.Path || !bytes.Equal(content, bytesOf(e.Seed, e.Length)) || executable != e.Executable ||
			f.Mode().IsDir() != folder || !f.Modified.Equal(time.UnixMilli(want.Modified)) {
			t.Errorf("%s: %s, %d bytes, mode %v, of %v, %v", e.Path, f.Name, len(content), f.Mode(), f.Modified, err)
		}
	}
}
