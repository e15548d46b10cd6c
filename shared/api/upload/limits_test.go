package upload_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
)

func withLimits(n notify.Limits) apitest.Option {
	return func(s *service.Settings, _ *local.ServiceOptions) { s.Notices = n }
}

// beginOn returns ann some time after a day begins, so that what follows is in one window.
func beginOn(t *testing.T, n notify.Limits, after time.Duration) caller {
	t.Helper()
	c := begin(t, withLimits(n))
	c.Clock.Advance(day - time.Duration(c.Clock.Now().UnixNano())%day + after)
	return c.as("ann")
}

// wantWait checks that an answer asks to wait for about that long.
func wantWait(t *testing.T, a apitest.Answer, want time.Duration) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(a.Want(429).Header.Get("Retry-After"))
	wait := time.Duration(seconds) * time.Second
	if err != nil || wait > want || wait < want-time.Minute {
		t.Errorf("Retry-After is %q, want about %v", a.Header.Get("Retry-After"), want)
	}
	return wait
}

// TestNoticesOverTheLimitStoreNothing is about one limit; the tests of notify have the others.
func TestNoticesOverTheLimitStoreNothing(t *testing.T) {
	t.Parallel()
	c := beginOn(t, notify.Limits{PerRecipient: 1}, time.Minute)
	c.Upload("file=a&m=bob@example.com", "content")
	before, objects := len(c.Items()), len(c.Files())
	c.Calls.Reset()
	const next = "file=a&m=Bob@Example.com&c=%2B393401234567"
	wait := wantWait(t, c.post(next, "content"), day-time.Minute)
	c.wantNoneCreated("an upload")
	c.Ask("POST /uploads", `{"name":"a","length":1,"m":"BOB@example.com"}`).Want(429)
	expect.Equal(t, "items", len(c.Items()), before)
	expect.Equal(t, "objects", len(c.Files()), objects)
	c.Upload("file=a", "to nobody")
	c.Clock.Advance(wait)
	c.as("ann").Upload(next, "content")
}

const day = 24 * time.Hour

func TestEachFileOfAFormCountsTowardsLimits(t *testing.T) {
	t.Parallel()
	c := begin(t, withLimits(notify.Limits{PerDay: 4}))
	c.form("m=bob@example.com", someFiles("a", "b")).Want(200)
	c.form("m=bob@example.com", someFiles("a", "b", "c")).Want(429) // where two are allowed
	c.wantCounts(map[string]int{"files#": 2, "outbox#": 2})
	expect.Equal(t, "objects", len(c.Files()), 2)
}

// TestFailedUploadDoesNotCountTowardsLimits checks that the limit still allows one notice
// after each failed upload.
func TestFailedUploadDoesNotCountTowardsLimits(t *testing.T) {
	t.Parallel()
	const toBob = "file=a&m=bob@example.com"
	for name, fail := range map[string]func(c, small caller){
		"a form with one file over the limit": func(c, _ caller) {
			c.form("m=bob@example.com", someFiles("a", "b")).Want(429)
		},
		"a file for an unknown user": func(c, _ caller) { c.post(toBob+"&d=nobody", "x").Want(400) },
		"a file over the quota":      func(_, small caller) { small.post(toBob, "xx").Want(413) },
		"a session over the quota": func(_, small caller) {
			small.Ask("POST /uploads", `{"name":"a","length":2,"m":"bob@example.com"}`).Want(413)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := beginOn(t, notify.Limits{PerDay: 1, PerRecipient: 1}, time.Minute)
			fail(c, caller{c.Add("small", apitest.Quota(1))})
			c.post(toBob, "x").Want(200)
			c.post(toBob, "x").Want(429)
		})
	}
}

func TestRepeatDoesNotCountAgain(t *testing.T) {
	t.Parallel()
	c := begin(t, withLimits(notify.Limits{PerDay: 1}))
	for range 3 {
		c.keyed("file=a&m=bob@example.com", "content").Want(200)
	}
	c.post("file=a&m=bob@example.com", "content", files.KeyHeader, "another").Want(429)
}

func TestNotifyNeedsAnAddress(t *testing.T) {
	t.Parallel()
	mute := begin(t).Add("mute", func(u *users.User) { u.Email = "" })
	mute.Ask("POST /upload?file=a&notify=1", "content").Want(400, "no registered address")
	mute.Ask("POST /uploads", `{"name":"a","length":1,"notify":true}`).Want(400, "no registered address")
	mute.Ask("POST /upload?file=a&notify=0", "content").Want(200)
}

// TestNoticesCountWhenTheSessionCompletes completes sessions in another hour or on another
// day than they began. Their notices count then too.
func TestNoticesCountWhenTheSessionCompletes(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		most  notify.Limits
		later time.Duration // from begin to completion of the sessions
		wait  time.Duration // the expected Retry-After; 0 if both are completed
	}{
		"in the same hour they count once": {
			most:  notify.Limits{PerHour: 2, PerDay: 2, PerRecipient: 2},
			later: 30 * time.Minute,
		},
		"in another hour they count again": {
			most:  notify.Limits{PerHour: 2, PerDay: 4},
			later: time.Hour,
			wait:  time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, data := beginOn(t, k.most, 0), content(1000)
			const toZoe = `,"m":"zoe@example.com"`
			first, second := c.sent(toZoe, data), c.sent(toZoe, data)
			c.Clock.Advance(k.later)
			c = c.as("ann")
			if k.wait > 0 { // another takes one of the two places
				c.plan(toZoe, len(data))
			}
			c.completes(first, "", data)
			if k.wait > 0 {
				wantWait(t, c.complete(second, ""), k.wait)
				c.complete(first, "").Want(200) // a repeat gives the same answer
				c.wantCounts(map[string]int{"outbox#": 1})
				c.Clock.Advance(k.wait)
				c = c.as("ann")
			}
			c.completes(second, "", data)
			c.wantCounts(map[string]int{"files#": 2, "outbox#": 2})
		})
	}
}

// TestCompletingTwiceCountsOnce repeats the completion with missing parts and concurrently.
func TestCompletingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	c, data := beginOn(t, notify.Limits{PerHour: 2, PerDay: 4, PerRecipient: 3}, 0), content(1000)
	const toZoe, another = `,"m":"zoe@example.com"`, `{"name":"x","length":1,"m":"zoe@example.com"}`
	s := c.plan(toZoe, len(data))
	c.Clock.Advance(day)
	c = c.as("ann")
	for range 3 {
		c.complete(s, "").Want(400, "missing")
	}
	c.sendAll(s, data)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { c.completes(s, "", data) })
	}
	wg.Wait()
	c.wantCounts(map[string]int{"outbox#": 1})
	expect.Equal(t, "objects", len(c.Objects(blob.Files)), 1)
	c.begins(another) // the second of the hour
	c.Ask("POST /uploads", another).Want(429, "per user and hour")
	c.Clock.Advance(time.Hour)
	c = c.as("ann")
	c.begins(another) // the third of the day
	c.Ask("POST /uploads", another).Want(429, "per recipient and day")
}
