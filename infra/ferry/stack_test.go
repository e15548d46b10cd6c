package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"ferry/infra/ferry/operator"
	"ferry/shared/table"
)

// inAWS returns the environment of a person with credentials of AWS and nothing else of it.
// A stand-in answers as CloudFormation does about the stack "ours", as its API reference
// shows, and as DynamoDB does about a table without users, "newer" that of a later version. It tells the region and the action, or
// the table, of each request.
func inAWS(t testing.TB) (environment []string, asked chan string) {
	t.Helper()
	ours, err := os.ReadFile("testdata/stack.xml")
	must(t, err)
	asked = make(chan string, 100)
	region := regexp.MustCompile(`Credential=\w+/\d+/([^/]+)/`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		what := string(body)
		var query struct{ TableName string }
		switch {
		case json.Unmarshal(body, &query) == nil:
			what = query.TableName
			answer := `{"Count":0,"Items":[]}`
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
				format := map[bool]int{false: table.Format, true: table.Format + 1}[what == "newer"]
				answer = fmt.Sprintf(
					`{"Item":{"pk":{"S":"format"},"sk":{"S":"format"},"v":{"N":"%d"},"version":{"S":"v9.8.7"}}}`, format,
				)
			}
			w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(answer))))
			io.WriteString(w, answer)
		case strings.Contains(what, "StackName=ours"):
			w.Write(ours)
		case strings.Contains(what, "StackName=begun"):
			strings.NewReplacer("UPDATE_COMPLETE", "CREATE_IN_PROGRESS", "TableName", "Other").
				WriteString(w, string(ours))
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(
				w,
				`<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>`+
					`<Code>ValidationError</Code><Message>Stack with id none does not exist</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
			)
		}
		asked <- region.FindStringSubmatch(r.Header.Get("Authorization"))[1] + " " + what
	}))
	t.Cleanup(s.Close)
	return append(strings.Fields("AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret AWS_EC2_METADATA_DISABLED=true "+
		"AWS_REGION= AWS_DEFAULT_REGION= AWS_PROFILE= AWS_ENDPOINT_URL_DYNAMODB="),
		"AWS_ENDPOINT_URL="+s.URL, "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull), asked
}

// TestAStackSaysHowLongItKeepsFiles compares what a sweep gets.
func TestAStackSaysHowLongItKeepsFiles(t *testing.T) {
	environment, _ := inAWS(t)
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	const names = "ours r ours-Table-1 ours-files ours-backup /ferry/ours/link-key true "
	for flags, want := range map[string]string{
		"": "7 0 GLACIER_IR",
		" --keep-days 9 --backup-storage-class STANDARD": "9 0 STANDARD",
	} {
		var all struct {
			Sweep operator.Sweep `cmd:""`
		}
		k, err := kong.Must(&all, vars()).Parse(strings.Fields("sweep --stack ours --region r" + flags))
		must(t, err)
		must(t, operator.FromStack(t.Context(), k))
		set, err := settings(k)
		must(t, err)
		s := all.Sweep.Store
		if got := fmt.Sprint(
			s.Stack,
			" ",
			s.Region,
			" ",
			s.Table,
			" ",
			s.FilesBucket,
			" ",
			s.BackupBucket,
			" ",
			s.KeyParameter,
			" ",
			s.Events,
			" ",
			set.Retention.KeepDays,
			" ",
			set.Retention.BackupDays,
			" ",
			set.BackupClass,
		); got != names+want {
			t.Errorf("%q: %s, want %s", flags, got, names+want)
		}
	}
}

// TestAStackSaysWhereInvitationsLead compares what ferry user add gets.
func TestAStackSaysWhereInvitationsLead(t *testing.T) {
	environment, _ := inAWS(t)
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	for flags, want := range map[string]string{
		"": "https://files.example.com/v1", " --public-url https://other.example.com/v1": "https://other.example.com/v1",
	} {
		k, err := kong.Must(&commands{}, vars()).Parse(strings.Fields("user add ann --stack ours --region r" + flags))
		must(t, err)
		must(t, operator.FromStack(t.Context(), k))
		set, err := settings(k)
		if err != nil || set.PublicURL != want {
			t.Errorf("%q: %s, %v, want %s", flags, set.PublicURL, err, want)
		}
	}
}
