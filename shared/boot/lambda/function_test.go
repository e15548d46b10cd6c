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
	"ferry/shared/api/file"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestAFunctionWithoutPortsNeedsNothingFromAWS(t *testing.T) {
	t.Parallel()
	for stack, metrics := range map[string]bool{"": false, "ferry": true} {
		f, err := lambda.New(environment(map[string]string{"FERRY_METRICS": stack}))
		apitest.Must(t, err)
		if r := send(t, f.Handler(named(t, "openapi")), f.Ports, load(t, "openapi")); r.StatusCode != 200 {
			t.Errorf("status %d: %s", r.StatusCode, r.Body)
		}
		if p := f.Ports; p.CountWait <= 0 || p.CountWait > 50*time.Millisecond || p.LinkMemory <= 0 || p.LinkMemory > time.Second {
			t.Errorf("a count waits for %s, and a link is remembered for %s", p.CountWait, p.LinkMemory)
		}
		if _, got := f.Ports.Log.Handler().(*lambda.MetricsHandler); got != metrics {
			t.Errorf("for the stack %q the log has metrics: %v", stack, got)
		}
	}
}

func TestAFunctionDoesNotStartWithWrongSettings(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]map[string]string{
		"a setting":   {"FERRY_MAX_BODY": "4 MB"},
		"credentials": {},
	} {
		open := func(*lambda.Cloud, *api.Ports) {}
		if _, err := lambda.New(environment(values), open); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	keys := map[string]string{"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s", "FERRY_SMS_COUNTRIES": "UK"}
	if _, err := lambda.New(environment(keys), lambda.Check(file.CheckCountries)); err == nil || !strings.Contains(err.Error(), "no country UK") {
		t.Errorf("a country that does not exist: %v", err)
	}
}

func TestAFunctionThatCannotBeginAnswersAndTriesAgain(t *testing.T) {
	t.Parallel()
	local := boottest.Ports(t, nil)
	calls := 0
	f, err := lambda.New(environment(map[string]string{"AWS_REGION": "r", "AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s"}),
		func(c *lambda.Cloud, p *api.Ports) {
			p.Table = local.Table
			c.First(func(context.Context) error {
				if calls++; calls == 1 {
					return errors.New("the parameter store is not there")
				}
				p.Key = local.Key
				return nil
			})
		})
	apitest.Must(t, err)
	f.Ports.Log, f.Ports.Hasher, f.Ports.Throttle = local.Log, local.Hasher, local.Throttle
	h := f.Handler(named(t, "downloadlist"))
	event := load(t, "downloadlist")
	if r := send(t, h, f.Ports, event); r.StatusCode != 500 || strings.Contains(r.Body, "parameter") {
		t.Errorf("the first request: status %d: %s", r.StatusCode, r.Body)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if r := send(t, h, f.Ports, event); r.StatusCode != 200 || !strings.Contains(r.Body, envelope.List) {
				t.Errorf("a later request: status %d: %s", r.StatusCode, r.Body)
			}
		})
	}
	wg.Wait()
	apitest.Equal(t, "calls", calls, 2)
}

func TestEveryEventGetsItsExpectedResponse(t *testing.T) {
	t.Parallel()
	for _, e := range local.Endpoints() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			fixture := boottest.Load(t, e.Name)
			var event events.APIGatewayProxyRequest
			fixture.Decode(t, &event)
			response := call(t, e, boottest.Ports(t, nil), event)
			answer, err := json.Marshal(response)
			if err != nil || fixture.Expect.Status == 0 {
				t.Fatalf("the fixture expects status %d, or error %v", fixture.Expect.Status, err)
			}
			apitest.Must(t, fixture.Expect.Check(answer))
		})
	}
}

// call sends an endpoint an event in the way its function gets it.
func call(t testing.TB, e api.Endpoint, p *api.Ports, event events.APIGatewayProxyRequest) events.APIGatewayProxyResponse {
	t.Helper()
	return send(t, lambda.With(p).Handler(e), p, event)
}

func send(t testing.TB, h http.Handler, p *api.Ports, event events.APIGatewayProxyRequest) events.APIGatewayProxyResponse {
	t.Helper()
	response, err := lambda.Gateway(h, p)(t.Context(), event)
	apitest.Must(t, err)
	return response
}

func body(t testing.TB, r events.APIGatewayProxyResponse) []byte {
	t.Helper()
	b, err := boottest.Body(r)
	apitest.Must(t, err)
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
		if r.URL.EscapedPath() != "/2015-03-31/functions/"+escaped+"/invocations" || r.Header.Get("X-Amz-Invocation-Type") != "Event" ||
			string(body) != `{"move":{"owner":"alice","id":17}}` || !strings.Contains(r.Header.Get("Authorization"), "/eu-south-1/lambda/aws4_request") {
			t.Errorf("asked was %s %v: %s", r.URL.Path, r.Header, body)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	values := keyedBy("")
	values["AWS_ENDPOINT_URL_LAMBDA"], values["FERRY_MOVER"] = server.URL, mover
	cloud := lambda.NewCloud(environment(values))
	p, err := cloud.Ports(api.Settings{}, lambda.Mover)
	apitest.Must(t, err)
	apitest.Must(t, p.Mover(t.Context(), "alice", 17))
	for code, want := range map[int]int{http.StatusServiceUnavailable: 2, http.StatusForbidden: 1} {
		status, asked = code, 0
		if err := p.Mover(t.Context(), "alice", 17); err == nil || asked != want {
			t.Errorf("the status %d gives %v after %d calls, want %d", code, err, asked, want)
		}
	}
}
