package upload_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
)

// TestNoticesCountWhenTheSessionCompletes: a session may be begun on one day and
// completed on another, and a recipient gets no more on that for it.
func TestNoticesCountWhenTheSessionCompletes(t *testing.T) {
	t.Parallel()
	const hour, day = time.Hour, 24 * time.Hour
	for name, k := range map[string]struct {
		most         notify.Limits
		later        time.Duration // from the begin of the sessions to their completion
		refuses      bool
		wait, passes time.Duration // as it says, and how long is waited
	}{
		"in the same hour they were counted at the begin": {notify.Limits{PerHour: 2, PerDay: 2, PerRecipient: 2}, 30 * time.Minute, false, 0, 0},
		"a user's of another hour":                        {notify.Limits{PerHour: 2, PerDay: 4}, hour, true, hour, hour},
		"a user's of another day":                         {notify.Limits{PerDay: 2}, day, true, day, day},
		"a recipient's of another day":                    {notify.Limits{PerRecipient: 2}, day, true, day, day},
		"without a bound":                                 {notify.Limits{}, day, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := uploadsBegin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.Notices = k.most })
			c.Clock.Advance(day - time.Duration(c.Clock.Now().UnixNano())%day)
			c = c.as("ann")
			data := content(t, 1000)
			var begun []session
			for range 2 {
				s := c.plan(`,"m":"zoe@example.com"`, len(data))
				c.sendAll(s, data)
				begun = append(begun, s)
			}
			c.Clock.Advance(k.later)
			c = c.as("ann")
			if k.refuses { // another takes one of the two places
				c.plan(`,"m":"zoe@example.com"`, len(data))
			}
			c.wantFile(c.complete(begun[0].ID, ""), data)
			last := "/uploads/" + begun[1].ID + "/complete"
			if k.refuses {
				resp := c.call("POST", last, "", 429, nil)
				if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || time.Duration(wait)*time.Second > k.wait || time.Duration(wait)*time.Second < k.wait-time.Minute {
					t.Errorf("Retry-After is %q, want about %v", resp.Header.Get("Retry-After"), k.wait)
				}
				c.complete(begun[0].ID, "") // the file that is there is told again
				if n := len(c.Partitions("outbox#")); n != 1 {
					t.Errorf("%d notices wait, want that of the session which is complete", n)
				}
				c.Clock.Advance(k.passes)
				c = c.as("ann")
			}
			c.wantFile(c.complete(begun[1].ID, ""), data)
			if got := fmt.Sprint(len(c.Partitions("files#")), len(c.Partitions("outbox#"))); got != "2 2" {
				t.Errorf("there are %s records and notices, want 2 of each", got)
			}
		})
	}
}

// TestCompletingTwiceCountsOnce: what is missing may be sent and the request
// repeated, by several at once too.
func TestCompletingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	c := uploadsBegin(t, func(s *api.Settings, _ *local.ServiceOptions) {
		s.Notices = notify.Limits{PerHour: 2, PerDay: 4, PerRecipient: 3}
	})
	c.Clock.Advance(24*time.Hour - time.Duration(c.Clock.Now().UnixNano())%(24*time.Hour))
	c = c.as("ann")
	data := content(t, 1000)
	s := c.plan(`,"m":"zoe@example.com"`, len(data))
	c.Clock.Advance(24 * time.Hour)
	c = c.as("ann")
	for range 3 {
		c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "missing")
	}
	c.sendAll(s, data)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { c.wantFile(c.complete(s.ID, ""), data) })
	}
	wg.Wait()
	c.plan(`,"m":"zoe@example.com"`, 1) // the second of the hour
	c.refused("POST", "/uploads", `{"name":"x","length":1,"m":"zoe@example.com"}`, 429, "an hour")
	c.Clock.Advance(time.Hour)
	c = c.as("ann")
	c.plan(`,"m":"zoe@example.com"`, 1) // the third of the day
	c.refused("POST", "/uploads", `{"name":"x","length":1,"m":"zoe@example.com"}`, 429, "a recipient")
}
