package links_test

import (
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/table"
)

// TestEachStateGivesWaitsOrIsOver: a state that this version does not know must lose no mail and no link.
func TestEachStateGivesWaitsOrIsOver(t *testing.T) {
	t.Parallel()
	for state, want := range map[links.State]string{
		links.Live:     "gives",
		links.Held:     "waits",
		"another":      "waits",
		links.Expired:  "over",
		links.UsedUp:   "over",
		links.Ended:    "over",
		links.Deleted:  "over",
		links.Restored: "over",
		links.Refused:  "over",
		"unknown":      "over",
	} {
		got := map[string]bool{"gives": state.Gives(), "waits": state.Waits(), "over": state.Over()}
		for what, is := range got {
			expect.Equal(t, string(state)+" "+what, is, what == want)
		}
	}
}

// mark gives a file a status, as what checks files will.
func (c caller) mark(f files.File, s files.Status) {
	c.Helper()
	f.Status = s
	ops := []table.Op{table.Update(files.Key(f.Area, f.Owner, f.ID)).Set("status", string(s))}
	all, err := c.links.Of(c.Context(), f)
	c.must(err)
	for _, l := range all {
		ops = append(ops, table.Update(links.Items{}.ItemKey(l.Token)).Set("file", f))
	}
	c.must(c.Data.Table.Write(c.Context(), ops...))
}

// share makes links to the newest file, past the interface, which does not describe these states yet.
func (c caller) share(o links.Order) error {
	c.Helper()
	by := files.ByOf(identity.Identity{User: c.user()})
	_, _, err := c.links.Make(c.Context(), c.Service.Files(), c.Newest("alice"), by, o)
	return err
}

func TestAWaitingLinkWorksAfterwards(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("")
	all := c.LinksOf(f)
	c.mark(f, files.Held)
	for _, link := range all {
		c.Send("GET "+link, "").Want(403, "being checked")
	}
	expect.Equal(t, "messages that are sent", c.Deliver(), 2)
	c.mark(f, files.Ready)
	c.WantStatuses("once the file is ready", all, 200)
	c.mark(f, files.Refused)
	c.WantStatuses("once the file is refused", all, 401)
}

func TestNoticeOfALinkThatIsOverIsDropped(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.mark(c.SendToTwo(""), files.Refused)
	expect.Equal(t, "messages that are sent", c.Deliver(), 0)
}

func TestWaitingLinksMakeNoRoomForOthers(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Upload("file=a", "content")
	for range links.MaxLive - 1 {
		c.must(c.share(links.Order{}))
	}
	f := c.Newest("alice")
	c.mark(f, files.Held)
	expect.Fault(t, "one more", c.share(links.Order{}), fault.Conflict)
	c.mark(f, files.Ready)
	c.WantStatuses("afterwards", c.LinksOf(f), 200)
	c.mark(f, files.Refused)
	c.must(c.share(links.Order{}))
}

// TestNewLinksTakeNoRoomOfOneThatLivesAgain: the one that was used up gets another limit meanwhile.
func TestNewLinksTakeNoRoomOfOneThatLivesAgain(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.Upload("file=a", "content")
	for range links.MaxLive - 1 {
		c.must(c.share(links.Order{Options: files.Options{Limit: 1}}))
	}
	f := c.Newest("alice")
	of, err := c.links.Of(t.Context(), f)
	c.must(err)
	used, two := of[7], int64(2)
	c.must(failure(c.links.Take(t.Context(), used, "a claim", "somebody")))
	c.Calls.Once("table.Write", func() {
		c.must(failure(c.links.Edit(
			t.Context(),
			c.Service.Files(),
			f,
			used.Recipient,
			true,
			links.Change{Limit: &two},
		)))
	})
	expect.Fault(t, "one more", c.share(links.Order{}), fault.Conflict)
}

func TestAWaitingLinkIsSentToAnotherAddressInstead(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	f := c.SendToTwo("")
	c.mark(f, files.Held)
	dora := files.Message{Channel: files.Mail, To: "dora@example.com"}
	c.must(c.share(links.Order{To: []files.Message{dora}, Instead: f.Recipients[1], Uploader: true}))
	now := c.Newest("alice")
	expect.Equal(t, "links", len(now.Recipients), 2)
	c.mark(now, files.Ready)
	c.WantStatuses("once the file is ready", c.LinksOf(now), 200)
}
