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
	public := []string{"FERRY_PUBLIC_URL"}
	events := slices.Clip([]string{"FERRY_PUBLIC_URL", "FERRY_EVENTS"}) // an event's source is that address
	return map[string][]string{
		"authchange":         events,
		"authfirst":          public,
		"authforget":         {"FERRY_PUBLIC_URL", "FERRY_HIDE_USERS"},
		"downloadfile":       append(events, "FERRY_REDIRECT_OVER", "FERRY_LINK_BYTES_PER_HOUR"),
		"downloadfilebackup": append(events, "FERRY_REDIRECT_OVER", "FERRY_LINK_BYTES_PER_HOUR"),
		"downloadlist":       public,
		"downloadlistbackup": public,
		"email":              append(events, "FERRY_NAME", "FERRY_NOTICES_PER_HOUR", "FERRY_NOTICES_PER_DAY", "FERRY_NOTICES_PER_RECIPIENT"),
		"feedback":           events,
		"filesdelete":        append(events, "FERRY_BACKUP_DAYS"),
		"filesget":           public,
		"filesrestore":       append(events, "FERRY_KEEP_DAYS"),
		"linkkey":            {"FERRY_KEY_PARAMETER", "FERRY_TABLE"},
		"links":              {"FERRY_PUBLIC_URL", "FERRY_PHONE_REGION", "FERRY_SMS_COUNTRIES", "FERRY_SMS_SENDING", "FERRY_KEEP_DAYS", "FERRY_NOTICES_PER_HOUR", "FERRY_NOTICES_PER_DAY", "FERRY_NOTICES_PER_RECIPIENT"},
		"me":                 append(events, "FERRY_NOTICES_PER_HOUR", "FERRY_NOTICES_PER_DAY"),
		"oauthtoken":         public,
		"openapi":            public,
		"requests":           append(events, "FERRY_KEEP_DAYS", "FERRY_MAX_BODY"),
		"sms":                events,
		"sweep":              append(events, "FERRY_KEEP_DAYS", "FERRY_BACKUP_DAYS", "FERRY_BACKUP_STORAGE_CLASS", "FERRY_MOVERS"),
		"uploads":            {"FERRY_PUBLIC_URL", "FERRY_EVENTS", "FERRY_PHONE_REGION", "FERRY_SMS_COUNTRIES", "FERRY_SMS_SENDING", "FERRY_KEEP_DAYS", "FERRY_NOTICES_PER_HOUR", "FERRY_NOTICES_PER_DAY", "FERRY_NOTICES_PER_RECIPIENT"},
		"web": append(events, "FERRY_PHONE_REGION", "FERRY_SMS_SENDING", "FERRY_HIDE_USERS", "FERRY_KEEP_DAYS", "FERRY_BACKUP_DAYS", "FERRY_MAX_BODY", "FERRY_LINK_BYTES_PER_HOUR", "FERRY_NOTICES_PER_HOUR",
			"FERRY_NOTICES_PER_DAY", "FERRY_NOTICES_PER_RECIPIENT", "FERRY_SMS_COUNTRIES", "FERRY_NAME", "FERRY_ACCENT", "FERRY_LOGO", "FERRY_IMPRINT", "FERRY_PRIVACY", "FERRY_INTRO", "FERRY_HOME"),
		"upload": {"FERRY_PUBLIC_URL", "FERRY_EVENTS", "FERRY_PHONE_REGION", "FERRY_SMS_COUNTRIES", "FERRY_SMS_SENDING", "FERRY_KEEP_DAYS", "FERRY_MAX_BODY", "FERRY_NOTICES_PER_HOUR", "FERRY_NOTICES_PER_DAY", "FERRY_NOTICES_PER_RECIPIENT"},
	}
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
		if !slices.ContainsFunc(slices.Collect(maps.Values(used())), func(all []string) bool { return slices.Contains(all, name) }) {
			t.Errorf("no function gets %s", name)
		}
	}
}

// TestAFunctionLinksOnlyWhatItsPortsNeed keeps start time and size low: each package
// adds to both, used or not.
func TestAFunctionLinksOnlyWhatItsPortsNeed(t *testing.T) {
	t.Parallel()
	const sdk = "github.com/aws/aws-sdk-go-v2/"
	services := map[string]string{"Table": "dynamodb", "Blobs": "s3", "Topics": "sns", "SMS": "sns", "Queue": "sqs", "Mail": "sesv2"}
	for _, name := range names() {
		want := map[string]bool{}
		for _, p := range readMain(t, name).ports() {
			want[services[p]] = true
		}
		for _, i := range dependencies(t, name) {
			service, isService := strings.CutPrefix(i, sdk+"service/")
			whole := isService && !strings.Contains(service, "/") // types alone cost nothing
			forbidden := slices.Contains([]string{
				sdk + "config", sdk + "credentials", "zombiezen.com/go/sqlite", "net/smtp",
				"ferry/shared/table/sqlite", "ferry/shared/blob/disk", "ferry/shared/boot/local",
				"github.com/nyaruka/phonenumbers", "google.golang.org/protobuf/proto",
				"github.com/prometheus/client_golang/prometheus", "golang.org/x/crypto/acme",
			}, i)
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
