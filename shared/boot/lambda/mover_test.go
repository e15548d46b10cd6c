package lambda_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/lambda"
)

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
