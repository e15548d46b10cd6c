// Package serve has ferry serve, which runs the whole service in one process, and ferry health. Start reading at
// Command.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/infra/ferry/operator"
	"ferry/shared/api/param"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/gateway"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/mail/smtp"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

const (
	// memory is a soft limit for all memory: each password hash takes 19 MiB for a
	// moment. Below it the collector runs rarely: the live heap is so small that it
	// would otherwise run all the time. room is how far above the live heap the limit stays.
	memory, hurry, room = 30 << 20, 500, 14 << 20

	sweepEvery = time.Hour
	drain      = 30 * time.Second
)

type Command struct {
	operator.Store
	Where        where              `embed:""`
	ACMEURL      string             `name:"acme-url" env:"FERRY_ACME_URL" placeholder:"URL"`
	HTTPAddr     string             `name:"http-addr" env:"FERRY_HTTP_ADDR" placeholder:"HOST:PORT"`
	PublicURL    string             `env:"FERRY_PUBLIC_URL" placeholder:"URL"`
	MetricsAddr  string             `env:"FERRY_METRICS_ADDR" placeholder:"HOST:PORT"`
	TrustProxy   bool               `env:"FERRY_TRUST_PROXY"`
	ClientHeader string             `env:"FERRY_CLIENT_HEADER" placeholder:"NAME"`
	ProxySecret  string             `env:"FERRY_PROXY_SECRET" placeholder:"NAME:SHA256"`
	PhoneRegion  string             `env:"FERRY_PHONE_REGION" placeholder:"IT"`
	HideUsers    bool               `env:"FERRY_HIDE_USERS"`
	MaxBody      string             `env:"FERRY_MAX_BODY" placeholder:"SIZE"`
	MaxUploads   uint16             `env:"FERRY_MAX_UPLOADS" placeholder:"N" default:"500"`
	Reserve      string             `env:"FERRY_RESERVE" default:"256MiB" placeholder:"SIZE"`
	RedirectOver string             `env:"FERRY_REDIRECT_OVER" placeholder:"SIZE"`
	LinkBytes    string             `name:"link-bytes-per-hour" env:"FERRY_LINK_BYTES_PER_HOUR" placeholder:"1TiB"`
	CORSOrigins  string             `name:"cors-origins" env:"FERRY_CORS_ORIGINS" placeholder:"ORIGIN,..."`
	PerHour      string             `name:"notices-per-hour" env:"FERRY_NOTICES_PER_HOUR" placeholder:"100"`
	PerDay       string             `name:"notices-per-day" env:"FERRY_NOTICES_PER_DAY" placeholder:"500"`
	PerRecipient string             `name:"notices-per-recipient" env:"FERRY_NOTICES_PER_RECIPIENT" placeholder:"50"`
	Retention    operator.Retention `embed:""`
	SMTP         string             `env:"FERRY_SMTP_URL" placeholder:"URL"`
	MailFrom     string             `env:"FERRY_MAIL_FROM" placeholder:"ADDRESS" default:"Ferry <ferry@localhost>"`
	SMS          smsSender          `embed:"" prefix:"sms-"`
	SMSCountries string             `name:"sms-countries" env:"FERRY_SMS_COUNTRIES" placeholder:"IT,FR"`
	Webhooks     []string           `name:"webhook" env:"FERRY_WEBHOOKS" sep:" " placeholder:"URL"`
	Secret       string             `name:"webhook-secret" env:"FERRY_WEBHOOK_SECRET" placeholder:"whsec_..."`
	PlainLogin   bool               `env:"FERRY_PLAIN_LOGIN"`
	Look         look               `embed:""`
	Inbox        string             `env:"FERRY_INBOX" enum:"auto,on,off" default:"auto"`
	Demo         bool               `env:"FERRY_DEMO" default:"true" negatable:""`
	Fsync        string             `env:"FERRY_FSYNC" enum:"on,off" default:"on"`
	Log          string             `env:"FERRY_LOG" enum:"json,text,off" default:"json"`
}

// look is how the pages look.
type look struct {
	Name    string `name:"service-name" env:"FERRY_NAME" placeholder:"NAME"`
	Accent  string `env:"FERRY_ACCENT" placeholder:"#0b5cad"`
	Logo    string `env:"FERRY_LOGO" placeholder:"FILE"`
	Imprint string `env:"FERRY_IMPRINT" placeholder:"URL"`
	Privacy string `env:"FERRY_PRIVACY" placeholder:"URL"`
	Intro   string `env:"FERRY_INTRO" placeholder:"TEXT"`
	Home    string `env:"FERRY_HOME" placeholder:"send"`
}

// smsSender says who sends text messages, and how.
type smsSender struct {
	URL           string `name:"url" env:"FERRY_SMS_URL" placeholder:"URL"`
	Body          string `name:"body" env:"FERRY_SMS_BODY" placeholder:"TEMPLATE"`
	From          string `name:"from" env:"FERRY_SMS_FROM" placeholder:"NUMBER"`
	Authorization string `name:"authorization" env:"FERRY_SMS_AUTHORIZATION" placeholder:"VALUE"`
}

func (c Command) Run(ctx context.Context, set service.Settings, out cli.Console) error {
	if runtime.GOOS == "windows" { // its file system has no rename over an open file, and no modes
		return errors.New("ferry serve does not run on Windows; here ferry is only the client")
	}
	if os.Getenv("GOMEMLIMIT") == "" && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(hurry)
		followHeap(memory)
	}
	log := slog.New(map[string]slog.Handler{
		"json": slog.NewJSONHandler(out.Err, nil),
		"text": slog.NewTextHandler(out.Err, nil),
		"off":  slog.DiscardHandler,
	}[c.Log])
	listeners, err := c.listen(log)
	if err != nil {
		return err
	}
	if set.PublicURL == "" {
		if set.PublicURL, err = c.Where.publicURL(listeners.main.Addr()); err != nil {
			return err
		}
	}
	if err := param.CheckCountries(set); err != nil {
		return cli.WithCode(cli.ExitSettings, err)
	}
	set.MaxUploads = int(c.MaxUploads)
	if !c.InCloud() {
		set.RedirectOver = 0
	} else if len(c.addresses()) > 0 {
		return cli.Fail(cli.ExitSettings, "FERRY_WEBHOOKS is for data on this machine; "+
			"with FERRY_TABLE and FERRY_EVENTS, events go to the stack's topic")
	}
	reserve, err := service.ParseSize(c.Reserve)
	if err != nil {
		return cli.Fail(cli.ExitSettings, "--reserve or FERRY_RESERVE=%q: %w", c.Reserve, err)
	}
	options := local.Options{NoSync: c.Fsync == "off", Reserve: reserve, Log: log}
	return c.Open(ctx, set, options, func(p *service.Service) error {
		return c.run(ctx, out, listeners, p)
	}, operator.FilePorts()...)
}

// followHeap sets the memory limit, and after each collection adjusts it to the live heap, plus a
// quarter and room, but at least memory. With a fixed limit, as soon as more is live than it
// allows, the collector would take half of the processors, and what it frees would go back to the
// system at once.
func followHeap(limit int64) {
	debug.SetMemoryLimit(limit)
	runtime.AddCleanup(new([64]byte), func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		n := int64(live[0].Value.Uint64())
		followHeap(max(memory, n+n/4+room))
	}, struct{}{})
}

// warn logs a line for each setting that would surprise people later.
func (c Command) warn(log *slog.Logger, publicURL string) {
	say := func(when bool, text string) {
		if when {
			log.Warn(text)
		}
	}
	public, _ := url.Parse(publicURL) // valid by now
	sends := c.SMTP != "" || c.SMS.URL != "" || c.InCloud()
	say(c.PublicURL != "" && !c.proxied() && !c.Where.secure(),
		"FERRY_PUBLIC_URL is set and neither FERRY_TRUST_PROXY nor FERRY_CLIENT_HEADER is: behind a proxy "+
			"all callers count as one address, and one caller's failed logins slow down all logins")
	say(public.Scheme == "http" && !cli.Loopback(public),
		"the public URL is plain http: anyone on the network path can read passwords, links and files, "+
			"and browsers log in only with --plain-login; use --tls-domain, or a TLS proxy and "+
			"its address as FERRY_PUBLIC_URL")
	say(c.SMTP != "" && strings.HasSuffix(strings.TrimSuffix(c.MailFrom, ">"), "@localhost"),
		"mail comes from an address at localhost, which many mail servers refuse: set FERRY_MAIL_FROM")
	say(sends && cli.Loopback(public),
		"links in messages lead to this machine's own loopback address, where no recipient gets them: set FERRY_PUBLIC_URL")
}

// run makes the service and serves it.
func (c Command) run(
	ctx context.Context,
	out cli.Console,
	l *listeners,
	p *service.Service,
) error {
	set := p.Settings
	if !c.InCloud() { // in the cloud a setting says whether events are recorded
		set.Events = len(c.addresses()) > 0
		if err := notify.NoteListening(ctx, p.Table, set.Events); err != nil {
			return err
		}
	}
	options, err := c.options(l.main.Addr(), p.Ports)
	if err != nil {
		return err
	}
	set.Channels = nil
	if !c.InCloud() && options.Couriers[files.Mail] != nil && !options.ShowInbox {
		set.Channels = slices.Collect(maps.Keys(options.Couriers))
	}
	s, err := local.NewService(p.Ports, set, options)
	if err != nil {
		return cli.WithCode(cli.ExitSettings, err)
	}
	c.warn(p.Log, p.PublicURL)
	if !c.InCloud() {
		others, leave, err := local.Serving(c.Data, p.PublicURL)
		defer leave()
		switch {
		case err != nil:
			p.Log.Warn("another server on the same data with another public URL would go unnoticed",
				"error", err.Error())
		case len(others) > 0:
			p.Log.Warn("another server on the same data has another public URL, so links differ",
				"others", others)
		}
	}
	if err := c.greet(ctx, out, s.Service, options, c.private(l.main.Addr())); err != nil {
		return err
	}
	debug.FreeOSMemory() // what only the start needed, such as a password's hash
	return c.serve(ctx, l, s, options.Metrics)
}

func (c Command) options(addr net.Addr, p service.Ports) (o local.ServiceOptions, err error) {
	o = local.ServiceOptions{
		From:       c.MailFrom,
		SweepEvery: sweepEvery,
		Grace:      operator.Grace(p.Blobs),
	}
	o.Couriers = map[files.Channel]notify.Courier{}
	where := "--cors-origins or FERRY_CORS_ORIGINS"
	o.Origins, err = envelope.ParseOrigins(c.CORSOrigins)
	if err == nil && c.SMTP != "" {
		where = "--smtp or FERRY_SMTP_URL"
		var sender mail.Sender
		sender, err = smtp.New(c.SMTP)
		o.Couriers[files.Mail] = notify.ByMail(sender)
	}
	if err == nil && c.SMS.URL != "" {
		where = "--sms-url or FERRY_SMS_URL"
		var sender notify.TextSender
		sender, err = gateway.New(gateway.Config(c.SMS))
		o.Couriers[files.SMS] = notify.ByText(sender)
	}
	o.Webhooks = c.addresses()
	if err == nil && len(o.Webhooks) > 0 {
		text := c.Secret
		where = "--webhook-secret or FERRY_WEBHOOK_SECRET"
		if text == "" {
			if text, where, err = local.WebhookSecret(c.Data); err != nil {
				return o, err
			}
		}
		o.Secrets, err = notify.ParseWebhookSecrets(text)
	}
	if err != nil {
		return o, cli.Fail(cli.ExitSettings, "%s: %w", where, err)
	}
	o.InboxProxied = c.Inbox == "on"
	o.ShowInbox = o.InboxProxied || c.Inbox == "auto" && c.private(addr) && c.SMTP == ""
	if c.MetricsAddr != "" {
		o.Metrics = local.NewMetrics(p.Log)
	}
	return o, nil
}

// private reports whether only this machine is meant to reach the service.
func (c Command) private(addr net.Addr) bool {
	tcp, _ := addr.(*net.TCPAddr)
	return tcp != nil &&
		tcp.IP.IsLoopback() &&
		c.PublicURL == "" &&
		len(c.Where.Domains) == 0 &&
		!c.proxied() && !c.InCloud()
}

// proxied reports whether a proxy in front passes on who its client is.
func (c Command) proxied() bool { return c.TrustProxy || c.ClientHeader != "" }

// addresses returns the webhooks, which may have any number of spaces between them.
func (c Command) addresses() []string { return strings.Fields(strings.Join(c.Webhooks, " ")) }

// greet says where the service is, who sends its messages, and how to begin.
func (c Command) greet(
	ctx context.Context, out cli.Console, p *service.Service, o local.ServiceOptions, private bool,
) error {
	where := c.Data
	if c.InCloud() {
		where = "DynamoDB table " + c.Table
	}
	out.Print("Ferry serves %s (data in %s). Ctrl-C stops it.\n", p.PublicURL, where)
	program, data := cli.Quoted(out.Program), ""
	if usual, err := filepath.Abs(operator.UsualData); err != nil || c.Data != usual {
		data = " --data " + cli.Quoted(c.Data)
	}
	unsent := "Mail and text messages"
	switch {
	case o.Couriers[files.Mail] != nil:
		unsent = "Text messages"
	case o.Couriers[files.SMS] != nil:
		unsent = "E-mails"
	}
	switch {
	case len(o.Couriers) == len(files.Channels()):
	case !p.Sends(files.SMS):
		out.Print("Text messages are not sent: uploads that ask for one are refused, as FERRY_SMS_URL is not set\n")
	case o.ShowInbox:
		root := strings.TrimSuffix(p.PublicURL, wire.Prefix)
		out.Print("%s are not sent: they are shown at %s/inbox\n", unsent, root)
	case !c.InCloud():
		out.Print("%s are not sent: %s inbox%s shows them\n", unsent, program, data)
	}
	if n := len(o.Webhooks); n > 0 && c.Secret == "" {
		out.Print("Events are posted to %s, signed with the secret in %s\n",
			cli.Count(n, "webhook"), filepath.Join(c.Data, "webhook.secret"))
	}
	if c.InCloud() {
		return nil
	}
	errFound := errors.New("there is a user")
	err := p.Users().Names(ctx, "", func(users.User, error) error { return errFound })
	switch {
	case errors.Is(err, errFound):
		return nil
	case err != nil:
		return err
	case !c.Demo || !private:
		out.Print("There are no users yet: %s user add NAME%s creates one\n", program, data)
		return nil
	}
	return c.makeDemo(ctx, out, p, program, data)
}

// makeDemo creates a user for trying out a private service. If standard output may become a log,
// the password goes to a file that only the operator can read.
func (c Command) makeDemo(
	ctx context.Context,
	out cli.Console,
	p *service.Service,
	program, data string,
) error {
	password := operator.TemporaryPassword()
	demo := users.User{Name: "demo", Email: "demo@example.com", Lang: "en", State: users.Active}
	if err := operator.AddUser(ctx, p, demo, password, false); err != nil {
		return err
	}
	shown, login := "the password "+password+"\n(it is not shown again; ", "demo:"+password
	if !cli.IsTerminal(out.Out.Raw) {
		file := filepath.Join(c.Data, "demo.password")
		err := disk.WritePrivate(file, strings.NewReader(password+"\n"), os.Rename)
		if err != nil {
			return fmt.Errorf("writing the password of demo: %w", err)
		}
		shown, login = "the password in "+file+"\n(", `"demo:$(cat `+cli.Quoted(file)+`)"`
	}
	fmt.Fprintf(out.Out, `
This is the first start: there is a user "demo" now, with %[1]s%[3]s makes a new one). Try it in another terminal:

  echo "Hello, Ferry" > hello.txt
  curl -u %[5]s -F file=@hello.txt %[2]s/upload
  curl -u %[5]s %[2]s/download/list
  curl -OJ --output-dir got --create-dirs "LINK"    # a linkURL from one of the answers

or with this program, for files of any size:

  %[4]s login %[2]s --user demo
  %[4]s up hello.txt

`, shown, p.PublicURL, program+" user reset demo"+data, program, login)
	return nil
}
