package web_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

// pastEndpoints lists what pages do without asking an endpoint, which would check the caller, and what is checked
// instead. Everything else that they show or change goes through ask.go.
func pastEndpoints() map[string]string {
	return map[string]string{
		"files.go Files().Search":       "the area of the visitor",
		"files.go Links().OfMany":       "of the files that Search found there; SeenBy leaves out what the uploader has sent",
		"files.go Table":                "of the notices of those links: notify.States",
		"login.go Users().Get":          "the visitor, or the user of a link, whose password an endpoint has just changed",
		"login.go passwords.LoginFirst": "the name and the password in the form",
		"login.go tokens.Make":          "the user of LoginFirst, or of a change of the password that an endpoint accepted",
		"login.go tokens.Revoke":        "the token in the visitor's cookie",
		"requests.go Files().List":      "the area of the visitor",
		"stop.go Table":                 "the address in a token that the link key has signed: notify.Suppressed",
		"visit.go callers.Check":        "the visitor's cookie",
	}
}

func TestPagesCallNothingPastTheEndpointsButWhatIsListed(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	expect.NoErr(t, err)
	domain := regexp.MustCompile(`ports\.\s*(Table|(?:Users|Files|Links|Tokens|Outbox|Passwords|Credentials)\(\)\.\s*\w+)|\bv\.((?:callers|passwords|tokens)\.\s*\w+)`)
	var found []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		expect.NoErr(t, err)
		for _, m := range domain.FindAllStringSubmatch(string(text), -1) {
			call := strings.Join(strings.Fields(m[1]+m[2]), "") // it may stand on two lines
			found = append(found, name+" "+call)
		}
	}
	slices.Sort(found)
	expect.Equal(t, "the calls past the endpoints", found, slices.Sorted(maps.Keys(pastEndpoints())))
}
