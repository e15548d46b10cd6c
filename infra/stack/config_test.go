package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
)

// profile is a profile of samconfig.toml: parameters by command.
type profile = map[string]struct {
	Parameters map[string]any
}

func profiles(t *testing.T) map[string]profile {
	t.Helper()
	sam, err := exec.LookPath("sam")
	if err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	const program = `import json, sys, tomllib; print(json.dumps({k: v for k, v in tomllib.load(sys.stdin.buffer).items() if k != "version"}))`
	c := exec.CommandContext(t.Context(), "sh", "-c", `exec "$0" -c "$1" < "$2"`,
		filepath.Join(filepath.Dir(sam), "python3"), program, filepath.Join(boottest.Root(t), "samconfig.toml"))
	text, err := c.Output()
	if err != nil {
		t.Fatalf("reading samconfig.toml: %v", err)
	}
	var all map[string]profile
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEachProfileDeploysASeparateStack(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	all := profiles(t)
	same(t, "the profiles", slices.Collect(keys(all)), []string{"default", "dev"})
	stacks := map[any]string{}
	for name, p := range all {
		for command, want := range map[string]map[string]any{
			"build": {"build_in_source": true},
			"deploy": {
				"capabilities": "CAPABILITY_IAM", "resolve_s3": true, "confirm_changeset": true,
				"fail_on_empty_changeset": false, "on_failure": "DELETE",
			},
			"global":   {"language_extensions": true},
			"validate": {"lint": true},
		} {
			for key, value := range want {
				if got := p[command].Parameters[key]; got != value {
					t.Errorf("%s: %s of %s is %v, want %v", name, key, command, got, value)
				}
			}
		}
		stack := p["global"].Parameters["stack_name"]
		if stack == nil || stacks[stack] != "" {
			t.Errorf("%s and %s name the same stack %v", name, stacks[stack], stack)
		}
		stacks[stack] = name
		overrides, _ := p["deploy"].Parameters["parameter_overrides"].([]any)
		if len(overrides) == 0 != (name == "default") {
			t.Errorf("%s sets the parameters %v", name, overrides)
		}
		for _, o := range overrides {
			if err := tpl.takes(fmt.Sprint(o)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// takes returns nil, or why NAME=VALUE is not a valid parameter.
func (d document) takes(parameter string) error {
	name, value, _ := strings.Cut(parameter, "=")
	p, _ := d.Parameters[name].(object)
	if p == nil {
		return fmt.Errorf("there is no parameter %s", name)
	}
	if allowed := texts(p["AllowedValues"]); len(allowed) > 0 && !slices.Contains(allowed, value) {
		return fmt.Errorf("%s may not be %s", name, value)
	}
	if pattern, ok := p["AllowedPattern"].(string); ok && !regexp.MustCompile("^(?:"+pattern+")$").MatchString(value) {
		return fmt.Errorf("%s may not be %s", name, value)
	}
	if most, ok := p["MaxLength"].(int); ok && len(value) > most {
		return fmt.Errorf("%s may not be %s", name, value)
	}
	if p["Type"] == "Number" {
		n, err := strconv.Atoi(value)
		least, _ := p["MinValue"].(int)
		most, bounded := p["MaxValue"].(int)
		if err != nil || n < least || bounded && n > most {
			return fmt.Errorf("%s may not be %s", name, value)
		}
	}
	return nil
}

func TestAParameterAcceptsOnlyValidValues(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, good := range []string{
		"PublicUrl=https://files.example.com/v1", "PublicUrl=", "DomainName=files.example.com", "DomainName=",
		"CertificateArn=arn:aws:acm:eu-south-1:123456789012:certificate/6c1e0a9e-0000-4000-8000-000000000000", "PhoneRegion=IT", "HideUsers=on",
		"KeepDays=0", "BackupDays=3650", "UndoDays=1", "NoticesPerHour=0", "MaxBody=4600000", "CorsOrigins=*", "CorsOrigins=https://a.example.com,http://localhost:3000", "CorsOrigins=",
		"SenderAddress=ferry@example.com", "SenderName=Ferry & Co.", "SmsSenderId=Ferry", "SmsOriginationIdentity=+12065550100", "SmsOriginationIdentity=12345", "SmsCountries=IT", "SmsCountries=IT,US", "SweepSchedule=rate(1 day)", "SweepSchedule=cron(0 3 * * ? *)",
		"LogRetentionDays=90", "Metrics=on", "Deployment=Linear10PercentEvery1Minute", "AlarmEmail=ops@example.com", "AlarmEmail=",
	} {
		if err := tpl.takes(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"PublicUrl=https://files.example.com", "PublicUrl=files.example.com/v1", "DomainName=https://files.example.com", "DomainName=files", "DomainName=files.example.com/v1",
		"CertificateArn=6c1e0a9e", "PhoneRegion=39", "PhoneRegion=UK", "HideUsers=yes", "KeepDays=-1", "KeepDays=40000", "NoticesPerHour=-1", "MaxBody=5000000",
		"CorsOrigins=https://a.example.com, https://b.example.com", "CorsOrigins=a.example.com", "CorsOrigins=https://a.example.com/",
		"SenderAddress=Ferry <ferry@example.com>", "SenderName=", `SenderName="Ferry"`, "SmsSenderId=+39333", "SmsOriginationIdentity=Ferry", "SmsCountries=IT, US", "SmsCountries=IT,UK", "SmsCountries=it", "SweepSchedule=daily", "LogRetentionDays=31",
		"Metrics=true", "Deployment=Canary", "AlarmEmail=ops",
	} {
		if tpl.takes(bad) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestEachParameterIsDescribedUsedAndLimited(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	used := fmt.Sprint(tpl.Conditions, tpl.Globals, tpl.Resources, tpl.Outputs)
	for name, p := range tpl.Parameters {
		if len(show(at(p, "Description"))) < 20 || at(p, "Default") == nil {
			t.Errorf("%s has no description or no default", name)
		}
		if !strings.Contains(used, "Ref:"+name+"]") && !strings.Contains(used, "${"+name+"}") {
			t.Errorf("%s is not used", name)
		}
		if at(p, "AllowedValues") != nil {
			continue
		}
		if at(p, "Type") == "Number" {
			if at(p, "MinValue") == nil || at(p, "MaxValue") == nil {
				t.Errorf("%s is not bounded", name)
			}
			continue
		}
		if at(p, "AllowedPattern") == nil || at(p, "MaxLength") == nil || at(p, "ConstraintDescription") == nil {
			t.Errorf("%s has no pattern, no bound or no description of them", name)
		}
	}
}

// TestMakeDeploysWhatItIsToldForTheProcessorThatItBuildsFor runs `make deploy` with a sam
// that tells how functions would be built, and what SAM makes of the parameters.
func TestMakeDeploysWhatItIsToldForTheProcessorThatItBuildsFor(t *testing.T) {
	t.Parallel()
	sam, err := exec.LookPath("sam")
	if err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	folder := t.TempDir()
	const parse = `import sys; from samcli.cli.types import CfnParameterOverridesType as T; ` +
		`print(T().convert(tuple(sys.argv[sys.argv.index("--parameter-overrides") + 1:]), None, None))`
	script := fmt.Sprintf("#!/bin/sh\nif [ $1 = build ]; then make -n build-Health; else %q -c '%s' \"$@\"; fi\n", filepath.Join(filepath.Dir(sam), "python3"), parse)
	if err := os.WriteFile(filepath.Join(folder, "sam"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ argument, processor, parameters string }{
		{"A=B", "GOARCH=arm64", `{'Architecture': 'arm64'}`},
		{"ARCHITECTURE=x86_64", "GOARCH=amd64", `{'Architecture': 'x86_64'}`},
		{"SET=Metrics=on Architecture=x86_64", "GOARCH=amd64", `{'Architecture': 'x86_64', 'Metrics': 'on'}`},
		{`SET=SenderName="My 'own' Ferry" SweepSchedule="rate(30 minutes)"`, "GOARCH=arm64",
			`{'Architecture': 'arm64', 'SenderName': "My 'own' Ferry", 'SweepSchedule': 'rate(30 minutes)'}`},
	} {
		cmd := exec.CommandContext(t.Context(), "make", "-s", "deploy", c.argument)
		cmd.Dir, cmd.Env = boottest.Root(t), append(os.Environ(), "AWS_REGION=eu-south-1", "PATH="+folder+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(said), c.processor) || !strings.HasSuffix(string(said), c.parameters+"\n") {
			t.Errorf("%s: %v, want %s and %s:\n%s", c.argument, err, c.processor, c.parameters, said)
		}
	}
}
