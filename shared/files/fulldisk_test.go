package files_test

import (
	"context"
	"errors"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
)

// crampedTable is a table on a disk that the parts of a session have filled.
type crampedTable struct {
	table.Table
	parts   blob.Parts
	session *files.Session
}

func (c crampedTable) Write(ctx context.Context, ops ...table.Op) error {
	if c.session.ID != "" {
		_, err := blob.AllParts(ctx, c.parts.Upload(blob.Files, c.session.Blob, c.session.Upload, blob.Layout{}))
		if !errors.Is(err, blob.ErrNoUpload) {
			return errors.Join(err, table.ErrFull)
		}
	}
	return c.Table.Write(ctx, ops...)
}

func TestEndingSessionFreesRoomOnFullDisk(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	p := c.Data.Ports
	var sess files.Session
	service := files.New(files.Config{
		Ports: auth.Ports{Table: crampedTable{p.Table, p.Parts, &sess}, Key: p.Key, Random: p.Random, Now: p.Now},
		Blobs: p.Blobs, Parts: p.Parts, Outbox: file.Outbox(p), Links: file.Links(p), Retention: p.Retention,
	})
	var err error
	sess, err = service.BeginSession(t.Context(), c.by(), files.Plan{Owner: c.name, Name: "a", Length: 1}, nil)
	c.must(err)
	c.must(service.EndSession(t.Context(), sess))
	if _, err := service.Session(t.Context(), c.by(), sess.ID, true); !fault.Is(err, fault.NotFound) {
		t.Errorf("reading the ended session gave %v, want NotFound", err)
	}
}
