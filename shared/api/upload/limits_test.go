package upload_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/api/apitest"
	"ferry/shared/auth"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
)

func most(n notify.Limits) apitest.Option {
	return func(s *api.Settings, _ *local.ServiceOptions) { s.Notices = n }
}

func TestNoticesOverTheLimitStoreNothing(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		most notify.Limits
		last string // recipients still allowed after bob@example.com
		next string // recipients that are then over the limit
		wait time.Duration
	}{
		"of a user in an hour": {notify.Limits{PerHour: 2}, "m=carla@example.com", "m=dan@example.com", time.Hour},
		"of a user in a day":   {notify.Limits{PerDay: 3}, "m=carla@example.com&c=%2B393401234567", "m=dan@example.com", 24 * time.Hour},
		"to a recipient":       {notify.Limits{PerRecipient: 1}, "m=carla@example.com", "m=Bob@Example.com&c=%2B393401234567", 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := uploadBegin(t, most(k.most))
			c.Clock.Advance(day - time.Duration(c.Clock.Now().UnixNano())%day + time.Minute) // all in one window
			c = c.as("ann")
			for _, query := range []string{"m=bob@example.com", k.last} {
				c.Decode(c.post("file=a&"+query, "", strings.NewReader("content")), 200)
			}
			before, objects := len(c.Items()), len(c.Server.Files())
			c.Calls.Reset()
			resp := c.post("file=a&"+k.next, "", strings.NewReader("content"))
			c.wantStatus(k.next, resp, 429)
			c.wantNoneCreated(k.next)
			wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if left := k.wait - time.Minute; err != nil || time.Duration(wait)*time.Second > left || time.Duration(wait)*time.Second < left-time.Minute {
				t.Errorf("Retry-After is %q, want about %v", resp.Header.Get("Retry-After"), left)
			}
			if len(c.Items()) != before || len(c.Server.Files()) != objects {
				t.Errorf("there are %d items and %d objects, there were %d and %d", len(c.Items()), len(c.Server.Files()), before, objects)
			}
			session := `{"name":"a","length":1,"m":"dan@example.com"}`
			if k.most.PerRecipient > 0 {
				session = `{"name":"a","length":1,"m":"BOB@example.com"}`
			}
			c.wantStatus("a session", c.Request("POST", "/uploads", strings.NewReader(session), "Authorization", "Bearer "+c.bearer), 429)
			if n := len(c.Partitions("upload")); n != 0 {
				t.Errorf("there are %d items of sessions", n)
			}
			c.Decode(c.post("file=a", "", strings.NewReader("content")), 200) // to nobody
			c.Clock.Advance(time.Duration(wait) * time.Second)
			c = c.as("ann")
			c.Decode(c.post("file=a&"+k.next, "", strings.NewReader("content")), 200)
		})
	}
}

const day = 24 * time.Hour

func TestEachFileOfAFormCountsTowardsLimits(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t, most(notify.Limits{PerDay: 4}))
	form := func(files int) int {
		kind, body := encode(slices.Repeat([]formPart{aFile("file", "a", "1")}, files)...)
		return c.post("m=bob@example.com", kind, strings.NewReader(body)).StatusCode
	}
	if got := form(2); got != 200 {
		t.Errorf("two files: status %d", got)
	}
	if got := form(3); got != 429 {
		t.Errorf("three more where two are allowed: status %d", got)
	}
	if got := fmt.Sprint(len(c.Partitions("files#")), len(c.Server.Files()), len(c.Partitions("outbox#"))); got != "2 2 2" {
		t.Errorf("there are %s records, objects and notices, want 2 of each", got)
	}
}

// After each failed upload the limit still allows one notice.
func TestFailedUploadDoesNotCountTowardsLimits(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(uploadCaller){
		"a form with one file over the limit": func(c uploadCaller) {
			kind, body := encode(aFile("file", "a", "1"), aFile("file", "b", "2"))
			c.wantStatus("the form", c.post("m=bob@example.com", kind, strings.NewReader(body)), 429)
		},
		"a form without a file": func(c uploadCaller) {
			c.wantStatus("the form", c.form("m=bob@example.com"), 400)
		},
		"a body with another digest": func(c uploadCaller) {
			c.wantStatus("the body", c.post("file=a&m=bob@example.com", "", strings.NewReader("x"), "Repr-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:"), 400)
		},
		"a file for an unknown user": func(c uploadCaller) {
			c.wantStatus("the upload", c.post("file=a&m=bob@example.com&d=nobody", "", strings.NewReader("x")), 400)
		},
		"a file over the quota": func(c uploadCaller) {
			c.as("small").wantStatus("the upload", c.as("small").post("file=a&m=bob@example.com", "", strings.NewReader("xx")), 413)
		},
		"a session over the quota": func(c uploadCaller) {
			small := c.as("small")
			small.wantStatus("the session", small.Request("POST", "/uploads", strings.NewReader(`{"name":"a","length":2,"m":"bob@example.com"}`),
				"Authorization", "Bearer "+small.bearer), 413)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := uploadBegin(t, most(notify.Limits{PerDay: 1, PerRecipient: 1}))
			c.AddUser("small", c.password, func(u *auth.User) { u.Quota = 1 })
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
	c := uploadBegin(t, most(notify.Limits{PerDay: 1}))
	for range 3 {
		c.Decode(c.post("file=a&m=bob@example.com", "", strings.NewReader("content"), files.KeyHeader, "k"), 200)
	}
	c.wantStatus("another", c.post("file=a&m=bob@example.com", "", strings.NewReader("content"), files.KeyHeader, "another"), 429)
}

func TestNotifyNeedsAnAddressAndABoolean(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	c.AddUser("mute", c.password, func(u *auth.User) { u.Email = "" })
	for query, status := range map[string]int{"notify=1": 200, "notify=0": 200, "notify=": 200, "notify=yes": 400, "notify=2": 400} {
		c.Decode(c.post("file=a&"+query, "", strings.NewReader("content")), status)
	}
	mute := c.as("mute")
	mute.wantStatus("notify without an address", mute.post("file=a&notify=1", "", strings.NewReader("content")), 400)
	plan := func(c uploadCaller, fields string) int {
		return c.Request("POST", "/uploads", strings.NewReader(`{"name":"a","length":1`+fields+`}`), "Authorization", "Bearer "+c.bearer).StatusCode
	}
	for fields, want := range map[string][2]int{"": {201, 201}, `,"notify":true`: {201, 400}, `,"notify":false`: {201, 201}, `,"notify":1`: {400, 400}} {
		if got := [2]int{plan(c, fields), plan(mute, fields)}; got != want {
			t.Errorf("a session with %q: %v, want %v", fields, got, want)
		}
	}
}
