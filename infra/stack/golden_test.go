package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/infra/template"
)

// everything gives each parameter a value of its own, but for PublicUrl, which
// would hide DomainName.
func everything() []string {
	return []string{
		"DomainName=files.example.com", "CertificateArn=arn:aws:acm:eu-south-1:1:certificate/x",
		"PhoneRegion=IT", "HideUsers=on", "KeepDays=31", "BackupDays=91", "NoticesPerHour=101", "NoticesPerDay=501", "NoticesPerRecipient=51",
		"MaxBody=4500000", "RedirectOver=4000000", "CorsOrigins=https://app.example.com,https://b.example.com", "ThrottleRate=102", "ThrottleBurst=202",
		"SenderAddress=ferry@example.com", "SenderName=Ferryman", "MailConcurrency=3", "SmsSending=on", "SmsSenderId=Ferry", "SmsConcurrency=4",
		"SmsStatusLogs=on", "SweepSchedule=rate(2 days)", "LogRetentionDays=90", "Metrics=on", "Dashboard=on", "Deployment=Canary10Percent5Minutes",
		"AlarmEmail=ops@example.com", "AlarmConcurrency=501",
	}
}

// TestTheStackIsTheOneThatWasReviewed compares all that CloudFormation makes
// with a file, in which a change of the template, or of what SAM makes of it, is
// seen: each resource with all its properties, first with all parameters as they
// are by default, then what is different with others.
func TestTheStackIsTheOneThatWasReviewed(t *testing.T) {
	t.Parallel()
	raw, plain := transformed(t), made(t)
	text := slices.Concat(lines("Parameters", raw.Parameters), lines("Rules", raw.Rules), lines("Conditions", raw.Conditions), plain)
	for _, parameters := range [][]string{everything(), {"PublicUrl=https://cdn.example.com/v1"}} {
		text = append(text, "", "With "+strings.Join(parameters, ", "), "")
		for _, line := range made(t, parameters...) {
			if !slices.Contains(plain, line) {
				text = append(text, line)
			}
		}
	}
	golden(t, "stack.txt", strings.Join(text, "\n")+"\n")
}

// version is a name that SAM makes of all that a version is made of.
var version = regexp.MustCompile(`(Version)[0-9a-f]{10}\b`)

// made is what a stack with parameters consists of, in lines: "${X}" is what X
// becomes in AWS.
func made(t *testing.T, parameters ...string) []string {
	t.Helper()
	all := transformed(t, parameters...)
	s := template.Stack{Template: all.Template, Values: map[string]string{}, Symbolic: true}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		s.Values[name] = value
	}
	var text []string
	for title, section := range map[string]object{"Resources": all.Resources, "Outputs": all.Outputs} {
		for _, id := range slices.Sorted(maps.Keys(section)) {
			if c, ok := at(section[id], "Condition").(string); ok {
				if holds, err := s.Condition(c); err != nil || !holds {
					check(t, err)
					continue
				}
			}
			v, err := s.Resolve(section[id])
			check(t, err)
			text = append(text, lines(title+"."+id, v)...)
		}
	}
	slices.Sort(text)
	return strings.Split(version.ReplaceAllString(strings.Join(text, "\n"), "$1"), "\n")
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lines writes a value as JSON, what is long in a line for each of its parts.
func lines(at string, v any) (all []string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []string{at + ": " + err.Error()}
	}
	parts := object{}
	switch v := v.(type) {
	case object:
		parts = v
	case []any:
		for i, part := range v {
			parts[fmt.Sprintf("%02d", i)] = part
		}
	}
	if len(parts) == 0 || b.Len() < 300 {
		return []string{at + ": " + strings.TrimSpace(b.String())}
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, lines(at+"."+key, parts[key])...)
	}
	return all
}

// golden compares with a file of testdata, and writes it where UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	same(t, path+" (set UPDATE_GOLDEN=1 to accept)", strings.Split(got, "\n"), strings.Split(string(want), "\n"))
}
