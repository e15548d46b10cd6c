package file_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// curl runs the real program in a folder.
func (s sharer) curl(dir string, args ...string) {
	s.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		s.Skip("curl is not installed")
	}
	cmd := exec.CommandContext(s.Context(), path, append([]string{"-sS", "--fail", "--noproxy", "*", "--max-time", "20"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("curl: %v: %s", err, out)
	}
}

func TestCurlSavesUsableNames(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for _, k := range []struct{ name, saved string }{
		{"report.pdf", "report.pdf"},
		{"two  words.txt", "two  words.txt"},
		{"fête.txt", "fete.txt"},
		{`the "best".txt`, "the _best_.txt"},
		{"a%2F..%2Fb.txt", "a_2F.._2Fb.txt"},
		{"🎉.txt", "_.txt"},
		{"写真", "file"},
		{".bashrc", ".bashrc"},
		{"-o evil", "-o evil"},
		{"a;b.txt", "a_b.txt"},
	} {
		dir := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.curl(dir, "-OJ", s.Base+s.put(k.name, "content of "+k.name))
		found, err := os.ReadDir(dir)
		if err != nil || len(found) != 1 || found[0].Name() != k.saved {
			t.Errorf("%q is saved as %v (%v), want %q", k.name, found, err, k.saved)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, k.saved)); err != nil || string(got) != "content of "+k.name {
			t.Errorf("%q has the content %q (%v)", k.name, got, err)
		}
		if beside, _ := os.ReadDir(filepath.Dir(dir)); len(beside) != 1 {
			t.Errorf("%q was written outside its folder: %v", k.name, beside)
		}
	}
}

func TestCurlResumesADownload(t *testing.T) {
	t.Parallel()
	s := newSharer(t)
	for size, all := range map[string]string{"a small file": "0123456789", "a large file": strings.Repeat(content(), 50)} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		if err := os.WriteFile(path, []byte(all[:len(all)/3]), 0o600); err != nil {
			t.Fatal(err)
		}
		s.curl(dir, "-C", "-", "-o", "out", s.Base+s.put("a.bin", all))
		if got, err := os.ReadFile(path); err != nil || string(got) != all {
			t.Errorf("%s: %d of %d bytes, or wrong ones (%v)", size, len(got), len(all), err)
		}
	}
}
