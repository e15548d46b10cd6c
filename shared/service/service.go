// Package service puts Ferry together: ports to the outside and the operator's settings go in, and
// users, files, links and notices come out. Start reading with Service.
package service

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/limit"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/users"
)

// Ports are the service's connections to the outside. A port that nothing uses is nil.
type Ports struct {
	Table  table.Table
	Key    keys.LinkKey // none in a function that makes no links
	Hasher *users.Hasher
	Tries  *limit.Tries
	Random io.Reader
	Now    func() time.Time

	Blobs blob.Store
	Parts blob.Parts // of the same store
	Log   *slog.Logger
	// Notify is called after a notice has been put in the outbox; nil does nothing.
	Notify func()
	// Known tells which bytes need not be verified; nil knows none.
	Known blob.Knower
	Free  func() (int64, error) // bytes that uploads may still take; nil is no limit
	// Medium is what Blobs are on; nil if that is not on this machine.
	Medium blob.Medium
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

// Credentials returns what finds out who calls. Another way to log in is another provider here.
func (s *Service) Credentials() identity.Authenticator {
	passwords := s.Passwords()
	return identity.Authenticator{
		identity.Basic:  passwords,
		identity.Form:   passwords,
		identity.Bearer: s.Tokens(),
	}
}

// Passwords returns what checks passwords.
func (s *Service) Passwords() *identity.Passwords {
	limiter := limit.Limiter{Table: s.Table, Now: s.Now, Tries: s.Tries}
	return &identity.Passwords{
		Limiter: limiter,
		Users:   s.Users(),
		Hasher:  s.Hasher,
		Random:  s.Random,
	}
}

// Tokens returns the users' tokens.
func (s *Service) Tokens() *identity.Tokens {
	return &identity.Tokens{Table: s.Table, Users: s.Users(), Random: s.Random, Now: s.Now}
}

// Users returns the users' accounts, and what gives users new passwords.
func (s *Service) Users() *users.Service {
	return &users.Service{
		Table:     s.Table,
		Now:       s.Now,
		Key:       s.Key,
		Hasher:    s.Hasher,
		Tries:     s.Tries,
		Random:    s.Random,
		Outbox:    s.Outbox(),
		HideUsers: s.HideUsers,
	}
}

// Files returns the users' files.
func (s *Service) Files() *files.Service {
	return s.files.get(func() *files.Service {
		return files.New(files.Config{
			Table:     s.Table,
			Key:       s.Key,
			Random:    s.Random,
			Now:       s.Now,
			Users:     s.Users(),
			Blobs:     s.Blobs,
			Parts:     s.Parts,
			Outbox:    s.Outbox(),
			Links:     s.Links(),
			Retention: s.Retention,
			Free:      s.Free,
			Shared:    s.CountWait > 0,
			Log:       s.Log,
			Mover:     s.Mover,
		})
	})
}

// Links returns the links of files.
func (s *Service) Links() *links.Service {
	return s.links.get(func() *links.Service {
		return links.New(links.Config{
			Table:     s.Table,
			Key:       s.Key,
			Random:    s.Random,
			Now:       s.Now,
			Outbox:    s.Outbox(),
			Queued:    s.Notify,
			Log:       s.Log,
			Bytes:     s.LinkBytes,
			CountWait: s.CountWait,
			Memory:    s.LinkMemory,
		})
	})
}

// Outbox returns the outbox of notices.
func (s *Service) Outbox() notify.Outbox {
	return notify.Outbox{
		Table:     s.Table,
		Now:       s.Now,
		Random:    s.Random,
		Limits:    s.Notices,
		Source:    s.PublicURL,
		Listening: s.Events,
	}
}
