package stack

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/service"
)

// asked returns a getenv that records which of Ferry's variables are read.
func asked() (getenv func(string) string, names func() []string) {
	seen := map[string]bool{}
	return func(name string) string {
			if strings.HasPrefix(name, "FERRY_") {
				seen[name] = true
			}
			return ""
		}, func() []string {
			return slices.Sorted(maps.Keys(seen))
		}
}

// variables returns the variables that opening a port reads.
func variables(t *testing.T, name string) []string {
	t.Helper()
	open := openers(new(worker.Worker))[name]
	if open == nil {
		t.Fatalf("the port %s is new: add it to openers", name)
	}
	getenv, names := asked()
	cloud := lambda.Cloud{Getenv: getenv}
	if err := cloud.Open(&service.Ports{}, open); err == nil && name != "SMS" && name != "Versions" {
		t.Errorf("the port %s opens without a name", name)
	}
	return names()
}

// used returns the settings that a function acts on.
func used() map[string][]string {
	const table = `
		authchange: PUBLIC_URL EVENTS
		authfirst: PUBLIC_URL
		authforget: PUBLIC_URL HIDE_USERS
		downloadfile: PUBLIC_URL EVENTS REDIRECT_OVER LINK_BYTES_PER_HOUR
		downloadfilebackup: PUBLIC_URL EVENTS REDIRECT_OVER LINK_BYTES_PER_HOUR
		downloadlist: PUBLIC_URL
		downloadlistbackup: PUBLIC_URL
		email: PUBLIC_URL EVENTS NAME NOTICES_PER_HOUR NOTICES_PER_DAY NOTICES_PER_RECIPIENT
		feedback: PUBLIC_URL EVENTS
		filesdelete: PUBLIC_URL EVENTS BACKUP_DAYS
		filesget: PUBLIC_URL
		filesrestore: PUBLIC_URL EVENTS KEEP_DAYS
		linkkey: KEY_PARAMETER TABLE
		links: PUBLIC_URL PHONE_REGION SMS_COUNTRIES SMS_SENDING KEEP_DAYS NOTICES_PER_HOUR NOTICES_PER_DAY
			NOTICES_PER_RECIPIENT
		me: PUBLIC_URL EVENTS NOTICES_PER_HOUR NOTICES_PER_DAY
		oauthtoken: PUBLIC_URL
		openapi: PUBLIC_URL
		requests: PUBLIC_URL EVENTS KEEP_DAYS MAX_BODY
		sms: PUBLIC_URL EVENTS
		sweep: PUBLIC_URL EVENTS KEEP_DAYS BACKUP_DAYS BACKUP_STORAGE_CLASS MOVERS
		uploads: PUBLIC_URL EVENTS PHONE_REGION SMS_COUNTRIES SMS_SENDING KEEP_DAYS NOTICES_PER_HOUR
			NOTICES_PER_DAY NOTICES_PER_RECIPIENT
		web: PUBLIC_URL EVENTS PHONE_REGION SMS_SENDING HIDE_USERS KEEP_DAYS BACKUP_DAYS MAX_BODY
			LINK_BYTES_PER_HOUR NOTICES_PER_HOUR NOTICES_PER_DAY NOTICES_PER_RECIPIENT SMS_COUNTRIES NAME ACCENT
			LOGO IMPRINT PRIVACY INTRO HOME
		upload: PUBLIC_URL EVENTS PHONE_REGION SMS_COUNTRIES SMS_SENDING KEEP_DAYS MAX_BODY NOTICES_PER_HOUR
			NOTICES_PER_DAY NOTICES_PER_RECIPIENT`
	all, function := map[string][]string{}, ""
	for _, word := range strings.Fields(table) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			function = name
		} else {
			all[function] = append(all[function], "FERRY_"+word)
		}
	}
	return all
}

func TestAFunctionHasTheVariablesThatItsPortsAndSettingsRead(t *testing.T) {
	t.Parallel()
	for name, f := range read(t).functions() {
		want := slices.Clone(used()[name])
		for _, p := range readMain(t, name).ports() {
			want = append(want, variables(t, p)...)
		}
		environment, _ := at(f.Props, "Environment", "Variables").(object)
		same(t, "the environment of "+name, slices.Sorted(maps.Keys(environment)), want)
	}
}

// maxEnvironment is the limit in bytes of a function's names and values.
const maxEnvironment = 4096

func TestAFunctionsEnvironmentIsNeverTooLong(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for id, r := range made(t, tpl.longest(slices.Sorted(maps.Keys(tpl.Parameters)))...).Resources {
		variables, _ := at(r, "Properties", "Environment", "Variables").(object)
		size := 0
		for name, value := range variables {
			size += len(name)
			if text, ok := value.(string); ok {
				size += len(text)
			} else {
				size += 80 // the name of a resource, which AWS chooses
			}
		}
		if at(r, "Type") == "AWS::Lambda::Function" && size > maxEnvironment {
			t.Errorf("the environment of %s has up to %d bytes", id, size)
		}
	}
}

func TestEachSettingReachesAFunction(t *testing.T) {
	t.Parallel()
	getenv, names := asked()
	if _, err := service.ReadSettings(getenv); err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		if name == "FERRY_PLAIN_LOGIN" { // a gateway has https
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(used())), func(all []string) bool {
			return slices.Contains(all, name)
		}) {
			t.Errorf("no function gets %s", name)
		}
	}
}

// TestAFunctionLinksOnlyWhatItsPortsNeed keeps start time and size low: each package
// adds to both, used or not.
func TestAFunctionLinksOnlyWhatItsPortsNeed(t *testing.T) {
	t.Parallel()
	const sdk = "github.com/aws/aws-sdk-go-v2/"
	const unwanted = `
		github.com/aws/aws-sdk-go-v2/config
		github.com/aws/aws-sdk-go-v2/credentials
		zombiezen.com/go/sqlite
		net/smtp
		ferry/shared/table/sqlite
		ferry/shared/blob/disk
		ferry/shared/boot/local
		github.com/nyaruka/phonenumbers
		google.golang.org/protobuf/proto
		github.com/prometheus/client_golang/prometheus
		golang.org/x/crypto/acme`
	services := map[string]string{
		"Table":  "dynamodb",
		"Blobs":  "s3",
		"Topics": "sns",
		"SMS":    "sns",
		"Queue":  "sqs",
		"Mail":   "sesv2",
	}
	for _, name := range names() {
		want := map[string]bool{}
		for _, p := range readMain(t, name).ports() {
			want[services[p]] = true
		}
		for _, i := range dependencies(t, name) {
			service, isService := strings.CutPrefix(i, sdk+"service/")
			whole := isService && !strings.Contains(service, "/") // types alone cost nothing
			forbidden := slices.Contains(strings.Fields(unwanted), i)
			if whole && !want[service] || forbidden {
				t.Errorf("%s links %s", name, i)
			}
		}
	}
}

func dependencies(t *testing.T, name string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "lambda.norpc", "./functions/"+name)
	list.Dir = boottest.Root(t)
	out, err := list.Output()
	check(t, err)
	return strings.Fields(string(out))
}
