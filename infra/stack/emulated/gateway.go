package emulated

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/boot/boottest"
)

const (
	// maxBody is the limit in bytes of a body
	// (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html).
	maxBody = 10 << 20
	// integrationTimeout is how long the gateway waits for a function: ten times as long as AWS's,
	// because each function also gets ten times its timeout (moreTime). A machine with few
	// processors can be slow.
	integrationTimeout, moreTime = 300 * time.Second, 10
	// atOnce is how many requests run functions at a time. The others wait, because each would
	// start a new process.
	atOnce = 8
	// defaultRoute takes the requests that match no other route.
	defaultRoute = "$default"
)

// route sends requests to a function. The path has {name} for a variable part.
type route struct {
	method, path string
	function     string // its name in the template
}

// invoker sends a function an event and waits for the answer. The function's own
// errors are in the Result.
type invoker func(ctx context.Context, event []byte) (Result, error)

// gateway is an HTTP API with the $default stage: it turns each request into an
// event of payload format 1.0, and each answer into a response
// (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html).
func gateway(routes []route, functions map[string]invoker, turns chan struct{}) http.Handler {
	mux := http.NewServeMux()
	fallback := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound)
	}))
	for _, r := range routes {
		handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			forward(w, req, inTurn(turns, functions[r.function]))
		})
		if r.path == defaultRoute {
			fallback = handler
			continue
		}
		if r.path == "/" {
			r.path = "/{$}" // Go's / matches everything
		}
		mux.Handle(r.method+" "+r.path, handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, pattern := mux.Handler(req)
		// Unlike Go, the gateway does not match HEAD with GET, nor clean a path.
		method, _, _ := strings.Cut(pattern, " ")
		if pattern == "" || method != req.Method || path.Clean(req.URL.Path) != req.URL.Path {
			fallback.ServeHTTP(w, req)
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// inTurn lets requests call a function when it is their turn, and limits how long the call takes.
func inTurn(turns chan struct{}, invoke invoker) invoker {
	return func(ctx context.Context, event []byte) (Result, error) {
		turns <- struct{}{}
		defer func() { <-turns }()
		ctx, cancel := context.WithTimeout(ctx, integrationTimeout)
		defer cancel()
		return invoke(ctx, event)
	}
}

// forward lets a function answer; it runs to its end even if the client disconnects.
func forward(w http.ResponseWriter, r *http.Request, invoke invoker) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var event []byte
	if err == nil {
		event, err = json.Marshal(gatewayEvent(r, body))
	}
	var result Result
	if err == nil {
		result, err = invoke(context.WithoutCancel(r.Context()), event)
	}
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large || errors.Is(err, errEventTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge)
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusServiceUnavailable)
	case err != nil || result.Failed != "":
		log.Printf("%s %s: error %v, function error %q: %.500s",
			r.Method, r.URL.Path, err, result.Failed, result.Payload)
		refuse(w, http.StatusInternalServerError)
	default:
		respond(w, r, result.Payload)
	}
}

// refuse sends one of the gateway's own answers.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"message":%q}`, http.StatusText(status))
}

func respond(w http.ResponseWriter, r *http.Request, payload []byte) {
	var answer events.APIGatewayProxyResponse
	var body []byte
	err := json.Unmarshal(payload, &answer)
	if err == nil {
		body, err = boottest.Body(answer)
	}
	if err != nil || answer.StatusCode == 0 {
		refuse(w, http.StatusInternalServerError)
		return
	}
	for name, values := range answer.MultiValueHeaders {
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	w.WriteHeader(answer.StatusCode)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that has gone needs no answer
	}
}

// gatewayEvent returns those parts of a request's event that the functions read. The body was already read.
func gatewayEvent(r *http.Request, body []byte) events.APIGatewayProxyRequest {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	header.Set("X-Forwarded-For", host)
	header.Set("X-Forwarded-Proto", "http")
	header.Set("Content-Length", fmt.Sprint(len(body)))
	header.Del("Expect")
	e := events.APIGatewayProxyRequest{
		Path:                            r.URL.Path,
		HTTPMethod:                      r.Method,
		Body:                            string(body),
		MultiValueHeaders:               header,
		MultiValueQueryStringParameters: parameters(r.URL.RawQuery),
		RequestContext: events.APIGatewayProxyRequestContext{
			Stage:     "$default",
			RequestID: rand.Text(),
			Identity:  events.APIGatewayRequestIdentity{SourceIP: host},
		},
	}
	if !isText(r.Header.Get("Content-Type")) { // as in the gateway, text that is not UTF-8 is damaged
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

// parameters reads a query. Only & separates its parts, and a part that cannot be unescaped stays as it is.
func parameters(query string) url.Values {
	all := url.Values{}
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name = unescaped(name); name != "" {
			all.Add(name, unescaped(value))
		}
	}
	return all
}

func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

var textual = regexp.MustCompile(`^(text/.*|application/(json|xml|javascript)|.*\+(json|xml))$`)

// isText reports whether the gateway passes a body on as a string.
func isText(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return textual.MatchString(kind)
}
