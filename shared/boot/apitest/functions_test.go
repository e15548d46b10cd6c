package apitest_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/wire"
)

// functions answers through the gateway's events, as in the cloud. What no function has, the
// one process answers: parts, which go to the store, and local requests.
func (f *frozen) functions(whole http.Handler) http.Handler {
	p := f.Service.Service
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, wire.Prefix)
		_, here := f.step.do.(localRequest)
		if here || r.Method == api.PartRoute.Method && api.PartRoute.Fits(path) {
			whole.ServeHTTP(w, r)
			return
		}
		answer, err := lambda.With(p).
			Gateway(lambda.With(p).Handler(endpointOf(r.Method, r.URL.Path)))(r.Context(), f.event(r))
		check(f, err)
		for name, values := range answer.MultiValueHeaders {
			w.Header()[name] = values
		}
		if path != r.URL.Path { // the gateway does this
			w.Header()["Vary"] = append([]string{"Origin"}, w.Header()["Vary"]...)
		}
		text, err := boottest.Body(answer)
		check(f, err)
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(text) // HEAD has none
	})
}

// endpointOf returns the endpoint of a request, as the gateway finds it.
func endpointOf(method, path string) (found api.Endpoint) {
	for _, e := range local.Endpoints() {
		below, ok := strings.CutPrefix(path, e.Prefix)
		fits := ok &&
			slices.ContainsFunc(e.Routes, func(r api.Route) bool { return r.Method == method && r.Fits(below) })
		if fits || e.Name == "notfound" && found.Name == "" {
			found = e
		}
	}
	return found
}

// event is what the gateway makes of a request.
func (f *frozen) event(r *http.Request) events.APIGatewayProxyRequest {
	body, err := io.ReadAll(r.Body)
	check(f, err)
	query, err := url.ParseQuery(r.URL.RawQuery)
	check(f, err)
	caller, _, err := net.SplitHostPort(r.RemoteAddr)
	check(f, err)
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	return events.APIGatewayProxyRequest{
		HTTPMethod: r.Method, Path: r.URL.Path, MultiValueHeaders: header, MultiValueQueryStringParameters: query,
		StageVariables: map[string]string{"corsOrigins": "https://app.example"},
		RequestContext: events.APIGatewayProxyRequestContext{
			RequestID: fmt.Sprintf("abcdef%010x",
				len(f.ids)), Identity: events.APIGatewayRequestIdentity{SourceIP: caller},
		},
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
	}
}
