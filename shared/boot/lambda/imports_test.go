package lambda_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
)

// mayImport has the packages in shared that each package imports, from the lowest up: a
// package imports only those above its own line. Packages for tests may import any.
const mayImport = `
blob:
contact:
fault:
lazy:
notify/texts:
retry:
table:
wire:
blob/disk: blob wire
blob/s3: blob retry wire
bundle: wire
table/dynamo: retry table
table/sqlite: blob retry table
envelope: blob fault lazy table
client: bundle retry wire
keys: blob fault table
limit: fault table
users: fault keys limit table
identity: fault keys limit table users
files: blob bundle fault identity keys retry table users
links: blob fault files keys limit retry table users wire
notify/mail: contact lazy
notify/mail/ses: contact notify/mail
notify/mail/smtp: contact lazy notify/mail
notify: blob contact fault files keys lazy limit notify/mail notify/texts retry table users wire
notify/gateway: fault lazy notify
notify/sns: notify
notify/sqs: fault notify
notify/inbox: envelope fault files lazy notify notify/mail table
service: blob files identity keys limit links notify table users wire
api/param: contact envelope fault files identity lazy links notify/texts service users wire
api: api/param blob envelope fault files identity keys lazy links service table users wire
api/account: api api/param envelope fault identity keys notify users wire
api/file: api api/param blob bundle envelope fault files identity keys links notify table users wire
api/upload: api api/param blob bundle envelope fault files identity keys lazy links table users wire
openapi: api api/param fault notify/texts wire
web: api api/account api/file api/param api/upload blob bundle contact envelope fault files identity keys lazy
   links notify notify/inbox notify/texts service table users wire
boot/lambda: api blob envelope fault files keys limit retry service table users wire
boot/worker: blob boot/lambda fault files keys links notify notify/mail service table
boot/local: api api/account api/file api/param api/upload blob blob/disk envelope fault files keys limit links
   notify notify/inbox openapi service table table/sqlite users web wire
boot/stores: blob/s3 boot/lambda boot/local service table/dynamo table/sqlite
boot/backup: blob blob/disk boot/local fault files service table table/sqlite users
`

func TestEachPackageImportsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(
		t.Context(),
		"go",
		"list",
		"-f",
		`{{.ImportPath}} {{join .Imports " "}}`,
		"./shared/...",
	)
	list.Dir = boottest.Root(t)
	out, err := list.Output()
	expect.NoErr(t, err)
	const own = "ferry/shared/"
	support, knowsAWS := regexp.MustCompile(`test$|/(browser|expect)$`), regexp.MustCompile(`^boot/|/(dynamo|s3|ses|sns|sqs)$`)
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		all := strings.Fields(line)
		name := strings.TrimPrefix(all[0], own)
		if support.MatchString(name) {
			continue
		}
		var ours []string
		for _, imported := range all[1:] {
			if room, ok := strings.CutPrefix(imported, own); ok {
				ours = append(ours, room)
			}
			if strings.HasPrefix(imported, "github.com/aws/") && !knowsAWS.MatchString(name) {
				t.Errorf("%s imports %s; only backends and boot know AWS", name, imported)
			}
		}
		slices.Sort(ours)
		found[name] = strings.Join(ours, " ")
	}
	want, above := map[string]string{}, []string{}
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(mayImport), "\n  ", ""), "\n") {
		name, imports, _ := strings.Cut(line, ":")
		all := strings.Fields(imports)
		want[name] = strings.Join(all, " ")
		for _, imported := range all {
			if !slices.Contains(above, imported) {
				t.Errorf("%s may import %s, which is not lower", name, imported)
			}
		}
		above = append(above, name)
	}
	expect.Equal(t, "what is imported", found, want)
}
