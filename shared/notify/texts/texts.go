// Package texts has what Ferry says to people, in a folder for each language: what there is to know
// of the language itself (language.json), mails and text messages (mails.json), and pages with their
// scripts (pages.json). A further language is a further folder, and nothing else lists them.
package texts

import (
	"cmp"
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// A program links only those files that it reads.
var (
	//go:embed */language.json
	languages embed.FS
	//go:embed */mails.json
	mails embed.FS
	//go:embed */pages.json
	pages embed.FS
)

// Language is a language that Ferry speaks.
type Language struct {
	Lang         string  `json:"-"` // its tag, the name of its folder
	Name         string  // in the language itself
	Place        int     // in lists of languages; the first is the default
	FirstOfMonth string  // how dates write the 1st
	Singular     []int64 // the numbers of things that are named in the singular
}

// All returns all languages. The first is the default.
var All = sync.OnceValue(func() []Language { return read(languages) })

// read returns the languages that have a folder.
func read(folders fs.FS) (all []Language) {
	files, _ := fs.Glob(folders, "*/language.json") // the pattern is well-formed
	for _, file := range files {
		l := Language{Lang: path.Dir(file)}
		text, err := fs.ReadFile(folders, file)
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			panic("the language " + l.Lang + ": " + err.Error()) // a test reads each file
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b Language) int { return cmp.Compare(a.Place, b.Place) })
	return all
}

// Tags returns the tags of all languages.
func Tags() (all []string) {
	for _, l := range All() {
		all = append(all, l.Lang)
	}
	return all
}

// Find returns the language of a tag such as de-AT. If Ferry does not speak it, ok is false, and the
// language is the default.
func Find(tag string) (l Language, ok bool) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	at := slices.IndexFunc(All(), func(l Language) bool { return l.Lang == primary })
	if at < 0 {
		return All()[0], false
	}
	return All()[at], true
}

// Mails returns what mails and text messages say in one of the languages, as JSON.
func Mails(lang string) []byte { return file(mails, lang+"/mails.json") }

// Pages returns what pages and their scripts say in one of the languages, as JSON.
func Pages(lang string) []byte { return file(pages, lang+"/pages.json") }

func file(folders fs.FS, name string) []byte {
	text, err := fs.ReadFile(folders, name)
	if err != nil {
		panic(err) // a test reads each file
	}
	return text
}
