package lambda

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"ferry/shared/api"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/wire"
)

// maxPlain is the size in bytes above which every response body is sent as base64. As
// text in JSON, a file of 4 MB may grow sixfold, beyond Lambda's limit of 6 MB.
const maxPlain = 16 << 10

// EventHandler handles an event of the API gateway in payload format 1.0.
type EventHandler func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// Gateway adapts an http.Handler to the gateway's events. It always answers: a panic,
// even one that a handler uses to abort its response, becomes the 500 envelope.
func (f *Function) Gateway(h http.Handler) EventHandler {
	return func(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ctx = fault.WithLogID(ctx, e.RequestContext.RequestID)
		ctx = api.WithBase(ctx, address(e.RequestContext))
		ctx = envelope.WithOrigins(ctx, origins(e.StageVariables))
		e.Path = escaped(e.Path)
		// Without well-formed variables there is no proxy.
		proxy, _ := envelope.ParseProxy(
			e.StageVariables["clientHeader"],
			e.StageVariables["proxySecret"],
		)
		err := decodeBody(&e)
		var response events.APIGatewayProxyResponse
		if err == nil {
			response, err = recovered(ctx, httpadapter.New(proxy.Handler(h)), e)
		}
		if err != nil {
			e.Body, e.IsBase64Encoded = "", false
			adapter := httpadapter.New(proxy.Handler(f.refuse(err)))
			if response, err = adapter.ProxyWithContext(ctx, e); err != nil { // the event is not even a valid request
				return adapter.ProxyWithContext(ctx, events.APIGatewayProxyRequest{
					HTTPMethod: http.MethodGet,
					Path:       e.Path,
				})
			}
		}
		return packed(e.HTTPMethod, response), nil
	}
}

func recovered(
	ctx context.Context,
	a *httpadapter.HandlerAdapter,
	e events.APIGatewayProxyRequest,
) (response events.APIGatewayProxyResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	response, err = a.ProxyWithContext(ctx, e)
	if err == nil && response.StatusCode < 200 {
		err = fmt.Errorf("the handler answered with status %d", response.StatusCode)
	}
	return response, err
}

// address returns the URL of the gateway: its own host name, which no caller can
// choose, and the stage unless it is the default one.
func address(r events.APIGatewayProxyRequestContext) string {
	if r.DomainName == "" {
		return ""
	}
	base := "https://" + r.DomainName
	if r.Stage != "" && r.Stage != "$default" {
		base += "/" + r.Stage
	}
	return base + wire.Prefix
}

// origins returns the origins that the gateway allows. A stage variable cannot contain *.
func origins(stage map[string]string) envelope.Origins {
	if stage["corsOrigins"] == "any" {
		return envelope.Origins{"*"}
	}
	o, _ := envelope.ParseOrigins(stage["corsOrigins"]) // a malformed value allows nothing
	return o
}

// escaped encodes a path again: an HTTP API sends it decoded. Otherwise the adapter
// would take a question mark for the start of a query, fail at a percent sign, and
// log the URL with its query, which contains tokens.
func escaped(path string) string {
	return (&url.URL{Path: "/" + strings.TrimPrefix(path, "/")}).EscapedPath()
}

// decodeBody turns the body into what the client sent, and refuses a body or an address that the
// gateway has damaged. The gateway sends text as a JSON string, in which bytes that are not UTF-8
// are replaced.
func decodeBody(e *events.APIGatewayProxyRequest) error {
	address := e.Path + fmt.Sprint(
		e.MultiValueQueryStringParameters["file"],
		e.MultiValueQueryStringParameters["bundle"],
	)
	if strings.Contains(address, url.PathEscape("\ufffd")) ||
		strings.ContainsRune(address, utf8.RuneError) {
		return fault.New(
			fault.Invalid, "the address must be UTF-8: the gateway has replaced other bytes",
		)
	}
	if e.IsBase64Encoded {
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return errors.New("the gateway's event has a body that is not base64")
		}
		e.Body, e.IsBase64Encoded = string(body), false
		return nil
	}
	damaged := strings.ContainsRune(e.Body, utf8.RuneError)
	for name, values := range e.MultiValueHeaders {
		if strings.EqualFold(name, "Content-Length") && len(values) > 0 {
			if length, err := strconv.Atoi(values[0]); err == nil {
				damaged = length != len(e.Body)
			}
		}
	}
	if damaged {
		return fault.New(
			fault.Unsupported, "a body of this Content-Type must be UTF-8; send it as application/octet-stream or as a form",
		)
	}
	return nil
}

// packed prepares a response for its way through Lambda and the gateway.
func packed(method string, r events.APIGatewayProxyResponse) events.APIGatewayProxyResponse {
	if method == http.MethodHead {
		r.Body, r.IsBase64Encoded = "", false
	}
	if !r.IsBase64Encoded && len(r.Body) > maxPlain {
		r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(r.Body)), true
	}
	return r
}
