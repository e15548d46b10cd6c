package file_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
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
	s := begin(t)
	for name, saved := range map[string]string{
		"report.pdf": "report.pdf", "two  words.txt": "two  words.txt", "fête.txt": "fete.txt", `the "best".txt`: "the _best_.txt",
		"a%2F..%2Fb.txt": "a_2F.._2Fb.txt", "🎉.txt": "_.txt", "写真": "file", ".bashrc": ".bashrc", "-o evil": "-o evil", "a;b.txt": "a_b.txt",
	} {
		dir := filepath.Join(t.TempDir(), "in")
		apitest.Must(t, os.Mkdir(dir, 0o700))
		s.curl(dir, "-OJ", s.share(name, "content of "+name))
		inside, _ := os.ReadDir(dir)
		if beside, _ := os.ReadDir(filepath.Dir(dir)); len(inside) != 1 || len(beside) != 1 {
			t.Errorf("%q is saved as %v, beside %v", name, inside, beside)
		}
		got, err := os.ReadFile(filepath.Join(dir, saved))
		if err != nil || string(got) != "content of "+name {
			t.Errorf("%q has the content %q (%v)", name, got, err)
		}
	}
}

func TestCurlResumesADownload(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for size, all := range map[string]string{"a small file": "0123456789", "a large file": strings.Repeat(content(), 50)} {
		dir := t.TempDir()
		path := filepath.Join(dir, "out")
		apitest.Must(t, os.WriteFile(path, []byte(all[:len(all)/3]), 0o600))
		s.curl(dir, "-C", "-", "-o", "out", s.share("a.bin", all))
		if got, err := os.ReadFile(path); err != nil || string(got) != all {
			t.Errorf("%s: %d of %d bytes, or wrong ones (%v)", size, len(got), len(all), err)
		}
	}
}
