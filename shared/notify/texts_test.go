package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/notify/texts"
)

func TestEachLanguageHasEveryText(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`%(\[\d\])?s`)
	english := reflect.ValueOf(notify.TextsOf("en"))
	for _, lang := range texts.Tags() {
		said := notify.TextsOf(lang)
		strict := json.NewDecoder(bytes.NewReader(texts.Mails(lang)))
		strict.DisallowUnknownFields()
		must(t, strict.Decode(&said))
		for field, value := range reflect.ValueOf(said).Fields() {
			if field.Anonymous {
				continue
			}
			names := len(verb.FindAllString(value.String(), -1))
			if value.IsZero() || names != len(verb.FindAllString(english.FieldByIndex(field.Index).String(), -1)) {
				t.Errorf("%s: %s is missing, or has %d names: %q", lang, field.Name, names, value)
			}
		}
		expect.Equal(t, "months of "+lang, len(strings.Fields(said.Months)), 12)
	}
}

func TestEachTextIsUsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	read := regexp.MustCompile(`\b(?:t|l|w|texts)\.([A-Z]\w+)\b`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range read.FindAllSubmatch(source, -1) {
			used[string(name[1])] = true
		}
		return err
	})
	must(t, err)
	for field := range reflect.TypeFor[notify.Texts]().Fields() {
		if !field.Anonymous && !used[field.Name] {
			t.Errorf("nothing uses the text %s", field.Name)
		}
	}
}

func TestSizesAreReadable(t *testing.T) {
	t.Parallel()
	english, french := notify.TextsOf("en"), notify.TextsOf("fr")
	for bytes, want := range map[int64]string{
		0:         "0 bytes, 0 B, 0 octet, 0 o",
		1:         "1 byte, 1 B, 1 octet, 1 o",
		999:       "999 bytes, 999 B, 999 octets, 999 o",
		1000:      "1.0 kB, 1 kB, 1,0 ko, 1 ko",
		1500:      "1.5 kB, 1.5 kB, 1,5 ko, 1,5 ko",
		99_940:    "99.9 kB, 99.9 kB, 99,9 ko, 99,9 ko",
		100_400:   "100.4 kB, 100 kB, 100,4 ko, 100 ko",
		999_499:   "999.5 kB, 999 kB, 999,5 ko, 999 ko",
		999_500:   "999.5 kB, 1 MB, 999,5 ko, 1 Mo",
		999_949:   "999.9 kB, 1 MB, 999,9 ko, 1 Mo",
		999_950:   "1.0 MB, 1 MB, 1,0 Mo, 1 Mo",
		1<<63 - 1: "9.2 EB, 9.2 EB, 9,2 Eo, 9,2 Eo",
	} {
		got := strings.Join([]string{
			english.WriteSize(bytes, false), english.WriteSize(bytes, true),
			french.WriteSize(bytes, false), french.WriteSize(bytes, true),
		}, ", ")
		expect.Equal(t, fmt.Sprint(bytes, " bytes"), strings.ReplaceAll(got, "\u00a0", " "), want)
	}
}

func TestDatesAreReadable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.December, 1, 23, 59, 0, 0, time.UTC).Unix()
	for lang, want := range map[string][2]string{
		"en": {"1 December 2026, 23:59 UTC", "1 December 2026"}, "it": {"1 dicembre 2026, 23:59 UTC", "01/12/2026"},
		"es": {"1 de diciembre de 2026, 23:59 UTC", "01/12/2026"}, "fr": {"1er décembre 2026, 23:59 UTC", "01/12/2026"},
		"de": {"1. Dezember 2026, 23:59 UTC", "01.12.2026"},
	} {
		texts := notify.TextsOf(lang)
		if got := [2]string{texts.WriteTime(at, texts.DateTime), texts.WriteTime(at, texts.Date)}; got != want {
			t.Errorf("in %s: got %q, want %q", lang, got, want)
		}
	}
	french := notify.TextsOf("fr")
	if got := french.WriteTime(at+10*86400, french.DateTime); got != "11 décembre 2026, 23:59 UTC" {
		t.Errorf("the 11th in French is %q", got)
	}
}

func TestGSMReplacesWhatItCan(t *testing.T) {
	t.Parallel()
	turns(t, notify.GSM, map[string]string{
		"Perché già? Ñandú [1] 5 €":      "Perché già? Ñandu [1] 5 €",      // what the alphabet has stays
		"‘a’ “b” „c“ «d» ‹e›":            `'a' "b" "c" "d" 'e'`,            // quotation marks become plain
		"a–b—c… d\u00a0e\u202ff":         "a-b-c... d e f",                 // dashes, points and spaces too
		"información, être, naïve, Łódź": "informacion, etre, naive, Łodz", // accents that it lacks are left out
		"e\u0302tre e\u0301te\u0301":     "etre été",                       // so are those that are separate characters
		"cœur ŒUVRE":                     "coeur OEUVRE",                   // ligatures are spelt
		"报告 🚢 отчёт":                     "报告 🚢 отчёт",                     // other scripts and emoji stay
	})
}

func TestSegments(t *testing.T) {
	t.Parallel()
	turns(t, notify.Segments, map[string]int{
		"":                            0, // nothing is no message
		strings.Repeat("à", 160):      1, // 160 characters of the GSM alphabet are one
		strings.Repeat("a", 161):      2, // 161 are two
		strings.Repeat("a", 306):      2, // 306 are two
		strings.Repeat("a", 307):      3, // 307 are three
		strings.Repeat("[", 80):       1, // brackets take two places
		strings.Repeat("[", 81):       2, // 81 brackets are two
		strings.Repeat("[", 76*2+1):   3, // a bracket is not divided between two messages
		strings.Repeat("a", 69) + "ç": 1, // one other character reduces the most to 70
		strings.Repeat("a", 70) + "ç": 2, // 71 with it are two
		strings.Repeat("🚢", 35):       1, // an emoji takes two places
		strings.Repeat("🚢", 36):       2, // 36 of them are two
		strings.Repeat("🚢", 33*2+1):   3, // an emoji is not divided between two messages
	})
}
