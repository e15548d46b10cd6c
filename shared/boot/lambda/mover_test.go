package lambda_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/lambda"
)

const mover = "arn:aws:lambda:eu-south-1:123456789012:function:ferry-Sweep-1A2B3C:live"

func TestAMoverIsInvokedAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	status := http.StatusAccepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/2015-03-31/functions/"+mover+"/invocations" || r.Header.Get("X-Amz-Invocation-Type") != "Event" ||
			string(body) != `{"move":{"owner":"alice","id":17}}` || !strings.Contains(r.Header.Get("Authorization"), "/eu-south-1/lambda/aws4_request") {
			t.Errorf("asked was %s %v: %s", r.URL.Path, r.Header, body)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	values := keyedBy("")
	values["AWS_ENDPOINT_URL_LAMBDA"], values["FERRY_MOVER"] = server.URL, mover
	cloud, err := lambda.NewCloud(environment(values))
	check(t, err)
	p, err := cloud.Ports(api.Settings{}, lambda.Mover)
	check(t, err)
	check(t, p.Mover(t.Context(), "alice", 17))
	status = http.StatusTooManyRequests
	if err := p.Mover(t.Context(), "alice", 17); err == nil {
		t.Error("a refusal is no error")
	}
}
