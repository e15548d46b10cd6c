package links_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/table"
)

// rotate makes a new version of the key a minute later, and revokes one, if there is one to revoke.
func (c caller) rotate(revoke int) {
	c.Helper()
	c.Clock.Advance(time.Minute)
	c.must(failure(c.Data.Ports.Key.Rotate(c.Context(), c.Data.Ports.Table, c.Data.Ports.Random, revoke)))
}

// renew gives new links, and checks of how many files.
func (c caller) renew(want int64) {
	c.Helper()
	if renewed, err := c.links.Renew(c.Context(), 1); err != nil || renewed != want {
		c.Errorf("%d files have new links, want %d: %v", renewed, want, err)
	}
}

// shown returns the links in a list of the caller's files, newest first.
func (c caller) shown() (all []string) {
	c.Helper()
	for _, f := range c.Ask("GET /download/list", "").Files {
		all = append(all, f.LinkURL)
	}
	return all
}

func TestLinksThatWereSentOutliveARotatedKey(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	old := c.SendToTwo("")
	sent, first := c.LinksOf(old), c.shown()
	c.rotate(0)
	c.WantStatuses("after the rotation", sent, 200)
	c.Upload("file=b", "content")
	if now := c.shown(); now[1] != first[0] || c.Newest("alice").Key != 2 || old.Key != 0 {
		t.Errorf("the list shows %v, and before %v", now, first)
	}
	c.WantStatuses("in the list", c.shown(), 200)
	c.Ask("DELETE /files/1", "").Want(200)
	c.WantStatuses("of a deleted file", sent, 401)
	c.Ask("POST /files/1/restore", "").Want(200)
	c.WantStatuses("of a restored file", sent, 200)
}

func TestARevokedVersionEndsItsLinksAndOwnersGetNewOnes(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	sent := c.LinksOf(c.SendToTwo(""))
	c.rotate(0)
	c.Upload("file=b", "content")
	shown := c.shown()
	c.rotate(1)
	c.WantStatuses("at once", append(sent, shown[1]), 401)
	c.WantStatuses("of another version", shown[:1], 200)
	c.WantStatuses("shown before the renewal", c.shown()[1:], 401)
	c.renew(1)
	c.WantStatuses("after the renewal", append(sent, shown[1]), 401)
	c.WantStatuses("shown after it", c.shown(), 200)
	f := c.Newest("alice")
	if f.Key != 2 || len(c.Partitions("link#")) != 4 {
		t.Errorf("key %d, links %v", f.Key, c.Partitions("link#"))
	}
	c.renew(0)
}

func TestTheDownloadsOfAFileOutliveItsLinks(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("")
	link, err := c.links.Find(
		t.Context(),
		f.Area,
		c.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, f.Recipients[0]),
		"",
	)
	c.must(err)
	c.must(c.links.Used(t.Context(), link, links.Used{Whole: true, Source: "192.0.2.1"}))
	c.links.Flush(t.Context())
	c.rotate(1)
	c.renew(1)
	if all := c.uses(c.Newest("alice")); len(all) != 3 || all[1].Downloads != 1 || all[1].Recipient != f.Recipients[0] {
		t.Errorf("%+v", all)
	}
}

func TestAFileThatChangesGetsANewLinkIfItsKeyWasRevoked(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(caller){
		"it moves": func(c caller) {
			c.Ask("DELETE /files/1", "").Want(200)
			c.Get(c.Ask("GET /download/list/backup", "").File().LinkURL)
			c.Ask("POST /files/1/restore", "").Want(200)
		},
		"its bytes get a new key": func(c caller) {
			s, f := c.Service.Files(), c.Newest("alice")
			c.must(failure(s.Rekey(c.Context(), f, []string{string(f.Area) + "/" + f.Blob}, nil)))
			c.must(s.MoveBytes(c.Context(), f.Owner, f.ID))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			sent := c.LinksOf(c.SendToTwo(""))
			c.rotate(1)
			change(c)
			c.WantStatuses("of the file", c.shown(), 200)
			c.WantStatuses("sent before", sent, 401)
			c.renew(0)
		})
	}
}

// The first of several files may wait for the last one for hours, and its records for a
// renewal that is then over.
func TestAFileThatWasStoredBeforeItsKeyWasRevokedGetsALinkOfTheNewest(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	u, err := c.Service.Files().Begin(
		t.Context(),
		"alice",
		files.ByOf(identity.Identity{User: c.user()}),
		-1,
		files.Sending{},
	)
	c.must(err)
	c.must(u.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("content"), Size: 7}))
	c.rotate(1)
	c.renew(0)
	if _, err := u.Commit(t.Context(), 0); err != nil || c.Newest("alice").Key != 2 {
		t.Errorf("the file has version %d of the key: %v", c.Newest("alice").Key, err)
	}
	c.WantStatuses("in the list", c.shown(), 200)
}

func TestARepeatedUploadAfterARotationIsAnsweredWithTheSameLink(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.AddUser("bob", "a password for tests")
	c.rotate(0)
	var answers []apitest.Envelope
	for range 2 {
		answers = append(
			answers,
			c.Ask("POST /upload?file=a&d=bob", "content", "Idempotency-Key", "one").Want(200).Envelope,
		)
	}
	link := answers[0].Files[0].LinkURL
	c.WantStatuses("of the upload", []string{link}, 200)
	expect.Equal(t, "the link of the repeat", answers[1].Files[0].LinkURL, link)
}

func TestADamagedRecordOrLinkHoldsUpNoRenewalOfOthers(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	for range 3 {
		c.Upload("file=a", "content")
	}
	c.AddUser("bob", "a password for tests")
	c.Upload("file=a&d=bob", "content")
	link := keys.HashToken(c.links.Token(c.Newest("alice")))
	for _, key := range []table.Key{{PK: "link#" + link, SK: "link"}, files.Key(blob.Files, "alice", 1)} {
		c.must(c.Data.Table.Write(c.Context(), table.Update(key).
			Set("file", "damaged").
			Set("id", "damaged").
			If(table.Exists())))
	}
	c.rotate(1)
	renewed, err := c.links.Renew(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "new links: 1;") || renewed != 3 {
		t.Errorf("%d files have new links: %v", renewed, err)
	}
	expect.Equal(t, "items of the renewal", len(c.Partitions("linkkey")), 1)
}

// reading ends at the n-th store of a position, and notes which partitions are read.
type reading struct {
	table.Table
	left int
	from []string
}

func (r *reading) Write(ctx context.Context, ops ...table.Op) error {
	if ops[0].Key.PK == "linkkey" && ops[0].Kind == table.KindPut {
		if r.left--; r.left < 0 {
			return errors.New("interrupted")
		}
	}
	return r.Table.Write(ctx, ops...)
}

func (r *reading) Query(ctx context.Context, q table.Query) (table.Page, error) {
	r.from = append(r.from, q.PK)
	return r.Table.Query(ctx, q)
}

func TestAnInterruptedRenewalResumesAtTheUserWhereItStopped(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	for _, name := range []string{"bob", "carl"} {
		c.AddUser(name, "a password for tests")
		c.Upload("file=a&d="+name, "content")
		c.Upload("file=b&d="+name, "content")
	}
	c.Upload("file=a", "content")
	c.rotate(1)
	r := &reading{Table: c.Data.Table, left: 1}
	s := c.with(r)
	if renewed, err := s.Renew(t.Context(), 1); err == nil || renewed != 3 {
		t.Fatalf("%d files, %v", renewed, err)
	}
	r.left, r.from = 9, nil
	if renewed, err := s.Renew(t.Context(), 1); err != nil || renewed != 2 {
		t.Errorf("%d files, %v", renewed, err)
	}
	if slices.Contains(r.from, "files#alice") || !slices.Contains(r.from, "files#bob") {
		t.Errorf("it read %v", r.from)
	}
	expect.Equal(t, "items of the renewal", len(c.Partitions("linkkey")), 1)
}

func TestARenewalKeepsWhatHappensToALinkMeanwhile(t *testing.T) {
	t.Parallel()
	for what, k := range map[string]struct {
		meanwhile func(caller)
		renewed   int64
		limit     int64
	}{
		"another renewal": {meanwhile: func(c caller) { c.renew(1) }},
		"a limit": {renewed: 1, limit: 3, meanwhile: func(c caller) {
			c.Ask("PATCH /files/1/links/own", `{"downloads": 3}`).Want(200)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t)
			c.Upload("file=a", "content")
			c.must(c.download(c.links, c.Newest("alice"), "192.0.2.1"))
			c.links.Flush(t.Context())
			c.rotate(1)
			c.Calls.Once("table.Write", func() { k.meanwhile(c) })
			c.renew(k.renewed)
			own := c.uses(c.Newest("alice"))[0]
			expect.Equal(t, "the downloads that the new link knows", own.Downloads, 1)
			expect.Equal(t, "its limit", own.Limit, k.limit)
		})
	}
}
