package upload_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
)

func withLimits(n notify.Limits) apitest.Option {
	return func(s *api.Settings, _ *local.ServiceOptions) { s.Notices = n }
}

// TestNoticesOverTheLimitStoreNothing is about one limit; the tests of notify have the others.
func TestNoticesOverTheLimitStoreNothing(t *testing.T) {
	t.Parallel()
	c := begin(t, withLimits(notify.Limits{PerRecipient: 1}))
	c.Clock.Advance(day - time.Duration(c.Clock.Now().UnixNano())%day + time.Minute) // all in one window
	c = c.as("ann")
	c.Put(c.bearer, "file=a&m=bob@example.com", "content")
	before, objects := len(c.Items()), len(c.Server.Files())
	c.Calls.Reset()
	const next = "file=a&m=Bob@Example.com&c=%2B393401234567"
	resp := c.post(next, "", strings.NewReader("content"))
	c.wantStatus("an upload", resp, 429)
	c.wantNoneCreated("an upload")
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if left := 24*60*60 - 60; err != nil || wait > left || wait < left-60 {
		t.Errorf("Retry-After is %q, want about %d", resp.Header.Get("Retry-After"), left)
	}
	c.call("POST", "/uploads", `{"name":"a","length":1,"m":"BOB@example.com"}`, 429, nil)
	if len(c.Items()) != before || len(c.Server.Files()) != objects {
		t.Errorf("there are %d items and %d objects, there were %d and %d", len(c.Items()), len(c.Server.Files()), before, objects)
	}
	c.Put(c.bearer, "file=a", "to nobody")
	c.Clock.Advance(time.Duration(wait) * time.Second)
	c = c.as("ann")
	c.Put(c.bearer, next, "content")
}

const day = 24 * time.Hour

func TestEachFileOfAFormCountsTowardsLimits(t *testing.T) {
	t.Parallel()
	c := begin(t, withLimits(notify.Limits{PerDay: 4}))
	one := aFile("file", "a", "1")
	c.Decode(c.form("m=bob@example.com", one, one), 200)
	c.wantStatus("three more where two are allowed", c.form("m=bob@example.com", one, one, one), 429)
	if got := fmt.Sprint(len(c.Partitions("files#")), len(c.Server.Files()), len(c.Partitions("outbox#"))); got != "2 2 2" {
		t.Errorf("there are %s records, objects and notices, want 2 of each", got)
	}
}

// TestFailedUploadDoesNotCountTowardsLimits checks that the limit still allows one notice
// after each failed upload.
func TestFailedUploadDoesNotCountTowardsLimits(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(caller){
		"a form with one file over the limit": func(c caller) {
			c.wantStatus("the form", c.form("m=bob@example.com", aFile("file", "a", "1"), aFile("file", "b", "2")), 429)
		},
		"a form without a file": func(c caller) {
			c.wantStatus("the form", c.form("m=bob@example.com"), 400)
		},
		"a body with another digest": func(c caller) {
			c.wantStatus("the body", c.post("file=a&m=bob@example.com", "", strings.NewReader("x"), "Repr-Digest", digestOf("y")), 400)
		},
		"a file for an unknown user": func(c caller) {
			c.wantStatus("the upload", c.post("file=a&m=bob@example.com&d=nobody", "", strings.NewReader("x")), 400)
		},
		"a file over the quota": func(c caller) {
			c.as("small").wantStatus("the upload", c.as("small").post("file=a&m=bob@example.com", "", strings.NewReader("xx")), 413)
		},
		"a session over the quota": func(c caller) {
			c.as("small").call("POST", "/uploads", `{"name":"a","length":2,"m":"bob@example.com"}`, 413, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, withLimits(notify.Limits{PerDay: 1, PerRecipient: 1}))
			c.AddUser("small", c.password, quota(1))
			c.Clock.Advance(day - time.Duration(c.Clock.Now().UnixNano())%day + time.Minute) // all in one window
			c = c.as("ann")
			fail(c)
			c.Decode(c.post("file=a&m=bob@example.com", "", strings.NewReader("x")), 200)
			c.wantStatus("another upload", c.post("file=a&m=bob@example.com", "", strings.NewReader("x")), 429)
		})
	}
}

func TestRepeatDoesNotCountAgain(t *testing.T) {
	t.Parallel()
	c := begin(t, withLimits(notify.Limits{PerDay: 1}))
	for range 3 {
		c.Decode(c.post("file=a&m=bob@example.com", "", strings.NewReader("content"), files.KeyHeader, "k"), 200)
	}
	c.wantStatus("another", c.post("file=a&m=bob@example.com", "", strings.NewReader("content"), files.KeyHeader, "another"), 429)
}

func TestNotifyNeedsAnAddressAndABoolean(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("mute", c.password, func(u *auth.User) { u.Email = "" })
	for query, status := range map[string]int{"notify=1": 200, "notify=0": 200, "notify=": 200, "notify=yes": 400, "notify=2": 400} {
		c.Decode(c.post("file=a&"+query, "", strings.NewReader("content")), status)
	}
	mute := c.as("mute")
	mute.wantStatus("notify without an address", mute.post("file=a&notify=1", "", strings.NewReader("content")), 400)
	plan := func(c caller, fields string) int {
		return c.Request("POST", "/uploads", strings.NewReader(`{"name":"a","length":1`+fields+`}`), "Authorization", "Bearer "+c.bearer).StatusCode
	}
	for fields, want := range map[string][2]int{"": {201, 201}, `,"notify":true`: {201, 400}, `,"notify":false`: {201, 201}, `,"notify":1`: {400, 400}} {
		if got := [2]int{plan(c, fields), plan(mute, fields)}; got != want {
			t.Errorf("a session with %q: %v, want %v", fields, got, want)
		}
	}
}

// TestNoticesCountWhenTheSessionCompletes completes sessions in another hour or on another
// day than they began. Their notices count then too.
func TestNoticesCountWhenTheSessionCompletes(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		most    notify.Limits
		later   time.Duration // from begin to completion of the sessions
		refuses bool
		wait    time.Duration // the expected Retry-After
	}{
		"in the same hour they count once": {notify.Limits{PerHour: 2, PerDay: 2, PerRecipient: 2}, 30 * time.Minute, false, 0},
		"for a user in another hour":       {notify.Limits{PerHour: 2, PerDay: 4}, time.Hour, true, time.Hour},
		"for a recipient on another day":   {notify.Limits{PerRecipient: 2}, day, true, day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.Notices = k.most })
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
				c.Clock.Advance(k.wait)
				c = c.as("ann")
			}
			c.wantFile(c.complete(begun[1].ID, ""), data)
			if got := fmt.Sprint(len(c.Partitions("files#")), len(c.Partitions("outbox#"))); got != "2 2" {
				t.Errorf("there are %s records and notices, want 2 of each", got)
			}
		})
	}
}

// TestCompletingTwiceCountsOnce repeats the completion with missing parts and concurrently.
func TestCompletingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	c := begin(t, func(s *api.Settings, _ *local.ServiceOptions) {
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
	if got := fmt.Sprint(len(c.Partitions("outbox#")), len(c.Objects(blob.Files))); got != "1 1" {
		t.Errorf("there are %s notices and objects, want 1 of each", got)
	}
	c.plan(`,"m":"zoe@example.com"`, 1) // the second of the hour
	c.refused("POST", "/uploads", `{"name":"x","length":1,"m":"zoe@example.com"}`, 429, "an hour")
	c.Clock.Advance(time.Hour)
	c = c.as("ann")
	c.plan(`,"m":"zoe@example.com"`, 1) // the third of the day
	c.refused("POST", "/uploads", `{"name":"x","length":1,"m":"zoe@example.com"}`, 429, "a recipient")
}
