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

// renewal is one run of Renew.
type renewal struct {
	*Service
	files        *files.Service
	version      int64
	done, failed atomic.Int64
}

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
	err = fault.Wrap(
		s.Table.Get(ctx, key, &at),
		"reading where the renewal is",
		table.ErrNotFound,
	)
	if err != nil {
		return 0, err
	}
	all := &users.Service{Table: s.Table, Now: s.Now}
	r := &renewal{Service: s, version: int64(version), files: files.New(files.Config{
		Table:  s.Table,
		Key:    s.Key,
		Random: s.Random,
		Now:    s.Now,
		Users:  all,
		Links:  s,
	})}
	err = all.Names(ctx, at.User, func(u users.User, _ error) error {
		before := r.done.Load()
		for _, area := range blob.Areas() {
			if err := r.area(ctx, files.Key(area, u.Name, 0).PK); err != nil {
				return err
			}
		}
		if err := r.requests(ctx, u); err != nil {
			return err
		}
		if r.done.Load() == before {
			return nil
		}
		return s.Table.Write(ctx, table.Put(key, renewedUpTo{u.Name}))
	})
	if err == nil {
		err = s.Table.Write(ctx, table.Delete(key))
	}
	if n := r.failed.Load(); err == nil && n > 0 {
		err = fmt.Errorf(
			"files and requests that did not get new links: %d; repeat the command when their records are repaired",
			n,
		)
	}
	return r.done.Load(), fault.Wrap(err, "renewing links")
}

// requests gives new links to the requests of a user.
func (r *renewal) requests(ctx context.Context, u users.User) error {
	all, err := r.Requests(ctx, u)
	for _, one := range all {
		if max(1, one.Key) != r.version {
			continue
		}
		_, err := r.EditRequest(ctx, u, one.ID, func(*Request) {})
		switch {
		case err == nil || fault.Is(err, fault.NotFound): // or it has just ended
		case ctx.Err() != nil:
			return err
		default:
			r.failed.Add(1)
			r.Log.Error("a request could not get a new link", "id", one.ID, "error", err)
		}
	}
	return err
}

// area gives new links to the files of a partition.
func (r *renewal) area(ctx context.Context, pk string) error {
	var g errgroup.Group
	g.SetLimit(renewsAtOnce)
	for item, err := range table.Each(ctx, r.Table, table.Query{PK: pk, Limit: table.MaxKeys}) {
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		f, damaged := files.DecodeFile(item)
		if damaged == nil && max(1, f.Key) != r.version {
			continue
		}
		g.Go(func() error {
			err := damaged
			if err == nil {
				err = r.file(ctx, f)
			}
			switch {
			case err == nil:
				r.done.Add(1)
			case errors.Is(err, errRenewed):
			case ctx.Err() != nil:
				return err
			default: // it must not hold up all others
				r.failed.Add(1)
				r.Log.Error("a file could not get new links",
					"key", item.Key.String(), "error", err)
			}
			return nil
		})
	}
	return g.Wait()
}

// file replaces the links of a file, unless something else does.
func (r *renewal) file(ctx context.Context, f files.File) error {
	_, err := r.files.Amend(ctx, f, func(now *files.File) ([]table.Op, error) {
		if now.Key != f.Key {
			return nil, errRenewed
		}
		now.Key = r.Key.Version()
		return nil, nil
	})
	if fault.Is(err, fault.NotFound) { // a move renews them too
		return errRenewed
	}
	return err
}
