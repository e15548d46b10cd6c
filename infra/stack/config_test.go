package stack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
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

// TestEachProfileDeploysASeparateStack: plain `sam deploy` is for ferry, and keeps the parameters.
func TestEachProfileDeploysASeparateStack(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "samconfig.toml"))
	check(t, err)
	set := regexp.MustCompile(`(?m)^(?:\[(\w+)\..*|(stack_name|parameter_overrides) = (.*))$`)
	var got []string
	profile := ""
	for _, m := range set.FindAllStringSubmatch(string(text), -1) {
		if profile = cmp.Or(m[1], profile); m[2] == "stack_name" {
			got = append(got, profile+" "+m[3])
		} else if m[2] != "" {
			got = append(got, profile+" overrides")
			for _, o := range regexp.MustCompile(`"(.*?)"`).FindAllStringSubmatch(m[3], -1) {
				check(t, read(t).takes(o[1]))
			}
		}
	}
	same(t, "the profiles' settings", got, []string{`default "ferry"`, `dev "ferry-dev"`, "dev overrides"})
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
	if least, ok := p["MinLength"].(int); ok && len(value) < least {
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
	const good = everything + `
PublicUrl=https://files.example.com/v1
PublicUrl=
DomainName=
CertificateArn=arn:aws:acm:eu-south-1:123456789012:certificate/6c1e0a9e-0000-4000-8000-000000000000
KeepDays=0
BackupDays=3650
UndoDays=1
NoticesPerHour=0
MaxBody=4600000
CorsOrigins=*
CorsOrigins=https://a.example.com,http://localhost:3000
CorsOrigins=
SenderName=Ferry & Co.
SmsOriginationIdentity=12345
SmsCountries=IT
SweepSchedule=rate(1 day)
SweepSchedule=cron(0 3 * * ? *)
Deployment=Linear10PercentEvery1Minute
AlarmEmail=
ServiceName=Zoë & Co.
Accent=
Logo=
Imprint=https://example.com
Imprint=
Privacy=http://example.com/a?b=c#d
Intro=
Home=send`
	for parameter := range strings.SplitSeq(good, "\n") {
		check(t, tpl.takes(parameter))
	}
	const bad = `PublicUrl=https://files.example.com
PublicUrl=files.example.com/v1
DomainName=https://files.example.com
DomainName=files
DomainName=files.example.com/v1
CertificateArn=6c1e0a9e
PhoneRegion=39
PhoneRegion=UK
HideUsers=yes
KeepDays=-1
KeepDays=40000
NoticesPerHour=-1
MaxBody=5000000
CorsOrigins=https://a.example.com, https://b.example.com
CorsOrigins=a.example.com
CorsOrigins=https://a.example.com/
SenderAddress=Ferry <ferry@example.com>
SenderName=
SenderName="Ferry"
SmsSenderId=+39333
SmsOriginationIdentity=Ferry
SmsCountries=IT, US
SmsCountries=IT,UK
SmsCountries=it
SweepSchedule=daily
LogRetentionDays=31
Metrics=true
Deployment=Canary
AlarmEmail=ops
ServiceName=
Accent=blue
Accent=#0b5
Logo=logo.svg
Logo=data:text/html;base64,PHN2Zy8+
Imprint=example.com
Privacy=javascript:alert(1)
Privacy=https://example.com/a b
Home=files`
	for parameter := range strings.SplitSeq(bad, "\n") {
		if tpl.takes(parameter) == nil {
			t.Errorf("%s is accepted", parameter)
		}
	}
}

// deployment runs `make deploy` with a sam that tells how functions would be built, and
// what it deploys. The log is what the build has said.
func deployment(t *testing.T, sts int, sam, typed string, args ...string) (said, log string, err error) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	root, folder := boottest.Root(t), t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "sam"), []byte("#!/bin/sh\n"+sam), 0o700))
	if typed == "" {
		check(t, os.WriteFile(filepath.Join(folder, "config"), []byte("[default]\nregion = eu-south-1\n"), 0o600))
	}
	path := filepath.Join(root, ".tmp", "build.log")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(sts)
		fmt.Fprint(
			w,
			`<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/Ann</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`,
		)
	}))
	defer cloud.Close()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{
		"-s", "deploy", "FERRY=echo ferry is built",
	}, args...)...)
	cmd.Stdin, cmd.Dir = strings.NewReader(typed), root
	cmd.Env = append(
		os.Environ(),
		"AWS_ENDPOINT_URL="+cloud.URL,
		"AWS_ACCESS_KEY_ID=id",
		"AWS_SECRET_ACCESS_KEY=secret",
		"AWS_REGION=",
		"AWS_DEFAULT_REGION=",
		"AWS_PROFILE=",
		"AWS_CONFIG_FILE="+filepath.Join(folder, "config"),
		"PATH="+folder+":"+os.Getenv("PATH"),
	)
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(path) // none if nothing was built
	return string(out), string(text), err
}

// samTells builds nothing, and prints the arguments of a deployment, one on each line.
const samTells = `if [ $1 = build ]; then make -n build-Health; else printf '%s\n' "$@"; fi`

// TestMakeDeploysWhatItIsToldForTheProcessorThatItBuildsFor also asks SAM what it makes of
// the parameters.
func TestMakeDeploysWhatItIsToldForTheProcessorThatItBuildsFor(t *testing.T) {
	for _, c := range []struct{ argument, processor, parameters string }{
		{argument: "A=B", processor: "GOARCH=arm64", parameters: `{'Architecture': 'arm64'}`},
		{argument: "ARCHITECTURE=x86_64", processor: "GOARCH=amd64", parameters: `{'Architecture': 'x86_64'}`},
		{
			argument:   "SET=Metrics=on Architecture=x86_64",
			processor:  "GOARCH=amd64",
			parameters: `{'Architecture': 'x86_64', 'Metrics': 'on'}`,
		},
		{argument: `SET=SenderName="My 'own' Ferry" SweepSchedule="rate(30 minutes)"`, processor: "GOARCH=arm64",
			parameters: `{'Architecture': 'arm64', 'SenderName': "My 'own' Ferry", 'SweepSchedule': 'rate(30 minutes)'}`},
	} {
		said, log, err := deployment(t, 200, samTells, "", c.argument)
		given := regexp.MustCompile("\n--parameter-overrides\n(.*)\n").FindStringSubmatch(said)
		if err != nil || given == nil || !strings.Contains(log, c.processor) {
			t.Fatalf("%s: %v, want %s:\n%s\n%s", c.argument, err, c.processor, said, log)
		}
		sam, err := exec.LookPath("sam")
		if err != nil {
			t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
		}
		const parse = `import sys; from samcli.cli.types import CfnParameterOverridesType as T; print(T().convert((sys.argv[1],), None, None))`
		got, err := exec.CommandContext(
			t.Context(),
			filepath.Join(filepath.Dir(sam), "python3"),
			"-c",
			parse,
			given[1],
		).Output()
		if err != nil || string(got) != c.parameters+"\n" {
			t.Errorf("%s: %v, want %s:\n%s", c.argument, err, c.parameters, got)
		}
	}
}

func TestADeploymentBeginsWithTheCredentialsAndEndsWithTheFirstUser(t *testing.T) {
	const user, name, ask = "  bin/ferry user add NAME --stack %s --region %s\n", "\n--stack-name\n%s\n", "AWS region, such as eu-west-1: "
	for what, c := range map[string]struct {
		sam   string // samTells without one
		typed string // without anything typed, a profile has the region
		sts   int    // 200 without one
		args  []string
		says  string
		end   string
		built bool
	}{
		"the stack": {says: fmt.Sprintf(name, "ferry"), end: fmt.Sprintf(user, "ferry", "eu-south-1"), built: true},
		"another one": {
			args: []string{"STACK=other"},
			says: fmt.Sprintf(name, "other"), end: fmt.Sprintf(user, "other", "eu-south-1"), built: true,
		},
		"a region that is typed": {
			typed: "eu-west-1\n",
			says:  ask,
			end:   fmt.Sprintf(user, "ferry", "eu-west-1"),
			built: true,
		},
		"no region":         {typed: "\n", says: ask + "deploy: nothing was deployed: say the region"},
		"wrong credentials": {sts: 403, says: "the AWS credentials do not work"},
		"a build that fails": {
			sam:   "echo the compiler says why; exit 1",
			says:  "the compiler says why",
			built: true,
		},
		"a deployment that fails": {
			sam:   "[ $1 = build ]",
			says:  "as arn:aws:iam::123456789012:user/Ann\n",
			built: true,
		},
	} {
		fails := c.end == ""
		said, log, err := deployment(t, cmp.Or(c.sts, 200), cmp.Or(c.sam, samTells), c.typed, c.args...)
		if (err != nil) != fails ||
			!strings.Contains(said, c.says) ||
			!strings.HasSuffix(said, c.end) ||
			strings.Contains(said, "user add") == fails {
			t.Errorf("%s: %v:\n%s", what, err, said)
		}
		if strings.HasPrefix(log, "ferry is built\n") != c.built || !fails && strings.Contains(said, "ferry is built") {
			t.Errorf("%s: the build says %q, and the deployment\n%s", what, log, said)
		}
	}
}
