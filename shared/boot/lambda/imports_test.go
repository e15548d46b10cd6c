package lambda_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
)

// floor returns the layer of a package in the design; 0 is the lowest.
func floor(pkg string) int {
	room := strings.TrimPrefix(pkg, "ferry/shared/")
	for i, names := range [][]string{
		{"table", "blob", "wire", "fault", "contact", "bundle", "notify/mail"}, {"envelope", "client"}, {"auth"}, {"files"}, {"links", "notify"}, {"api"}, {"openapi"}, {"web"}, {"boot"},
	} {
		for _, name := range names {
			if room == name || strings.HasPrefix(room, name+"/") && name != "api" {
				return i
			}
		}
	}
	return 6 // the endpoints, below api
}

func TestNoImportGoesUp(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./shared/...")
	list.Dir = boottest.Root(t)
	out, err := list.Output()
	apitest.Must(t, err)
	backend := regexp.MustCompile(`/(dynamo|s3|ses|sns|sqs)$`)
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasSuffix(pkg, "test") { // support for tests
			continue
		}
		for imported := range strings.FieldsSeq(imports) {
			if strings.HasPrefix(imported, "ferry/") && floor(imported) > floor(pkg) {
				t.Errorf("%s imports %s, which is in a higher layer", pkg, imported)
			}
			if strings.HasPrefix(imported, "github.com/aws/") && floor(pkg) < floor("boot") && !backend.MatchString(pkg) {
				t.Errorf("%s imports %s; only backends and boot know AWS", pkg, imported)
			}
		}
	}
}
