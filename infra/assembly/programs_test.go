package assembly_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"ferry/infra/assembly"
	"ferry/infra/lambdahost"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/fixture"

	"ferry/shared/notify"
)

// programsVariable tells the tests where TestMain has put the programs.
const programsVariable = "FERRY_TEST_PROGRAMS"

func programs() string { return os.Getenv(programsVariable) }

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ferry-programs-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = assembly.Build(context.Background(), "../..", dir)
	}
	if err == nil {
		err = os.Setenv(programsVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestEachProgramAnswersItsFixture runs each function's real program with the
// environment that the template gives it, and looks at what it has done.
func TestEachProgramAnswersItsFixture(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			it := fixtureStack(t, f)
			result, err := it.Hosts[f.Function].Invoke(t.Context(), it.Event())
			if err != nil || result.Failed != "" {
				t.Fatalf("%v, %s: %s", err, result.Failed, result.Payload)
			}
			if err := it.Check(result.Payload); err != nil {
				t.Error(err)
			}
			if look := effects()[f.Name]; look != nil {
				look(t, it)
			}
			t.Logf("init %s, answer %s, %d bytes, peak memory %d MiB", result.Init, result.Took, len(result.Payload), result.Peak>>20)
		})
	}
}

// effects are what the programs do besides their answers.
func effects() map[string]func(*testing.T, *assembly.Fixtures) {
	return map[string]func(*testing.T, *assembly.Fixtures){
		"relay": isQueued,
		"email": func(t *testing.T, it *assembly.Fixtures) { wantNotice(t, it, fixture.MailNotice, notify.Sent) },
		"sms":   func(t *testing.T, it *assembly.Fixtures) { wantNotice(t, it, fixture.TextNotice, notify.Sent) },
		"feedback": func(t *testing.T, it *assembly.Fixtures) {
			wantNotice(t, it, fixture.MailNotice, notify.Failed)
		},
		"feedbacksms": func(t *testing.T, it *assembly.Fixtures) {
			if n := wantNotice(t, it, fixture.TextNotice, notify.Sent); n.Delivered == 0 {
				t.Error("it was not delivered")
			}
		},
	}
}

func wantNotice(t *testing.T, it *assembly.Fixtures, id string, want notify.State) notify.Notice {
	t.Helper()
	found, err := notify.States(t.Context(), it.Data.Table, []string{id})
	if err != nil || len(found) != 1 || found[0].State() != want || found[0].Provider == "" {
		t.Fatalf("the notice is %+v, %v, want %s", found, err, want)
	}
	return found[0]
}

// isQueued fails unless the message of events/email.json has come to its queue.
func isQueued(t *testing.T, it *assembly.Fixtures) {
	t.Helper()
	var want events.SQSEvent
	boottest.Load(t, "email").Decode(t, &want)
	got, err := it.Messages.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(it.Messages.Values["MailQueue"])})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].Body != want.Records[0].Body {
		t.Errorf("the queue has %+v, %v, want %s", got, err, want.Records[0].Body)
	}
}

func TestTheProgramOfTheLinkKeyStoresASecret(t *testing.T) {
	t.Parallel()
	f, err := fixture.Load(boottest.Root(t), "linkkey")
	if err != nil {
		t.Fatal(err)
	}
	it := fixtureStack(t, f)
	environment, err := it.Environment(f.Function)
	if err != nil {
		t.Fatal(err)
	}
	environment["AWS_ENDPOINT_URL_SSM"] = os.Getenv("AWS_ENDPOINT_URL_SNS") // it has a Parameter Store too
	host := lambdahost.New(lambdahost.Function{Name: f.Function, Program: filepath.Join(programs(), f.Function), Environment: environment, Log: t.Output()})
	end(t, host)
	cfg, err := awsconfig.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := ssm.NewFromConfig(cfg, func(o *ssm.Options) { o.BaseEndpoint = aws.String(environment["AWS_ENDPOINT_URL_SSM"]) })
	var first string
	for range 2 { // with the first key all links are made
		result, err := host.Invoke(t.Context(), it.Event())
		if err == nil {
			err = it.Check(result.Payload)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &it.KeyParameter, WithDecryption: aws.Bool(true)})
		if err != nil || got.Parameter.Type != "SecureString" || len(*got.Parameter.Value) != len(fixture.Key) || first != "" && first != *got.Parameter.Value {
			t.Fatalf("stored is %+v, %v", got, err)
		}
		first = *got.Parameter.Value
	}
}

func TestTheLogHasMetricsWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"on": true, "off": false} {
		it := stackWith(t, map[string]string{"Metrics": value})
		environment, err := it.Environment("health")
		if err != nil {
			t.Fatal(err)
		}
		var log safeBuffer
		host := lambdahost.New(lambdahost.Function{Name: "health", Program: filepath.Join(programs(), "health"), Environment: environment, Log: &log})
		if _, err := host.Invoke(t.Context(), boottest.Load(t, "health").Event); err != nil {
			t.Fatal(err)
		}
		if err := host.Close(); err != nil { // now all is written
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), `"Requests":1,`) && strings.Contains(log.String(), `"Namespace":"Ferry"`); got != want {
			t.Errorf("with Metrics %s the log is %s", value, log.String())
		}
	}
}

// safeBuffer takes what a process writes.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
