package file_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// overtake runs f before the next call of this name.
func (s sharer) overtake(call string, f func()) {
	s.Helper()
	var done atomic.Bool
	s.Calls.Before(call, func() error {
		if !done.Swap(true) {
			f()
		}
		return nil
	})
}

func TestAChangeOfALinkIsKeptByWhatHappensAtTheSameMoment(t *testing.T) {
	t.Parallel()
	const ends, protects = "DELETE /files/1/links/own", "PATCH /files/1/links/own"
	const limits = `{"password": "open sesame", "downloads": 1}`
	for what, k := range map[string]struct{ change, body, other, otherBody string }{
		"a link ends while its file is deleted": {change: ends, other: "DELETE /files/1"},
		"a link ends while its file gets another name": {
			change:    ends,
			other:     "PATCH /files/1",
			otherBody: `{"name": "b.txt"}`,
		},
		"a link ends while another is made": {
			change:    ends,
			other:     "POST /files/1/links",
			otherBody: "{}",
		},
		"a link is protected while its file is deleted": {change: protects, body: limits, other: "DELETE /files/1"},
		"a link is protected while it is made anew": {
			change: protects,
			body:   limits,
			other:  "POST /files/1/links/own/renew",
		},
		"a link is protected while its file gets a name": {
			change:    protects,
			body:      limits,
			other:     "PATCH /files/1",
			otherBody: `{"name": "b.txt"}`,
		},
		"a link is protected while it gets another expiry": {
			change:    protects,
			body:      limits,
			other:     protects,
			otherBody: `{"expires": "2h"}`,
		},
		"a link is protected while it gets another limit": {
			change:    protects,
			body:      limits,
			other:     protects,
			otherBody: `{"downloads": 3}`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.share("a.txt", "0123456789")
			s.overtake("table.Write", func() { s.Ask(k.change, k.body).Want(200) })
			if a := s.Ask(k.other, k.otherBody); a.Code > 201 {
				t.Fatalf("the slower request: status %d, %s", a.Code, a.Header.Get("Ferry-Error"))
			}
			s.Calls.Before("table.Write", nil)
			if k.other == "DELETE /files/1" {
				s.Ask("POST /files/1/restore", "").Want(200)
			}
			own := s.links("1")[0]
			if (own.State == "ended") != (k.change == ends) || own.Protected == (k.change == ends) {
				t.Errorf("the link is %+v", own)
			}
			s.Send("GET "+own.LinkURL, "").Want(401)
			for key, item := range s.Items() {
				if strings.HasPrefix(key, "files#") && !strings.Contains(item, `"limited":true`) {
					t.Errorf("the record does not know of limits: %s", item)
				}
			}
		})
	}
}

func TestALinkThatHasEndedMeanwhileCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.share("a.txt", "0123456789")
	s.overtake("table.Write", func() { s.Ask("DELETE /files/1/links/own", "").Want(200) })
	s.Ask("PATCH /files/1/links/own", `{"downloads": 5}`).Want(409)
	s.Send("GET "+link, "").Want(401)
}

func TestNewLinksTakeNoRoomOfALinkThatLivesAgain(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.share("a.txt", "0123456789")
	var used wire.Link
	for range 39 {
		used = s.moreLinks(`{"downloads": 1}`)[0]
	}
	s.Get(s.claim(used.LinkURL))
	s.overtake("table.Write", func() { s.Ask("PATCH /files/1/links/"+used.ID, `{"downloads": 2}`).Want(200) })
	s.Ask("POST /files/1/links", "{}").Want(409)
	s.Ask("DELETE /files/1", "").Want(200)
	s.Ask("POST /files/1/restore", "").Want(200)
	expect.Equal(t, "the links, which have all moved at once", len(s.links("1")), 40)
	s.claim(used.LinkURL)
}

func TestLinksOfAFileThatNeverExpiresStay(t *testing.T) {
	t.Parallel()
	s := begin(t, forever)
	s.InProcess("it removes expired items")
	link := s.Upload("file=a.txt&expires=1d", "0123456789").LinkURL
	s.Ask("PATCH /files/1", `{"expires": ""}`).Want(200)
	s.Clock.Advance(40 * 24 * time.Hour)
	_, err := s.Data.Table.DeleteExpired(t.Context(), s.Clock.Now())
	expect.NoErr(t, err)
	expect.Equal(t, "the bytes", s.Get(link), "0123456789")
	if a := s.Ask("GET /files/1", ""); strings.Contains(a.Text, "expires") {
		t.Errorf("the record is %s", a.Text)
	}
}

func TestAFileThatGetsMoreTimeIsNotMovedByASweep(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it sweeps")
	s.Upload("file=a.txt&expires=1h", "0123456789")
	s.Clock.Advance(59 * time.Minute)
	s.Bearer = s.Login("ann", apitest.Password)
	reading, goOn, patched := make(chan bool), make(chan bool), make(chan int)
	s.overtake("table.Write", func() { // the PATCH has read the record
		close(reading)
		<-goOn
	})
	go func() { patched <- s.Ask("PATCH /files/1", `{"expires": "10d"}`).Code }()
	<-reading
	s.Clock.Advance(2 * time.Minute)
	s.overtake("table.Write", func() { // the sweep has read it too
		close(goOn)
		expect.Equal(t, "the status of the PATCH", <-patched, 200)
	})
	r, err := s.Service.Sweep(t.Context())
	s.Calls.Before("table.Write", nil)
	if err != nil || r.Moved != 0 || r.Failed != 0 {
		t.Fatalf("sweeping: %+v, %v", r, err)
	}
	s.Bearer = s.Login("ann", apitest.Password)
	s.Ask("GET /files/1", "").Want(200)
	for _, day := range []struct {
		days  time.Duration
		moved int
	}{{1, 0}, {10, 1}} {
		s.Clock.Advance(day.days * 24 * time.Hour)
		if r, err := s.Service.Sweep(t.Context()); err != nil || r.Moved != day.moved {
			t.Errorf("a sweep %d days later: %+v, %v", day.days, r, err)
		}
	}
}

func TestALinkKeepsTheReasonOfItsEnd(t *testing.T) {
	t.Parallel()
	s := begin(t)
	why := func(want, link string) { t.Helper(); s.Send("GET "+link, "").Want(401, want) }
	ended, used := s.share("a", "1"), s.Upload("file=b&downloads=1", "2").LinkURL
	s.Ask("DELETE /files/1/links/own", "").Want(200)
	s.Ask("DELETE /files/1", "").Want(200)
	why("was ended", ended)
	s.Get(s.claim(used))
	s.Ask("POST /files/2/links/own/renew", "").Want(200)
	why("is used up", used)
	s.share("c", "3")
	back := s.backUp("3")
	s.Ask("POST /files/3/restore", "").Want(200)
	why("was restored", back)
}

func TestARevokedKeyEndsOnlyTheLinksThatItMade(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it revokes a key")
	s.share("a", "1")
	s.revoke()
	s.Clock.Advance(10 * time.Minute)
	deleted, expired := s.share("b", "2"), s.Upload("file=c&expires=1h", "3").LinkURL
	s.Ask("DELETE /files/2", "").Want(200)
	s.Clock.Advance(2 * time.Hour)
	for link, want := range map[string]string{
		deleted: "was deleted", expired: "has expired", expired[:len(expired)-3] + "abc": "no such link",
	} {
		s.Send("GET "+link, "").Want(401, want)
	}
}

// revoke revokes the key of all links a minute later.
func (s sharer) revoke() {
	s.Helper()
	s.Clock.Advance(time.Minute)
	_, err := s.Data.Ports.Key.Rotate(s.Context(), s.Data.Ports.Table, s.Data.Ports.Random, 1)
	expect.NoErr(s.TB, err)
}

func TestALinkThatWasLostIsSaidToBe(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it loses a link")
	link := s.Upload("file=a.txt&downloads=3", "0123456789").LinkURL
	s.loseLinks()
	s.Send("GET "+link, "").Want(401)
	expect.Equal(t, "the state", s.links("1")[0].State, "unknown")
	s.Ask("PATCH /files/1/links/own", `{"downloads": 3}`).Want(404)
	s.Ask("DELETE /files/1/links/own", "").Want(404)
	s.Ask("POST /files/1/links/own/renew", "").Want(200)
	own := s.links("1")[0]
	expect.Equal(t, "the state", own.State, "live")
	expect.Equal(t, "the bytes", s.Get(own.LinkURL), "0123456789")
}

func TestTooManyNewLinksAfterARevocationAreRefused(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it revokes a key")
	s.share("a.txt", "0123456789")
	share := func(from, n, want int) (links []wire.Link) {
		t.Helper()
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"p%d@example.com"`, from+i)
		}
		made := s.Ask("POST /files/1/links", `{"m": [`+strings.Join(all, ",")+`]}`).Want(want)
		return apitest.Read[struct{ Links []wire.Link }](made).Links
	}
	for _, l := range share(0, 20, 201) {
		s.Ask("DELETE /files/1/links/"+l.ID, "").Want(200)
	}
	share(20, 19, 201)
	s.revoke()
	s.Clock.Advance(2 * time.Minute)
	share(40, 20, 409)
	share(40, 19, 201)
}

func TestWhatTheOwnerSharesIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	s := begin(t)
	bob := sharer{s.As("bob")}
	bob.Ask("POST /upload?file=a.txt&d=ann&m=dora%40example.com", "0123456789").Want(200)
	s.Ask("POST /files/1/links", `{"m": ["carla@example.com"]}`).Want(201)
	own := s.moreLinks(`{}`)[0].LinkURL
	wantText(t, s.Send("GET "+own+"&about", "").Want(200), `"sender":"ann"`)
	wantText(t, s.Send("GET "+s.links("1")[0].LinkURL+"&about", "").Want(200), `"sender":"bob"`)
	_, token, _ := strings.Cut(own, "?")
	hers, his := s.Ask("GET /files/1", "").Want(200), bob.Ask("GET /files/1?d=ann", "").Want(200)
	if wantText(t, hers, `"to":"carla@example.com"`, token); strings.Contains(hers.Text, "dora") {
		t.Errorf("the owner sees %s", hers.Text)
	}
	wantText(t, his, `"to":"dora@example.com"`)
	if strings.Contains(his.Text, "carla") || strings.Contains(his.Text, token) {
		t.Errorf("the uploader sees %s", his.Text)
	}
}

func TestAReceiptDoesNotSayWhomTheOwnerHasSentALinkTo(t *testing.T) {
	t.Parallel()
	s := begin(t)
	bob := sharer{s.As("bob")}
	bob.Ask("POST /upload?file=a.txt&d=ann&notify=1", "0123456789").Want(200)
	s.Ask("POST /files/1/links", `{"m": ["carla@example.com"]}`).Want(201)
	later := s.links("1")[1]
	s.Get("/download/file?k=" + s.Data.Ports.Key.Recipient("files", "ann", 1, later.ID))
	for _, n := range s.Outbox() {
		if n.Kind == "receipt" && n.Recipient != "" {
			t.Errorf("the receipt tells of %s", n.Recipient)
		}
	}
}

// forever keeps files without end.
func forever(s *service.Settings, _ *local.ServiceOptions) { s.Retention.KeepDays = 0 }

// loseLinks removes all links, as a damaged table has lost them.
func (s sharer) loseLinks() {
	s.Helper()
	for key := range s.Partitions("link#") {
		pk, sk, _ := strings.Cut(key, " ")
		expect.NoErr(s.TB, s.Data.Table.Write(s.Context(), table.Delete(table.Key{PK: pk, SK: sk})))
	}
}
