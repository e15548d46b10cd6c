// Package service puts Ferry together: ports to the outside and the operator's settings go in, and
// users, files, links and notices come out. Start reading with Service.
package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/notify"
)

// Ports are the service's connections to the outside. A port that nothing uses is nil.
type Ports struct {
	auth.Ports
	Blobs blob.Store
	Parts blob.Parts // of the same store
	Log   *slog.Logger
	// Notify is called after a notice has been put in the outbox; nil does nothing.
	Notify func()
	// Known tells which bytes need not be verified; nil knows none.
	Known blob.Knower
	Free  func() (int64, error) // bytes that uploads may still take; nil is no limit
	// CountWait and LinkMemory are as in links.Config.
	CountWait, LinkMemory time.Duration
	// Mover is as in files.Config.
	Mover func(ctx context.Context, s *files.Service, owner string, id int64) error
}

// Service has the domains. Each is made when it is first asked for, so that a function links only
// those that it uses. A Service is safe for concurrent use, and does not change.
type Service struct {
	Ports
	Settings
	files made[files.Service]
	links made[links.Service]
}

// New returns a Service.
func New(p Ports, set Settings) *Service {
	if p.Notify == nil {
		p.Notify = func() {}
	}
	return &Service{Ports: p, Settings: set}
}

// made is a value that is made once.
type made[T any] struct {
	once sync.Once
	it   *T
}

func (m *made[T]) get(make func() *T) *T {
	m.once.Do(func() { m.it = make() })
	return m.it
}

// Credentials returns what checks the credentials of callers.
func (s *Service) Credentials() *auth.Authenticator { return auth.New(s.Ports.Ports) }

// Passwords returns what gives users new passwords.
func (s *Service) Passwords() *auth.Accounts {
	return auth.NewAccounts(auth.AccountsConfig{
		Ports: s.Ports.Ports, HideUsers: s.HideUsers, Outbox: notify.NewOutbox(s.Ports.Ports, notify.Limits{}, s.PublicURL, s.Events),
	})
}

// Tokens returns the users' tokens.
func (s *Service) Tokens() *auth.Tokens { return auth.NewTokens(s.Ports.Ports) }

// Files returns the users' files.
func (s *Service) Files() *files.Service {
	return s.files.get(func() *files.Service {
		return files.New(files.Config{
			Ports: s.Ports.Ports, Blobs: s.Blobs, Parts: s.Parts, Outbox: s.Outbox(), Links: s.Links(),
			Retention: s.Retention, Free: s.Free, Shared: s.CountWait > 0, Log: s.Log, Mover: s.Mover,
		})
	})
}

// Links returns the links of files.
func (s *Service) Links() *links.Service {
	return s.links.get(func() *links.Service {
		return links.New(links.Config{
			Ports: s.Ports.Ports, Outbox: s.Outbox(), Queued: s.Notify, Log: s.Log,
			Bytes: s.LinkBytes, CountWait: s.CountWait, Memory: s.LinkMemory,
		})
	})
}

// Outbox returns the outbox of notices about files.
func (s *Service) Outbox() notify.Outbox { return OutboxOf(s.Ports.Ports, s.Settings) }

// OutboxOf returns the outbox of a Service with these ports and settings.
func OutboxOf(p auth.Ports, set Settings) notify.Outbox {
	return notify.NewOutbox(p, set.Notices, set.PublicURL, set.Events)
}
