package links

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/users"
)

// renewsAtOnce is how many renewals wait for the table at the same time.
const renewsAtOnce = 16

// errRenewed is returned for a file whose links something else has renewed or removed meanwhile.
var errRenewed = errors.New("the links were renewed meanwhile")

// renewedUpTo is the last user whose links were renewed.
type renewedUpTo struct {
	User string `json:"user"`
}

// Renew replaces links of a revoked version of the key with links of the newest version. Owners
// see the new ones in lists; recipients do not get theirs unless their notices are still queued.
// It goes through all records, and resumes at the user where it was interrupted. It skips what
// fails, and reports it at the end. All processes must know what is revoked.
func (s *Service) Renew(ctx context.Context, version int) (renewed int64, err error) {
	key := table.Key{PK: "linkkey", SK: fmt.Sprint("renewal-", version)}
	var at renewedUpTo
	err = fault.Wrap(s.Table.Get(ctx, key, &at), "reading where the renewal is", table.ErrNotFound)
	if err != nil {
		return 0, err
	}
	var done, failed atomic.Int64
	err = s.users().Names(ctx, at.User, func(u users.User, _ error) error {
		before := done.Load()
		for _, area := range []blob.Area{blob.Backup, blob.Files} {
			if err := s.renewArea(ctx, files.Key(area, u.Name, 0).PK, int64(version), &done, &failed); err != nil {
				return err
			}
		}
		if err := s.renewRequests(ctx, u, int64(version), &failed); err != nil {
			return err
		}
		if done.Load() == before {
			return nil
		}
		return s.Table.Write(ctx, table.Put(key, renewedUpTo{u.Name}))
	})
	if err == nil {
		err = s.Table.Write(ctx, table.Delete(key))
	}
	if n := failed.Load(); err == nil && n > 0 {
		err = fmt.Errorf("files and requests that did not get new links: %d; repeat the command when their records are repaired",
			n)
	}
	return done.Load(), fault.Wrap(err, "renewing links")
}

// renewRequests gives new links to the requests of a user.
func (s *Service) renewRequests(ctx context.Context, u users.User, version int64, failed *atomic.Int64) error {
	all, err := s.Requests(ctx, u)
	for _, r := range all {
		if max(1, r.Key) != version {
			continue
		}
		_, err := s.EditRequest(ctx, u, r.ID, func(*Request) {})
		switch {
		case err == nil || fault.Is(err, fault.NotFound): // or it has just ended
		case ctx.Err() != nil:
			return err
		default:
			failed.Add(1)
			s.Log.Error("a request could not get a new link", "id", r.ID, "error", err)
		}
	}
	return err
}

func (s *Service) users() *users.Service { return &users.Service{Table: s.Table, Now: s.Now} }

func (s *Service) renewArea(ctx context.Context, pk string, version int64, done, failed *atomic.Int64) error {
	all := files.New(files.Config{
		Table: s.Table, Key: s.Key, Random: s.Random, Now: s.Now, Users: s.users(), Links: s,
	})
	var g errgroup.Group
	g.SetLimit(renewsAtOnce)
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: pk, Limit: table.MaxKeys}) {
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		f, damaged := files.DecodeFile(item)
		if damaged == nil && max(1, f.Key) != version {
			continue
		}
		g.Go(func() error {
			err := damaged
			if err == nil {
				err = s.renew(ctx, all, f)
			}
			switch {
			case err == nil:
				done.Add(1)
			case errors.Is(err, errRenewed):
			case ctx.Err() != nil:
				return err
			default: // it must not hold up all others
				failed.Add(1)
				s.Log.Error("a file could not get new links", "key", item.Key.String(), "error", err)
			}
			return nil
		})
	}
	return g.Wait()
}

// renew replaces the links of a file, unless something else does.
func (s *Service) renew(ctx context.Context, all *files.Service, f files.File) error {
	_, err := all.Amend(ctx, f, func(now *files.File) ([]table.Op, error) {
		if now.Key != f.Key {
			return nil, errRenewed
		}
		now.Key = s.Key.Version()
		return nil, nil
	})
	if fault.Is(err, fault.NotFound) { // a move renews them too
		return errRenewed
	}
	return err
}
