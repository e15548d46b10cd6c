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

// A session may begin on one day and complete on another. Its notices also count then.
func TestNoticesCountWhenTheSessionCompletes(t *testing.T) {
	t.Parallel()
	const hour, day = time.Hour, 24 * time.Hour
	for name, k := range map[string]struct {
		most         notify.Limits
		later        time.Duration // from begin to completion of the sessions
		refuses      bool
		wait, passes time.Duration // the expected Retry-After, and how long the test waits
	}{
		"in the same hour they count once": {notify.Limits{PerHour: 2, PerDay: 2, PerRecipient: 2}, 30 * time.Minute, false, 0, 0},
		"for a user in another hour":       {notify.Limits{PerHour: 2, PerDay: 4}, hour, true, hour, hour},
		"for a user on another day":        {notify.Limits{PerDay: 2}, day, true, day, day},
		"for a recipient on another day":   {notify.Limits{PerRecipient: 2}, day, true, day, day},
		"without a limit":                  {notify.Limits{}, day, false, 0, 0},
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
				c.complete(begun[0].ID, "") // a repeat gives the same answer
				if n := len(c.Partitions("outbox#")); n != 1 {
					t.Errorf("there are %d notices, want only that of the completed session", n)
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

// Clients may send missing parts and repeat the request, even concurrently.
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
