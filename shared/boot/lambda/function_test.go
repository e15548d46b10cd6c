package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/service"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestAFunctionWithoutPortsNeedsNothingFromAWS(t *testing.T) {
	t.Parallel()
	for stack, metrics := range map[string]bool{"": false, "ferry": true} {
		f, err := lambda.New(environment(map[string]string{"FERRY_METRICS": stack}))
		expect.NoErr(t, err)
		if r := sendTo(t, f, f.Handler(named(t, "openapi")), load(t, "openapi")); r.StatusCode != 200 {
			t.Errorf("status %d: %s", r.StatusCode, r.Body)
		}
		p, err := f.Service(t.Context())
		expect.NoErr(t, err)
		if p.CountWait <= 0 || p.CountWait > 50*time.Millisecond || p.LinkMemory <= 0 || p.LinkMemory > time.Second {
			t.Errorf("a count waits for %s, and a link is remembered for %s", p.CountWait, p.LinkMemory)
		}
		if _, got := p.Log.Handler().(*lambda.MetricsHandler); got != metrics {
			t.Errorf("for the stack %q the log has metrics: %v", stack, got)
		}
	}
}

func TestAFunctionDoesNotStartWithWrongSettings(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{
		"FERRY_BACKUP_STORAGE_CLASS": "DEEP_ARCHIVE",
		"FERRY_SMS_COUNTRIES":        "UK",
	} {
		set := credentials()
		set[variable] = value
		if _, err := lambda.New(environment(set), lambda.Check(param.CheckCountries)); err == nil ||
			!strings.Contains(err.Error(), value) {
			t.Errorf("with %s=%s: %v", variable, value, err)
		}
	}
}

func TestAFunctionThatCannotBeginAnswersAndTriesAgain(t *testing.T) {
	t.Parallel()
	local := boottest.Service(t, nil)
	calls := 0
	f, err := lambda.New(environment(credentials()),
		func(c *lambda.Cloud, p *service.Ports) {
			p.Table, p.Log, p.Hasher, p.Tries = local.Table, local.Log, local.Hasher, local.Tries
			c.First(func(context.Context) error {
				if calls++; calls == 1 {
					return errors.New("the parameter store is not there")
				}
				p.Key = local.Key
				return nil
			})
		})
	expect.NoErr(t, err)
	h := f.Handler(named(t, "downloadlist"))
	event := load(t, "downloadlist")
	if r := sendTo(t, f, h, event); r.StatusCode != 500 || strings.Contains(r.Body, "parameter") {
		t.Errorf("the first request: status %d: %s", r.StatusCode, r.Body)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if r := sendTo(t, f, h, event); r.StatusCode != 200 || !strings.Contains(r.Body, envelope.List) {
				t.Errorf("a later request: status %d: %s", r.StatusCode, r.Body)
			}
		})
	}
	wg.Wait()
	expect.Equal(t, "calls", calls, 2)
}

func TestEveryEventGetsItsExpectedResponse(t *testing.T) {
	t.Parallel()
	for _, e := range local.Endpoints() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			fixture := boottest.Load(t, e.Name)
			var event events.APIGatewayProxyRequest
			fixture.Decode(t, &event)
			response := call(t, e, boottest.Service(t, nil), event)
			answer, err := json.Marshal(response)
			if err != nil || fixture.Expect.Status == 0 {
				t.Fatalf("the fixture expects status %d, or error %v", fixture.Expect.Status, err)
			}
			expect.NoErr(t, fixture.Expect.Check(answer))
		})
	}
}

// call sends an endpoint an event in the way its function gets it.
func call(
	t testing.TB,
	e api.Endpoint,
	p *service.Service,
	event events.APIGatewayProxyRequest,
) events.APIGatewayProxyResponse {
	t.Helper()
	f := lambda.With(p)
	return sendTo(t, f, f.Handler(e), event)
}

func send(
	t testing.TB,
	h http.Handler,
	p *service.Service,
	event events.APIGatewayProxyRequest,
) events.APIGatewayProxyResponse {
	t.Helper()
	return sendTo(t, lambda.With(p), h, event)
}

func sendTo(
	t testing.TB,
	f *lambda.Function,
	h http.Handler,
	event events.APIGatewayProxyRequest,
) events.APIGatewayProxyResponse {
	t.Helper()
	response, err := f.Gateway(h)(t.Context(), event)
	expect.NoErr(t, err)
	return response
}

func body(t testing.TB, r events.APIGatewayProxyResponse) []byte {
	t.Helper()
	b, err := boottest.Body(r)
	expect.NoErr(t, err)
	return b
}

func named(t testing.TB, name string) api.Endpoint {
	t.Helper()
	for _, e := range local.Endpoints() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("there is no endpoint %s", name)
	return api.Endpoint{}
}

const mover = "arn:aws:lambda:eu-south-1:123456789012:function:ferry-Sweep-1A2B3C:live"

func TestAMoverIsInvokedAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	status, asked := http.StatusAccepted, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		escaped := strings.ReplaceAll(mover, ":", "%3A") // as the SDK does, so that the signature is right
		if r.URL.EscapedPath() != "/2015-03-31/functions/"+escaped+"/invocations" ||
			r.Header.Get("X-Amz-Invocation-Type") != "Event" ||
			string(body) != `{"move":{"owner":"alice","id":17}}` ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-south-1/lambda/aws4_request") {
			t.Errorf("asked was %s %v: %s", r.URL.Path, r.Header, body)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	values := keyedBy("")
	values["AWS_ENDPOINT_URL_LAMBDA"], values["FERRY_MOVER"] = server.URL, mover
	cloud := lambda.NewCloud(environment(values))
	p, err := cloud.Ports(lambda.Mover)
	expect.NoErr(t, err)
	expect.NoErr(t, p.Mover(t.Context(), nil, "alice", 17))
	for code, want := range map[int]int{http.StatusServiceUnavailable: 2, http.StatusForbidden: 1} {
		status, asked = code, 0
		if err := p.Mover(t.Context(), nil, "alice", 17); err == nil || asked != want {
			t.Errorf("the status %d gives %v after %d calls, want %d", code, err, asked, want)
		}
	}
}
