package texts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

func TestATagNamesItsLanguage(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "the languages", Tags(), []string{"en", "it", "es", "fr", "de"})
	for tag, want := range map[string]string{
		"it":      "it",
		"de-AT":   "de",
		"FR_ca":   "fr",
		"":        "",
		"xx":      "",
		"italian": "",
		"../en":   "",
	} {
		l, ok := Find(tag)
		if ok != (want != "") || ok && l.Lang != want || !ok && l.Lang != "en" {
			t.Errorf("%q is %s, %v", tag, l.Lang, ok)
		}
	}
}

// TestAFurtherLanguageNeedsOnlyItsFolder runs a test of pages, interface and mails as if there were
// a folder more, with the texts of English.
func TestAFurtherLanguageNeedsOnlyItsFolder(t *testing.T) {
	t.Parallel()
	folder, err := os.Getwd()
	expect.NoErr(t, err)
	replace := map[string]string{}
	for _, name := range []string{"language.json", "mails.json", "pages.json"} {
		replace[filepath.Join(folder, "pt", name)] = filepath.Join(folder, "en", name)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	expect.NoErr(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	expect.NoErr(t, os.WriteFile(file, text, 0o600))
	test := exec.CommandContext(
		t.Context(),
		"go",
		"test",
		"-v",
		"-overlay",
		file,
		"-run",
		"^TestEachLanguageIsSpokenEverywhere$",
		"ferry/shared/web",
	)
	out, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the service speaks en, pt, it") {
		t.Errorf("%v\n%s", err, out)
	}
}
