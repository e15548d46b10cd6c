package api_test

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
)

func TestPagesAreThoseOfHTMLTemplate(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("pages/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		apitest.Must(t, err)
		shown := map[string]string{}
		for _, action := range regexp.MustCompile(`{{(?:if )?\.(\w+)}}`).FindAllStringSubmatch(string(source), -1) {
			shown[action[1]] = action[1] + ` <script>alert("1")</script> & '+' é {{.Name}} {{end}}`
		}
		if shown["Link"] != "" {
			shown["Link"] = "https://ferry.example.org/v1/download/file?lang=en&k=TOKEN_-&download=1"
		}
		compare(t, file, shown)
		for name, value := range shown {
			shown[name] = ""
			compare(t, file+" without "+name, shown)
			shown[name] = value
		}
	}
	if err := api.WritePage(httptest.NewRecorder(), http.StatusOK, "", "none", nil); err == nil {
		t.Error("a page that is not there gives no error")
	}
}

// compare executes a page's template by html/template, and as api does. The first writes a
// plus sign as a reference too.
func compare(t *testing.T, what string, shown map[string]string) {
	t.Helper()
	file, _, _ := strings.Cut(what, " ")
	page, err := template.ParseFiles(file)
	apitest.Must(t, err)
	var want strings.Builder
	apitest.Must(t, page.Execute(&want, shown))
	got := httptest.NewRecorder()
	name := strings.TrimSuffix(filepath.Base(file), ".html")
	apitest.Must(t, api.WritePage(got, http.StatusOK, "", name, shown))
	if plain := strings.ReplaceAll(want.String(), "&#43;", "+"); got.Body.String() != plain {
		t.Errorf("%s is %s\nand with html/template %s", what, got.Body, plain)
	}
}
