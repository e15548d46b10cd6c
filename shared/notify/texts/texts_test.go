package texts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheLanguagesAreTheFolders(t *testing.T) {
	t.Parallel()
	folders := fstest.MapFS{
		"pt/language.json": {Data: []byte(`{"name": "Português", "place": 1}`)},
		"pt/mails.json":    {Data: []byte(`{}`)},
		"no-language.json": {Data: []byte(`{}`)},
	}
	for _, l := range All() {
		file := l.Lang + "/language.json"
		text, err := languages.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folders[file] = &fstest.MapFile{Data: text}
	}
	var tags []string
	for _, l := range read(folders) {
		tags = append(tags, l.Lang+" "+l.Name)
	}
	want := "en English, pt Português, it Italiano, es Español, fr Français, de Deutsch"
	if got := strings.Join(tags, ", "); got != want {
		t.Errorf("the languages are %s, want %s", got, want)
	}
}

func TestATagNamesItsLanguage(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"it": "it", "de-AT": "de", "FR_ca": "fr", "": "", "xx": "", "italian": "", "../en": ""} {
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
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for _, name := range []string{"language.json", "mails.json", "pages.json"} {
		overlay.Replace[filepath.Join(folder, "pt", name)] = filepath.Join(folder, "en", name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-v", "-overlay", file, "-run", "^TestEachLanguageIsSpokenEverywhere$", "ferry/shared/web")
	out, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the service speaks en, pt, it") {
		t.Errorf("%v\n%s", err, out)
	}
}
