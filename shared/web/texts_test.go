package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/notify/texts"
)

func textsOf(t *testing.T, lang string) (all map[string]word) {
	t.Helper()
	if err := json.Unmarshal(texts.Pages(lang), &all); err != nil {
		t.Fatal(lang, err)
	}
	return all
}

// sources returns the texts of the files below ../ by their names, and the prefixes of the texts that scripts get.
func sources(t *testing.T) (files map[string]string, prefixes []string) {
	t.Helper()
	files, prefixes = map[string]string{}, []string{""}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if e.IsDir() ||
			!slices.Contains([]string{".go", ".html", ".js"}, filepath.Ext(path)) ||
			strings.Contains(path, "test") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range taken.FindAllStringSubmatch(string(text), -1) {
			prefixes = append(prefixes, m[1]+".")
		}
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, prefixes
}

var (
	// asked finds the keys that Go, templates and scripts ask for by name.
	asked = regexp.MustCompile("\\.(?:T|N|Rich|t|n|parts)(?:\\(| )[\"'`]([a-z0-9.-]+)[\"'`]")
	// quoted finds the texts in quotation marks.
	quoted = regexp.MustCompile("\"([^\"\\n]*)\"|'([^'\\n]*)'|`([^`]*)`")
	// taken finds the prefixes of the texts that scripts get.
	taken = regexp.MustCompile(`\.Script "([a-z.]+)"`)
)

func TestEachTextThatPagesAskForExists(t *testing.T) {
	t.Parallel()
	keys := "\n" + strings.Join(slices.Collect(maps.Keys(textsOf(t, "en"))), "\n") + "\n"
	files, prefixes := sources(t)
	for path, text := range files {
		if !strings.HasPrefix(path, "../web/") {
			continue
		}
		for _, m := range asked.FindAllStringSubmatch(text, -1) {
			key := m[1]
			if strings.TrimRight(key, ".-") == key { // else more follows
				key += "\n"
			}
			found := func(prefix string) bool { return strings.Contains(keys, "\n"+prefix+key) }
			if !slices.ContainsFunc(prefixes, found) {
				t.Errorf("%s asks for the text %s, which does not exist", path, m[1])
			}
		}
	}
}

// TestEachTextIsUsed looks for each key, or for a beginning of it that ends in a full stop or a hyphen,
// in quotation marks.
func TestEachTextIsUsed(t *testing.T) {
	t.Parallel()
	said := map[string]bool{}
	files, prefixes := sources(t)
	for path, text := range files {
		if strings.HasSuffix(path, ".html") { // outside of actions, quotation marks are HTML's
			text = strings.Join(regexp.MustCompile(`{{.*?}}`).FindAllString(text, -1), "\n")
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			start, _, _ := strings.Cut(strings.ReplaceAll(m[1]+m[2]+m[3], "${", "%"), "%")
			said[start] = true
		}
	}
	used := func(key string) bool {
		for end := range key {
			if strings.ContainsRune(".-", rune(key[end])) && said[key[:end+1]] {
				return true
			}
		}
		return said[key]
	}
	for key := range textsOf(t, "en") {
		if !slices.ContainsFunc(prefixes, func(prefix string) bool {
			rest, ok := strings.CutPrefix(key, prefix)
			return ok &&
				(used(strings.TrimSuffix(rest, mailAlone)) || used(rest) || strings.Trim(rest, "0123456789") == "") // a status
		}) {
			t.Errorf("nothing uses the text %s", key)
		}
	}
}

func TestTheLanguagesHaveTheSameTexts(t *testing.T) {
	t.Parallel()
	verbs := regexp.MustCompile(`%(\[\d\])?[a-z%]`)
	parts := func(text string) string {
		all := verbs.FindAllString(text, -1)
		slices.Sort(all)
		return fmt.Sprint(all)
	}
	english := textsOf(t, "en")
	for _, lang := range texts.Tags() {
		texts := textsOf(t, lang)
		for key, want := range english {
			for i, got := range texts[key] {
				if strings.TrimSpace(got) == "" || parts(got) != parts(want[i]) {
					t.Errorf("%s: the text %s is %q, in English %q", lang, key, got, want[i])
				}
			}
			delete(texts, key)
		}
		for key := range texts {
			t.Errorf("%s: the text %s is not one of English", lang, key)
		}
	}
}

func TestNextLeadsToAPageOfThisSiteAlone(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"files", "files?id=7&area=backup", "l?k=a-b_c", "requests?q=a+b%20c"} {
		if got := next(good, "send"); got != good {
			t.Errorf("%q leads to %q", good, got)
		}
	}
	for _, bad := range []string{
		"", "/files", "//evil.example", "https://evil.example", "https:evil.example", "javascript:alert(1)", "files/../x", "../x", "\\\\evil.example", "/\\evil.example",
		"files#x", "files?x=//evil.example/", "files\n", "files?\r\nSet-Cookie: a=b", " files", "FILES", "files?<script>", "data:text/html,x", "?x", ".", "\tfiles", "v1/files",
	} {
		if got := next(bad, "send"); got != "send" {
			t.Errorf("%q leads to %q", bad, got)
		}
	}
}
