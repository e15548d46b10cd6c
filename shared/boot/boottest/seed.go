package boottest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

// The passwords of the users that Fill stores.
const (
	Password  = "correct horse battery staple" // alice's
	Temporary = "temporary-Pa55word"           // bob's, who is in first access
)

// Key is the key of the links in events/.
const Key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// ones stands in for random bytes, so that the tokens are those in events/.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

// Cheap returns costs for fast hashes, which protect nothing.
func Cheap() users.Params { return users.Params{Memory: 64, Time: 1, Threads: 1} }

// Fill stores the data that the events refer to: alice with a bearer, the files
// 1 and 3 and, in the backup area, file 2; bob in first access with a change
// token. It returns the service with passwords that are hashed cheaply.
func Fill(ctx context.Context, s *service.Service) (*service.Service, error) {
	p := s.Ports
	hasher, err := users.NewHasher(Cheap(), p.Random, p.Now)
	if err != nil {
		return nil, err
	}
	p.Hasher = hasher
	fixed := p
	fixed.Random = ones{}
	err = people(ctx, p)
	if err == nil {
		err = stored(ctx, service.New(p, s.Settings))
	}
	if err == nil {
		err = tokens(ctx, service.New(fixed, s.Settings))
	}
	if err != nil {
		return nil, fmt.Errorf("storing the fixtures' data: %w", err)
	}
	return service.New(p, s.Settings), nil
}

func people(ctx context.Context, p service.Ports) error {
	alice, err1 := p.Hasher.Hash(ctx, Password)
	bob, err2 := p.Hasher.Hash(ctx, Temporary)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	store := &users.Service{Table: p.Table, Now: time.Now}
	return errors.Join(
		table.CheckFormat(ctx, p.Table),
		store.Add(ctx, users.User{
			Name:     "alice",
			State:    users.Active,
			Password: alice,
			Email:    "alice@example.com",
		}),
		store.Add(ctx, users.User{
			Name:     "bob",
			State:    users.FirstAccess,
			Password: bob,
			Lang:     "it",
		}),
	)
}

func stored(ctx context.Context, s *service.Service) error {
	for _, f := range []struct{ name, kind, content string }{
		{"Übersicht 1.png", "image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
		{"old plan.txt", "text/plain", "it is old!\n"},
		{"plan.txt", "text/plain", "it is new!\n"},
	} {
		part := files.Part{
			Name: f.name,
			Type: f.kind,
			Body: strings.NewReader(f.content),
			Size: int64(len(f.content)),
		}
		err := Store(ctx, s.Files(), files.By{User: "alice"}, files.Sending{}, part)
		if err != nil {
			return err
		}
	}
	alice, err := s.Users().Get(ctx, "alice")
	if err == nil {
		_, err = s.Files().Delete(ctx, alice, 2)
	}
	return err
}

// Store stores a file in the uploader's own area.
func Store(
	ctx context.Context,
	s *files.Service,
	by files.By,
	sending files.Sending,
	part files.Part,
) error {
	up, err := s.Begin(ctx, by.User, by, part.Size, sending)
	if err == nil {
		err = up.Add(ctx, part)
	}
	if err == nil {
		_, err = up.Commit(ctx, 0)
	}
	return err
}

func tokens(ctx context.Context, s *service.Service) error {
	login := identity.Credential{
		Kind:     identity.Form,
		Name:     "alice",
		Password: Password,
		Source:   "203.0.113.7",
	}
	if _, _, err := s.Passwords().Login(ctx, login); err != nil {
		return err
	}
	bob, err := s.Users().Get(ctx, "bob")
	if err != nil {
		return err
	}
	_, err = s.Users().First(ctx, bob)
	return err
}
