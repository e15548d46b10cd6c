package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

// everything gives each parameter a value other than its default, except PublicUrl,
// which would hide DomainName.
const everything = `DomainName=files.example.com
CertificateArn=arn:aws:acm:eu-south-1:1:certificate/x
PhoneRegion=IT
ServiceName=Acme Files
Accent=#0b5cad
Logo=data:image/svg+xml;base64,PHN2Zy8+
Imprint=https://example.com/imprint
Privacy=https://example.com/privacy
Intro=For our customers.
Home=login
Events=on
HideUsers=on
KeepDays=31
BackupDays=91
BackupStorageClass=GLACIER_IR
UndoDays=8
NoticesPerHour=101
NoticesPerDay=501
NoticesPerRecipient=51
MaxBody=4500000
RedirectOver=4000000
LinkBytesPerHour=2TB
CorsOrigins=https://app.example.com,https://b.example.com
ThrottleRate=102
ThrottleBurst=202
ClientHeader=X-Forwarded-For/2
ProxySecret=X-Proxy:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
SenderAddress=ferry@example.com
SenderName=Ferryman
MailConcurrency=3
SmsSending=on
SmsSenderId=Ferry
SmsOriginationIdentity=+12065550100
SmsCountries=IT,FR
SmsConcurrency=4
SmsStatusLogs=on
SweepSchedule=rate(2 days)
SweepConcurrency=20
Movers=51
LogRetentionDays=90
Metrics=on
Dashboard=on
Deployment=Canary10Percent5Minutes
AlarmEmail=ops@example.com
AlarmConcurrency=501
Architecture=x86_64`

// TestTheStackMatchesTheReviewedFile compares everything that CloudFormation makes with a
// file, which shows each change of the template or of what SAM makes of it: all
// resources with all their properties, first with the default parameters, then the
// differences with others.
func TestTheStackMatchesTheReviewedFile(t *testing.T) {
	t.Parallel()
	asked, plain := read(t), written(made(t))
	text := slices.Concat(
		lines(
			"Parameters",
			asked.Parameters,
		), lines("Rules", asked.Rules), lines("Conditions", asked.Conditions), plain,
	)
	for _, parameters := range [][]string{strings.Split(everything, "\n"), {"PublicUrl=https://cdn.example.com/v1"}} {
		text = append(text, "", "With "+strings.Join(parameters, ", "), "")
		for _, line := range written(made(t, parameters...)) {
			if !slices.Contains(plain, line) {
				text = append(text, line)
			}
		}
	}
	expect.Golden(t, "stack.txt", strings.Join(text, "\n")+"\n")
}

// written returns the resources and outputs as lines, without the hashes in the names
// of versions.
func written(d document) []string {
	all := append(lines("Resources", d.Resources), lines("Outputs", d.Outputs)...)
	hash := regexp.MustCompile(`(Version)[0-9a-f]{10}\b`)
	for i, line := range all {
		all[i] = hash.ReplaceAllString(line, "$1")
	}
	return all
}

// TestTheExpandedTemplateIsTheOneThatSAMMakes keeps testdata up to date for machines
// without SAM.
func TestTheExpandedTemplateIsTheOneThatSAMMakes(t *testing.T) {
	t.Parallel()
	text, err := run("--expand")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	check(t, err)
	text, err = json.Marshal(expansion{hash(t), text})
	check(t, err)
	expect.Golden(t, keptFile, string(text)+"\n")
}

// lines writes a value as JSON, with a line for each part if it is long.
func lines(at string, v any) (all []string) {
	text := compact(v)
	parts := object{}
	switch v := v.(type) {
	case object:
		parts = v
	case []any:
		for i, part := range v {
			parts[fmt.Sprintf("%02d", i)] = part
		}
	}
	if len(parts) == 0 || len(text) < 300 {
		return []string{at + ": " + text}
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, lines(at+"."+key, parts[key])...)
	}
	return all
}

// compact returns a value as JSON, with the names of other resources written as in
// strings.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(b.String())
	for _, short := range [][2]string{
		{`\{"Ref":"([\w:]+)"\}`, `"$${$1}"`},
		{`\{"Fn::GetAtt":\["(\w+)","([\w.]+)"\]\}`, `"$${$1.$2}"`},
		{`\{"Fn::Sub":("[^"]*")\}`, "$1"},
	} {
		text = regexp.MustCompile(short[0]).ReplaceAllString(text, short[1])
	}
	return text
}
