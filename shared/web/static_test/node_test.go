// Package static_test runs the tests of the pages' modules by node, which needs no browser and no
// package, and compares what they send to a service of this process with what has arrived. It is
// skipped where there is no node. In this folder `node --test` runs all but those with a service.
package static_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// sent is a file that the tests have sent, with the SHA-256 of its bytes.
type sent struct {
	Name, Sum string
	Modified  int64   // of all entries, in Unix milliseconds
	Entries   []entry // of a bundle
}

type entry struct {
	Path, Sum  string
	Executable bool
}

func TestModulesOfThePages(t *testing.T) {
	node := findNode(t)
	s := apitest.New(t)
	ann := s.Add("ann")
	link := apitest.Read[struct{ LinkURL string }](ann.Ask(
		"POST /requests",
		`{"title":"For the tests","password":"größer"}`,
	).
		Want(201))
	_, token, _ := strings.Cut(link.LinkURL, "&k=")
	manifest := filepath.Join(t.TempDir(), "manifest.json")

	files, err := filepath.Glob("*.test.mjs")
	expect.NoErr(t, err)
	cmd := exec.CommandContext(t.Context(), node, append([]string{"--test", "--test-reporter=dot"}, files...)...)
	cmd.Env = append(
		os.Environ(),
		"NODE_OPTIONS=",
		"FERRY_BASE="+s.Base+"/",
		"FERRY_LOGIN=ann:"+apitest.Password,
		"FERRY_REQUEST="+token,
		"FERRY_MANIFEST="+manifest,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(manifest)
	expect.NoErr(t, err)
	var all []sent
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 8 {
		t.Fatalf("the manifest is %.300s, %v", text, err)
	}
	arrived := apitest.Read[struct{ Files []apitest.File }](ann.Ask("GET /download/list", "").Want(200)).Files
	expect.Equal(t, "how many files have arrived", len(arrived), len(all))
	for _, want := range all {
		i := slices.IndexFunc(arrived, func(f apitest.File) bool { return f.Name == want.Name })
		if i < 0 {
			t.Errorf("%s has not arrived", want.Name)
		} else if content := s.Get(arrived[i].LinkURL); want.Entries != nil {
			expect.Equal(t, want.Name, entriesOf(t, content, want.Modified), want.Entries)
		} else {
			expect.Equal(t, want.Name, sumOf(content), want.Sum)
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
	if exec.CommandContext(
		t.Context(),
		node,
		"-e",
		"process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)",
	).Run() != nil {
		t.Skip("node is older than 20: the modules of the pages are not tested")
	}
	return node
}

func sumOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// entriesOf returns what a usual program reads in a bundle, whose entries must have one time.
func entriesOf(t *testing.T, archive string, modified int64) (all []entry) {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	expect.NoErr(t, err)
	for _, f := range z.File {
		r, err := f.Open()
		expect.NoErr(t, err)
		content, err := io.ReadAll(r) // which compares the CRC-32
		expect.NoErr(t, err)
		isFolder := f.Mode().IsDir()
		all = append(all, entry{f.Name, sumOf(string(content)), f.Mode()&0o100 != 0 && !isFolder})
		if isFolder != strings.HasSuffix(f.Name, "/") || !f.Modified.Equal(time.UnixMilli(modified)) {
			t.Errorf("%s: mode %v, of %v", f.Name, f.Mode(), f.Modified)
		}
	}
	return all
}
