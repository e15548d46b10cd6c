// Package lambda runs an endpoint as a Lambda function: it takes settings and ports
// from the environment, and turns the API gateway's events into requests. Start
// reading with Run.
package lambda

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/api"
	"ferry/shared/fault"
)

// Run runs an endpoint with the ports that it needs. It does not return.
func Run(e api.Endpoint, ports ...Opener) {
	f := Open(os.Getenv, ports...)
	lambda.Start(Gateway(f.Handler(e), f.Ports))
}

// Function has the ports of a Lambda function. They can be used after Begin.
type Function struct {
	Ports *api.Ports
	cloud *Cloud
}

// Open is New for a main: it exits if the function cannot start.
func Open(getenv func(string) string, ports ...Opener) *Function {
	f, err := New(getenv, ports...)
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	return f
}

// New opens the ports of a function; getenv is like os.Getenv. FERRY_METRICS is the
// stack's name if the log must have metrics. New makes no call, so that a function is
// ready for its first event as early as possible.
func New(getenv func(string) string, ports ...Opener) (*Function, error) {
	set, err := api.ReadSettings(getenv)
	if err != nil {
		return nil, err
	}
	cloud := &Cloud{Getenv: getenv}
	if len(ports) > 0 {
		cloud = NewCloud(getenv)
	}
	p, err := cloud.Ports(set, ports...)
	p.LinkMemory = time.Second // no function both serves downloads and ends links
	if stack := getenv("FERRY_METRICS"); stack != "" {
		p.Log = slog.New(&MetricsHandler{p.Log.Handler(), stack})
	}
	return &Function{Ports: p, cloud: cloud}, err
}

// With returns a Function whose ports were opened elsewhere, as in tests.
func With(p *api.Ports) *Function { return &Function{Ports: p, cloud: &Cloud{}} }

// Begin makes the calls that must come before the ports are used. Once it has returned
// nil it does nothing more; after an error the next call tries again.
func (f *Function) Begin(ctx context.Context) error { return f.cloud.Begin(ctx) }

// Handler returns the endpoint's handler, made on the first request for which Begin
// succeeds.
func (f *Function) Handler(e api.Endpoint) http.Handler {
	made := sync.OnceValue(func() http.Handler {
		// The gateway has already chosen the route, and what matches none goes to a separate
		// function, whose endpoint has no routes.
		if len(e.Routes) == 0 {
			return e.New(f.Ports)
		}
		return e.Handler(f.Ports, answer(f.Ports, fault.New(fault.NotFound, "there is nothing at this address")))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f.Begin(r.Context()); err != nil {
			answer(f.Ports, fmt.Errorf("preparing the function: %w", err)).ServeHTTP(w, r)
			return
		}
		made().ServeHTTP(w, r)
	})
}

// answer returns a handler that answers with an error as the endpoints do.
func answer(p *api.Ports, err error) http.Handler {
	return p.Outlet().Handler(func(http.ResponseWriter, *http.Request) error { return err })
}
