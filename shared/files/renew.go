package files

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/table"
)

// renewsAtOnce lets renewals share the waits for the table.
const renewsAtOnce = 16

// renewedUpTo is the last user whose links were renewed.
type renewedUpTo struct {
	User string `json:"user"`
}

// RenewLinks gives files whose links have a revoked version of the key links of the newest:
// lists show them to the files' owners, and nobody knows those of recipients, unless their
// notices still wait. It goes through all records, and resumes at the user where it was
// interrupted. All processes must know what is revoked.
func (s *Service) RenewLinks(ctx context.Context, version int) (renewed int64, err error) {
	key := table.Key{PK: "linkkey", SK: fmt.Sprint("renewal-", version)}
	var at renewedUpTo
	err = envelope.Wrap(s.Table.Get(ctx, key, &at), "reading where the renewal is", table.ErrNotFound)
	if err != nil {
		return 0, err
	}
	err = auth.NewUsers(s.Table, s.Now).ListAfter(ctx, at.User, func(u auth.User) error {
		var done atomic.Int64
		for _, area := range []blob.Area{blob.Backup, blob.Files} {
			if err := s.renewArea(ctx, partition(area, u.Name), int64(version), &done); err != nil {
				return err
			}
		}
		if renewed += done.Load(); done.Load() == 0 {
			return nil
		}
		return s.Table.Write(ctx, table.Put(key, renewedUpTo{u.Name}))
	})
	if err == nil {
		err = s.Table.Write(ctx, table.Delete(key))
	}
	return renewed, envelope.Wrap(err, "renewing links")
}

func (s *Service) renewArea(ctx context.Context, pk string, version int64, done *atomic.Int64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(renewsAtOnce)
	for item, err := range table.Each(ctx, s.Table, table.Query{PK: pk, Limit: table.MaxKeys}) {
		var f File
		if err == nil {
			err = item.Decode(&f)
		}
		if err == nil && max(1, f.Key) != version {
			continue
		}
		g.Go(func() error {
			if err == nil {
				err = s.renew(ctx, f)
			}
			if err == nil {
				done.Add(1)
			}
			return envelope.Wrap(err, item.Key.String(), table.ErrCondition) // something else has renewed it
		})
	}
	return g.Wait()
}

// renew replaces the links of a file.
func (s *Service) renew(ctx context.Context, f File) error {
	links, err := s.Links(ctx, f)
	if err != nil {
		return err
	}
	old, same := s.unpublish(f)[1:], []table.Cond{table.Equal("blob", f.Blob), table.AtMost("key", f.Key)}
	f.Key = s.Key.Version()
	record := table.Update(f.key()).Set("key", f.Key).If(same...)
	return s.Table.Write(ctx, append(append(old, record), s.publish(f, links)[1:]...)...)
}
