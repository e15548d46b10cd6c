package boottest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/files"
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
func Cheap() auth.Params { return auth.Params{Memory: 64, Time: 1, Threads: 1} }

// Fill stores the data that the events refer to: alice with a bearer, the files
// 1 and 3 and, in the backup area, file 2; bob in first access with a change
// token. From then on the ports hash passwords cheaply.
func Fill(ctx context.Context, p *api.Ports) error {
	for _, store := range []func(context.Context, *api.Ports) error{people, stored, tokens} {
		if err := store(ctx, p); err != nil {
			return fmt.Errorf("storing the fixtures' data: %w", err)
		}
	}
	return nil
}

func people(ctx context.Context, p *api.Ports) (err error) {
	if p.Hasher, err = auth.NewHasher(Cheap(), p.Random, p.Now); err != nil {
		return err
	}
	alice, err1 := p.Hasher.Hash(ctx, Password)
	bob, err2 := p.Hasher.Hash(ctx, Temporary)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	store := auth.NewUsers(p.Table, time.Now)
	return errors.Join(
		auth.CheckFormat(ctx, p.Table),
		store.Add(ctx, auth.User{Name: "alice", State: auth.Active, Password: alice, Email: "alice@example.com"}),
		store.Add(ctx, auth.User{Name: "bob", State: auth.FirstAccess, Password: bob, Lang: "it"}),
	)
}

func stored(ctx context.Context, p *api.Ports) error {
	p = p.Clone() // the caller may change the ports
	for _, f := range []struct{ name, kind, content string }{
		{"Übersicht 1.png", "image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
		{"old plan.txt", "text/plain", "it is old!\n"},
		{"plan.txt", "text/plain", "it is new!\n"},
	} {
		size := int64(len(f.content))
		up, err := file.Service(p).Begin(ctx, "alice", files.By{User: "alice"}, size, files.Sending{})
		if err == nil {
			err = up.Add(ctx, files.Part{Name: f.name, Type: f.kind, Body: strings.NewReader(f.content), Size: size})
		}
		if err == nil {
			_, err = up.Commit(ctx, 0)
		}
		if err != nil {
			return err
		}
	}
	alice, err := auth.NewUsers(p.Table, time.Now).Get(ctx, "alice")
	if err == nil {
		_, err = file.Service(p).Delete(ctx, alice, 2)
	}
	return err
}

func tokens(ctx context.Context, p *api.Ports) error {
	random := p.Random
	defer func() { p.Random = random }()
	p.Random = ones{}
	if _, _, err := auth.New(p.Ports).Login(ctx, auth.Credential{Kind: "password", Name: "alice", Password: Password, Source: "203.0.113.7"}); err != nil {
		return err
	}
	bob, err := auth.NewUsers(p.Table, time.Now).Get(ctx, "bob")
	if err != nil {
		return err
	}
	_, err = auth.NewAccounts(auth.AccountsConfig{Ports: p.Ports}).First(ctx, bob)
	return err
}
