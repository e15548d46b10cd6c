package local

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/api/upload"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/notify/mail"
	"ferry/shared/openapi"
	"ferry/shared/web"
)

// ServiceOptions say what a Service does besides answering requests.
type ServiceOptions struct {
	// Mail and SMS send notices; nil leaves them to the inbox.
	Mail mail.Sender
	SMS  notify.TextSender
	// From is the address that mail comes from.
	From string
	// ShowInbox serves the inbox at /inbox. It shows the links and PINs of all
	// users to anyone who can reach it.
	ShowInbox bool
	// InboxProxied shows it to requests through a proxy too.
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
	// Housekeep is called before each sweep, for the needs of a backend.
	Housekeep func(context.Context) error
	// Metrics counts the requests; nil does not.
	Metrics *Metrics
}

// Service is all endpoints and the background work in one process.
type Service struct {
	ports   *api.Ports
	options ServiceOptions
	Inbox   *inbox.Inbox
	Sender  *notify.Sender
	movers  chan struct{} // full if all are busy
	mu      sync.Mutex    // held to begin a move, and to end them all
	moving  sync.WaitGroup
	ending  context.Context // when movers stop
	end     func()
}

// NewService returns a Service. It sets the ports' Notify, which wakes its sender, their
// Slots and, unless the settings have no movers, their Mover.
func NewService(p *api.Ports, o ServiceOptions) (*Service, error) {
	s := &Service{ports: p, options: o, Inbox: inbox.New(p.Table, p.Now)}
	o.Mail, o.SMS = cmp.Or(o.Mail, s.Inbox.Mail()), cmp.Or(o.SMS, s.Inbox.SMS())
	hooks, err := notify.NewReceivers(o.Webhooks, o.Secrets)
	if err != nil {
		return nil, err
	}
	s.Sender, err = notify.NewSender(notify.Config{
		Table: p.Table, Key: p.Key, Mail: o.Mail, SMS: o.SMS, Webhooks: hooks, From: o.From, Base: p.PublicURL, Now: p.Now, Log: p.Log,
		Service: p.Look.Title(), Links: file.Links(p), Limits: p.Notices,
		OnEnd: []notify.OnEnd{notify.TellMissing(p.Now), file.Outbox(p).LinkEnded},
	})
	if err != nil {
		return nil, err
	}
	if o.Metrics != nil && o.Metrics.disk != nil {
		o.Metrics.registry.MustRegister(stored{p, o.Metrics.disk, s.Sender})
	}
	p.Notify, p.Slots = s.Sender.Wake, api.NewSlots(p.MaxUploads)
	if p.Movers > 0 {
		s.movers, p.Mover = make(chan struct{}, p.Movers), s.move
		s.ending, s.end = context.WithCancel(context.Background())
	}
	return s, nil
}

// moveTime bounds one try to move the bytes of a file. The next one resumes there.
const moveTime, moveTries = 10 * time.Minute, 100

// move moves the bytes of a file in the background.
func (s *Service) move(_ context.Context, owner string, id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Err() != nil {
		return errors.New("the service ends")
	}
	select {
	case s.movers <- struct{}{}:
	default:
		return errors.New("all movers are busy")
	}
	s.moving.Go(func() {
		defer func() { <-s.movers }()
		var err error
		for try, late := 0, true; try < moveTries && late; try++ {
			ctx, cancel := context.WithTimeout(s.ending, moveTime)
			err = file.Service(s.ports).MoveBytes(ctx, owner, id)
			late = err != nil && ctx.Err() != nil && s.ending.Err() == nil
			cancel()
		}
		if err != nil {
			s.ports.Log.Error("the bytes of a file could not be moved", "owner", owner, "id", id, "error", err.Error())
		}
	})
	return nil
}

// Handler serves the interface under api.Prefix, the pages, and the inbox if ShowInbox is set.
func (s *Service) Handler() http.Handler {
	mux := Handler(s.ports)
	mux.Handle(api.PartRoute.Method+" "+api.Prefix+api.PartRoute.Path, upload.Receive(s.ports))
	if s.options.ShowInbox {
		asJSON := func(r *http.Request) bool { return api.Asked(r) == api.AsJSON }
		shown := inbox.Handler(s.ports.Outlet(), s.Inbox, asJSON, web.Inbox(s.ports), s.options.InboxProxied)
		mux.Handle("GET /inbox", shown)
	}
	h := s.options.Origins.Handler(api.Prefix, api.Exact(mux, openapi.NewNotFound(s.ports)))
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
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.ports.Log.ErrorContext(ctx, "a sweep failed", "error", err.Error())
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
	if s.end != nil {
		s.mu.Lock()
		s.end()
		s.mu.Unlock()
		s.moving.Wait()
	}
}

// Sweep does one sweep.
func (s *Service) Sweep(ctx context.Context) (files.SweepReport, error) {
	if s.options.Housekeep != nil {
		if err := s.options.Housekeep(ctx); err != nil {
			return files.SweepReport{}, err
		}
	}
	sweeper := files.Sweeper{
		Service: file.Service(s.ports), Grace: s.options.Grace, AtOnce: s.ports.Movers,
	}
	r, err := sweeper.Run(ctx)
	if r.Moved+r.Purged+r.Orphans+r.Kept+r.Failed+r.Unfinished > 0 {
		s.ports.Log.InfoContext(ctx, "swept",
			"seen", r.Seen, "moved", r.Moved, "purged", r.Purged, "orphans", r.Orphans, "kept", r.Kept, "failed", r.Failed, "unfinished", r.Unfinished)
	}
	return r, err
}
