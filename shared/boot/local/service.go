package local

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/api/upload"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/openapi"
	"ferry/shared/service"
	"ferry/shared/web"
	"ferry/shared/wire"
)

// ServiceOptions say what a Service does besides answering requests.
type ServiceOptions struct {
	// Couriers send notices. Those of other channels are left to the inbox.
	Couriers map[files.Channel]notify.Courier
	// From is the address that mail comes from.
	From string
	// ShowInbox serves the inbox at /inbox. It shows the links and PINs of all
	// users to anyone who can reach it.
	ShowInbox bool
	// InboxProxied shows the inbox to requests through a proxy too.
	InboxProxied bool
	// Origins are the origins whose web pages may use the interface.
	Origins envelope.Origins
	// SweepEvery is the time between sweeps; 0 never sweeps.
	SweepEvery time.Duration
	// Grace is how old an object without a record must be to be removed.
	Grace time.Duration
	// Webhooks are the addresses that get events, signed with each of the
	// secrets. There are events only if the ports' Events is on.
	Webhooks []string
	Secrets  []notify.WebhookSecret
	// Metrics counts the requests; nil does not.
	Metrics *Metrics
}

// Service is all endpoints and the background work in one process.
type Service struct {
	*service.Service
	Inbox   *inbox.Inbox
	Sender  *notify.Sender
	movers  *movers // nil: a request moves bytes itself
	options ServiceOptions
}

// NewService returns a Service on these ports. It sets their Notify to wake its sender and, unless
// the settings have no movers, their Mover to its movers.
func NewService(p service.Ports, set service.Settings, o ServiceOptions) (*Service, error) {
	in := inbox.New(p.Table, p.Now)
	hooks, err := notify.NewReceivers(o.Webhooks, o.Secrets)
	if err != nil {
		return nil, err
	}
	couriers := in.Couriers()
	maps.Copy(couriers, o.Couriers)
	sender, err := notify.NewSender(notify.Config{
		Table:    p.Table,
		Key:      p.Key,
		Couriers: couriers,
		Webhooks: hooks,
		From:     o.From,
		Base:     set.PublicURL,
		Now:      p.Now,
		Log:      p.Log,
		Service:  set.Look.Title(),
		Links:    links.Items{Now: p.Now},
		Limits:   set.Notices,
		OnEnd: []notify.OnEnd{notify.TellMissing(p.Now), service.New(
			p, set,
		).Outbox().LinkEnded},
	})
	if err != nil {
		return nil, err
	}
	if o.Metrics != nil && p.Medium != nil { // a stack has its own metrics of what is stored
		o.Metrics.registry.MustRegister(stored{p, sender})
	}
	p.Notify = sender.Wake
	s := &Service{Inbox: in, Sender: sender, options: o}
	if set.Movers > 0 {
		s.movers = newMovers(set.Movers, p.Log)
		p.Mover = s.movers.move
	}
	s.Service = service.New(p, set)
	return s, nil
}

// Handler serves the interface under wire.Prefix, the pages, and the inbox if ShowInbox is set.
func (s *Service) Handler() http.Handler {
	p := &api.Ports{
		Service:   s.Service,
		Slots:     api.NewSlots(s.MaxUploads),
		Lingering: make(chan struct{}, envelope.MaxLingering),
	}
	mux := Handler(p)
	mux.Handle(api.PartRoute.Method+" "+wire.Prefix+api.PartRoute.Path, upload.Receive(p))
	if s.options.ShowInbox {
		asJSON := func(r *http.Request) bool { return param.Asked(r) == param.AsJSON }
		shown := inbox.Handler(
			p.Outlet(),
			s.Inbox,
			asJSON,
			web.Inbox(p),
			s.options.InboxProxied,
		)
		mux.Handle("GET /inbox", shown)
	}
	h := s.options.Origins.Handler(wire.Prefix, api.Exact(mux, openapi.NewNotFound(p)))
	if s.options.Metrics != nil {
		h = s.options.Metrics.watch(mux, h)
	}
	return h
}

// Run does the background work until ctx ends: it sends notices and events, and
// sweeps.
func (s *Service) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.Sender.Run(ctx) })
	defer s.EndMoves()
	defer wg.Wait() // the sender runs until ctx ends
	for tick := time.Tick(s.options.SweepEvery); tick != nil && ctx.Err() == nil; {
		_, err := s.Table.DeleteExpired(ctx, s.Now())
		if err == nil {
			_, err = s.Sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "a sweep failed", "error", err.Error())
		}
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
}

// EndMoves ends the movers, and leaves the rest to the next sweep. Run calls it when it ends;
// without Run, call it before the ports are closed.
func (s *Service) EndMoves() {
	if s.movers != nil {
		s.movers.end()
	}
}

// Sweep does one sweep.
func (s *Service) Sweep(ctx context.Context) (files.SweepReport, error) {
	sweeper := files.Sweeper{
		Service: s.Files(),
		Grace:   s.options.Grace,
		AtOnce:  s.Movers,
	}
	r, err := sweeper.Run(ctx)
	if r.Moved+r.Purged+r.Orphans+r.Kept+r.Failed+r.Unfinished > 0 {
		s.Log.InfoContext(ctx, "swept",
			"seen", r.Seen, "moved", r.Moved, "purged", r.Purged, "orphans", r.Orphans, "kept", r.Kept, "failed", r.Failed, "unfinished", r.Unfinished)
	}
	return r, err
}
