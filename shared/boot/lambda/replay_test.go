package lambda_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
)

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
