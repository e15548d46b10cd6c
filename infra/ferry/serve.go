package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"ferry/shared/boot"
	"ferry/shared/boot/local"
	"ferry/shared/table/sqlite"

	"ferry/shared/envelope"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/mail/smtp"
	"ferry/shared/notify/webhook"

	"ferry/shared/api"
)

const (
	// memory is a soft limit for the heap: password hashes take 19 MiB each
	// for a moment. Below it the collector is in no hurry, as the service
	// keeps so little that it would run all the time.
	memory, hurry = 30 << 20, 200

	sweepEvery = time.Hour
	// graceLocal is far longer than from the appearance of a file on disk to
	// its record; graceCloud also covers an upload in parts, whose age on S3
	// counts from its begin.
	graceLocal = time.Hour
	graceCloud = 8 * 24 * time.Hour

	drain = 30 * time.Second
)

type serveCommand struct {
	store
	Addr         string    `env:"FERRY_ADDR" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on (default ${default})."`
	PublicURL    string    `env:"FERRY_PUBLIC_URL" placeholder:"URL" help:"Address of the service as links show it, such as https://files.example.com/v1 (default http://ADDR/v1)."`
	TrustProxy   bool      `env:"FERRY_TRUST_PROXY" help:"Take the caller's address from the last entry of X-Forwarded-For; for a server behind one proxy. Without it failed logins slow down all who come through the proxy."`
	PhoneRegion  string    `env:"FERRY_PHONE_REGION" placeholder:"IT" help:"Region of mobile numbers without a country code."`
	HideUsers    bool      `env:"FERRY_HIDE_USERS" help:"Answer GET /auth/forget for unknown users like for known ones."`
	MaxBody      string    `env:"FERRY_MAX_BODY" placeholder:"BYTES" help:"Most bytes of a request; 0 is unbounded."`
	MaxUploads   uint16    `env:"FERRY_MAX_UPLOADS" placeholder:"N" default:"500" help:"Most uploads at once, each of which takes up to 512 KiB of memory; more are answered 503 with Retry-After (default ${default}); 0 is unbounded."`
	RedirectOver string    `env:"FERRY_REDIRECT_OVER" placeholder:"BYTES" help:"With --table: size from which a download is a redirect to S3; 0 is never."`
	CORSOrigins  string    `name:"cors-origins" env:"FERRY_CORS_ORIGINS" placeholder:"ORIGIN,..." help:"Origins whose web pages may use the interface, such as https://app.example.com; * is all."`
	Notices      bounds    `embed:""`
	Retention    retention `embed:""`
	SMTP         string    `env:"FERRY_SMTP_URL" placeholder:"URL" help:"Mail server, such as smtp://user:password@mail.example.com:587; without one mail goes to the inbox."`
	MailFrom     string    `env:"FERRY_MAIL_FROM" placeholder:"ADDRESS" default:"Ferry <ferry@localhost>" help:"Sender of mail (default ${default})."`
	Webhooks     []string  `name:"webhook" env:"FERRY_WEBHOOKS" sep:" " placeholder:"URL" help:"Address that events are posted to, such as https://example.com/ferry-events; may be given up to 10 times, in the variable with spaces between."`
	Secret       string    `name:"webhook-secret" env:"FERRY_WEBHOOK_SECRET" placeholder:"whsec_..." help:"Secret that events are signed with, or several with spaces between while it changes; better in the variable than on the command line. Without one it is made, in webhook.secret among the data."`
	Inbox        string    `env:"FERRY_INBOX" enum:"auto,on,off" default:"auto" help:"Show sent messages at /inbox to whoever reaches it: on, off, or auto, which is on for a server on a loopback address without --public-url and --smtp."`
	Demo         bool      `env:"FERRY_DEMO" default:"true" negatable:"" help:"Make the user demo on the first start on empty data."`
	Fsync        string    `env:"FERRY_FSYNC" enum:"on,off" default:"on" help:"off never waits for the disk, and a loss of power loses files that were answered; for comparison with servers that never do."`
	Log          string    `env:"FERRY_LOG" enum:"json,text,off" default:"json" help:"Form of the log on standard error: json, text or off."`
}

func (serveCommand) Help() string {
	return "Ctrl-C finishes what is under way and stops. A kill at any moment loses nothing that was answered.\n\n" + exitCodes
}

func (c serveCommand) Run(ctx context.Context, out console) (err error) {
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetMemoryLimit(memory)
		debug.SetGCPercent(hurry)
	}
	listener, err := listen(c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	set, err := c.settings(listener.Addr().String())
	if err != nil {
		return err
	}
	log := c.logger(out)
	if c.PublicURL != "" && !c.TrustProxy {
		log.Warn("FERRY_PUBLIC_URL is set and FERRY_TRUST_PROXY is not: behind a proxy all callers count as one address, and failed logins of one slow down the logins of all")
	}
	p, done, err := c.open(ctx, set, local.Options{NoSync: c.Fsync == "off", Log: log}, boot.Table, boot.Blobs, boot.LinkKey)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := c.listen(ctx, p); err != nil {
		return err
	}
	options, err := c.options(listener.Addr(), p)
	if err != nil {
		return err
	}
	s, err := local.NewService(p, options)
	if err != nil {
		return &coded{exitSettings, err}
	}
	if err := c.greet(ctx, out, p, options); err != nil {
		return err
	}
	debug.FreeOSMemory() // what the start alone needed, such as a password's hash
	return c.serve(ctx, listener, s, p)
}

func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &coded{exitPort, fmt.Errorf("%s is in use by another program; choose another address with --addr or FERRY_ADDR", addr)}
	case errors.As(err, new(*net.AddrError)), errors.As(err, new(*net.DNSError)):
		return nil, &coded{exitSettings, fmt.Errorf("%s is not an address to listen on, such as 127.0.0.1:8080: %w", addr, errors.Unwrap(err))}
	case err != nil:
		return nil, &coded{exitPort, fmt.Errorf("cannot listen on %s: %w", addr, err)}
	}
	return l, nil
}

func (c serveCommand) settings(addr string) (api.Settings, error) {
	values := c.Retention.env()
	maps.Copy(values, c.Notices.env())
	values["FERRY_PUBLIC_URL"] = c.PublicURL
	if c.PublicURL == "" {
		values["FERRY_PUBLIC_URL"] = "http://" + addr + api.Prefix
	}
	values["FERRY_PHONE_REGION"] = c.PhoneRegion
	values["FERRY_MAX_BODY"] = c.MaxBody
	if c.inCloud() {
		values["FERRY_REDIRECT_OVER"] = c.RedirectOver
	}
	set, err := settings(values)
	set.HideUsers, set.MaxUploads = c.HideUsers, int(c.MaxUploads)
	if c.inCloud() && len(c.addresses()) > 0 {
		return set, &coded{exitSettings, errors.New("FERRY_WEBHOOKS is for data on this machine; with FERRY_TABLE and FERRY_EVENTS events go to the stack's topic")}
	}
	return set, err
}

func (c serveCommand) logger(out console) *slog.Logger {
	switch c.Log {
	case "text":
		return slog.New(slog.NewTextHandler(out.Err, nil))
	case "off":
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewJSONHandler(out.Err, nil))
}

func (c serveCommand) options(addr net.Addr, p *api.Ports) (local.ServiceOptions, error) {
	o := local.ServiceOptions{From: c.MailFrom, SweepEvery: sweepEvery, Grace: graceLocal}
	var err error
	if o.Origins, err = envelope.ParseOrigins(c.CORSOrigins); err != nil {
		return o, &coded{exitSettings, fmt.Errorf("FERRY_CORS_ORIGINS: %w", err)}
	}
	if c.SMTP != "" {
		sender, err := smtp.New(c.SMTP)
		if err != nil {
			return o, &coded{exitSettings, fmt.Errorf("FERRY_SMTP_URL: %w", err)}
		}
		o.Mail = mail.Sender(sender)
	}
	if len(c.addresses()) > 0 {
		if o.Webhooks, o.Secrets, err = c.webhooks(); err != nil {
			return o, err
		}
	}
	tcp, _ := addr.(*net.TCPAddr)
	private := tcp != nil && tcp.IP.IsLoopback() && c.PublicURL == "" && c.SMTP == "" && !c.inCloud()
	o.ShowInbox = c.Inbox == "on" || c.Inbox == "auto" && private
	if db, ok := p.Table.(*sqlite.DB); ok {
		o.Housekeep = func(ctx context.Context) error {
			_, err := db.DeleteExpired(ctx, p.Now())
			return err
		}
	}
	return o, nil
}

// listen makes what happens be recorded if there are webhooks. In the cloud a
// setting says so.
func (c serveCommand) listen(ctx context.Context, p *api.Ports) error {
	if c.inCloud() {
		return nil
	}
	p.Events = len(c.addresses()) > 0
	return notify.NoteListening(ctx, p.Table, p.Events)
}

// webhooks returns the addresses that events go to, and what signs them.
func (c serveCommand) webhooks() ([]string, []webhook.Secret, error) {
	text, where := c.Secret, "FERRY_WEBHOOK_SECRET"
	if text == "" {
		var err error
		if text, where, err = local.WebhookSecret(c.Data); err != nil {
			return nil, nil, err
		}
	}
	secrets, err := webhook.ParseSecrets(text)
	if err != nil {
		return nil, nil, &coded{exitSettings, fmt.Errorf("%s: %w", where, err)}
	}
	return c.addresses(), secrets, nil
}

// addresses are the webhooks; spaces between them may be many.
func (c serveCommand) addresses() []string { return strings.Fields(strings.Join(c.Webhooks, " ")) }

// serve answers requests until ctx ends, then lets those under way finish.
func (c serveCommand) serve(ctx context.Context, l net.Listener, s *local.Service, p *api.Ports) error {
	handler := patient(s.Handler())
	if c.TrustProxy {
		handler = forwarded(handler)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn),
	}
	background, stop := context.WithCancel(context.Background())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if !c.inCloud() { // there the stack's own functions do it
			s.Run(background)
		}
	}()
	defer func() { stop(); <-finished }()

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(patientListener{l, patience / tries, tries}) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	p.Log.Info("stopping", "drain", drain.String())
	end, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		server.Close()
		return fmt.Errorf("some requests took longer than %s and were cut off", drain)
	}
	return nil
}

// openService opens a service that serves nobody, for single tasks.
func (s store) openService(ctx context.Context, set api.Settings) (*local.Service, func() error, error) {
	p, done, err := s.open(ctx, set, local.Options{Existing: true}, boot.Table, boot.Blobs, boot.LinkKey)
	if err != nil {
		return nil, nil, err
	}
	grace := graceLocal
	if s.inCloud() {
		grace = graceCloud
	}
	sv, err := local.NewService(p, local.ServiceOptions{From: "ferry@localhost", Grace: grace})
	return sv, done, err
}
