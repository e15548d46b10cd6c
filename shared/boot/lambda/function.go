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
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/service"
)

// Run runs an endpoint with the ports that it needs. It does not return.
func Run(e api.Endpoint, ports ...Opener) {
	f := Open(os.Getenv, ports...)
	lambda.Start(f.Gateway(f.Handler(e)))
}

// Function is a Lambda function.
type Function struct {
	cloud   *Cloud
	ports   *service.Ports // complete once the cloud has begun
	service func() *service.Service
}

// Open is New for a main: it exits if the function cannot start.
func Open(getenv func(string) string, ports ...Opener) *Function {
	f, err := New(getenv, ports...)
	if err != nil {
		slog.New(slog.NewJSONHandler(os.Stdout, nil)).
			Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	return f
}

// New opens the ports of a function; getenv is like os.Getenv. FERRY_METRICS is the
// stack's name if the log must have metrics. New makes no call, so that a function is
// ready for its first event as early as possible.
func New(getenv func(string) string, ports ...Opener) (*Function, error) {
	set, err := service.ReadSettings(getenv)
	if err != nil {
		return nil, err
	}
	cloud := &Cloud{Getenv: getenv}
	if len(ports) > 0 {
		cloud = NewCloud(getenv)
	}
	cloud.Settings = set
	p, err := cloud.Ports(ports...)
	p.LinkMemory = time.Second // no function both serves downloads and ends links
	if stack := getenv("FERRY_METRICS"); stack != "" {
		p.Log = slog.New(&MetricsHandler{p.Log.Handler(), stack})
	}
	made := sync.OnceValue(func() *service.Service { return service.New(*p, cloud.Settings) })
	return &Function{cloud: cloud, ports: p, service: made}, err
}

// With returns a Function of a service that was made elsewhere, as in tests.
func With(s *service.Service) *Function {
	return &Function{
		cloud:   &Cloud{Settings: s.Settings},
		ports:   &s.Ports,
		service: func() *service.Service { return s },
	}
}

// Service returns the service. Before the first time it makes the calls that the ports need; after an
// error the next call tries again.
func (f *Function) Service(ctx context.Context) (*service.Service, error) {
	if err := f.cloud.Begin(ctx); err != nil {
		return nil, fmt.Errorf("preparing the function: %w", err)
	}
	return f.service(), nil
}

// Handler returns the endpoint's handler, made on the first request for which there is a service.
func (f *Function) Handler(e api.Endpoint) http.Handler {
	made := sync.OnceValue(func() http.Handler {
		p := &api.Ports{Service: f.service()}
		// The gateway has already chosen the route, and what matches none goes to a separate
		// function, whose endpoint has no routes.
		if len(e.Routes) == 0 {
			return e.New(p)
		}
		return e.Handler(
			p,
			f.refuse(fault.New(fault.NotFound, "there is nothing at this address")),
		)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := f.Service(r.Context()); err != nil {
			f.refuse(err).ServeHTTP(w, r)
			return
		}
		made().ServeHTTP(w, r)
	})
}

// refuse returns a handler that answers with an error as the endpoints do. It needs no service.
func (f *Function) refuse(err error) http.Handler {
	outlet := envelope.Outlet{
		Now:  f.ports.Now,
		Log:  f.ports.Log,
		Base: api.Base(f.cloud.Settings),
	}
	return outlet.Handler(func(http.ResponseWriter, *http.Request) error { return err })
}
