package upload_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/keys"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// request makes a request for files, and returns its link.
func (c caller) request(body string) wire.Request {
	c.Helper()
	return apitest.Read[wire.Request](c.Ask("POST /requests", body).Want(201))
}

// requests lists the caller's requests, newest first.
func (c caller) requests() []wire.Request {
	c.Helper()
	return apitest.Read[struct{ Requests []wire.Request }](c.Ask("GET /requests", "").Want(200)).Requests
}

func TestAGuestSendsFilesToWhoAsked(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request(`{"title":"Photos","message":"All\r\nof them"}`).LinkURL
	about := c.Send("GET "+link, "").Want(200)
	if !strings.Contains(about.Text, `"title":"Photos"`) || !strings.Contains(about.Text, `"maker":"ann"`) {
		t.Errorf("a guest sees %s", about.Text)
	}
	c.Send("GET "+link+").", "").Want(200) // as mails end it
	a := c.Send("PUT "+link+"&file=a.txt&by=Carla", "hello").Want(200)
	expect.Equal(t, "the answer", a.Text, `{"files":[{"name":"a.txt","length":5}]}`+"\n")
	f := c.Ask("GET /download/list", "").Want(200).File()
	expect.Equal(t, "the bytes", c.Get(f.LinkURL), "hello")
	for _, more := range []string{
		"d=bob", "m=bob@example.com", "c=%2B393401234567", "i=x", "notify=1", "expires=1d", "downloads=1",
		"password=x",
	} {
		c.Send("PUT "+link+"&file=a.txt&"+more, "hello").Want(400)
	}
}

func TestARequestHoldsItsLimitsHoweverManyComeAtOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	made := c.request(`{"files":3,"bytes":100}`)
	var all sync.WaitGroup
	codes := make([]int, 12)
	for i := range codes {
		all.Go(func() { codes[i] = c.Send("PUT "+made.LinkURL+fmt.Sprint("&file=", i), "hello").Code })
	}
	all.Wait()
	got := map[int]int{}
	for _, code := range codes {
		got[code]++
	}
	if got[200] != 3 || got[403] != len(codes)-3 {
		t.Errorf("the answers are %v", got)
	}
	c.Ask("PATCH /requests/"+made.ID, `{"files":9}`).Want(200)
	c.Send("PUT "+made.LinkURL+"&file=x", strings.Repeat("x", 86)).Want(413)
	c.Send("PUT "+made.LinkURL+"&file=x", strings.Repeat("x", 85)).Want(200)
	now := c.requests()
	if len(now) != 1 || now[0].Arrived != (wire.Arrivals{Files: 4, Bytes: 100}) {
		t.Errorf("the requests are %+v", now)
	}
}

func TestARequestThatHasEndedTakesNoMore(t *testing.T) {
	t.Parallel()
	c := begin(t)
	ended, expired := c.request("{}"), c.request(`{"expires":"1h"}`)
	c.Ask("DELETE /requests/"+ended.ID, "").Want(204)
	c.Send("PUT "+ended.LinkURL+"&file=a", "1").Want(401, "ended")
	c.Ask("DELETE /requests/"+ended.ID, "").Want(404)
	c.as("bob").Ask("PATCH /requests/"+expired.ID, "{}").Want(404)
	c.Clock.Advance(time.Hour)
	c.Send("PUT "+expired.LinkURL+"&file=a", "1").Want(401, "expired")
	c.Send("PUT "+ended.LinkURL+"x&file=a", "1").Want(401)
	for _, place := range []string{
		"", "short", strings.Repeat("\xff", 16) + "ann", strings.Repeat("0", 16) + "\xff",
		strings.Repeat("0", 16) + "ANN",
	} {
		token := "in_" + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", keys.TokenSize)+place))
		c.Send("GET /requests/in?k="+token, "").Want(401)
	}
	c.wantNothing("requests that have ended")
}

func TestAProtectedRequestNeedsItsPasswordOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request(`{"password":"open sesame"}`).LinkURL
	c.Send("PUT "+link+"&file=a", "1").Want(401)
	c.Send("PUT "+link+"&file=a", "1", "Ferry-Guest", strings.Repeat("A", 26)).Want(401)
	a := c.Send("PUT "+link+"&file=a", "1", "Ferry-Link-Password", "open sesame").Want(200)
	c.Send("PUT "+link+"&file=b", "2", "Ferry-Guest", a.Header.Get("Ferry-Guest")).Want(200)
	other := c.request(`{"password":"another"}`).LinkURL
	c.Send("PUT "+other+"&file=b", "2", "Ferry-Guest", a.Header.Get("Ferry-Guest")).Want(401)
}

func TestAGuestSendsALargeFileInASession(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request(`{"files":1}`).LinkURL
	const plan = `{"name":"film.mp4","length":5}`
	guest := c.guestBegins(link, plan).Want(201)
	s := apitest.Read[session](guest)
	c.asGuest(link, guest, "POST /uploads", plan).Want(403)
	c.asGuest(link, apitest.Answer{}, "GET "+s.path(""), "").Want(404)
	signed := c.asGuest(link, guest, "POST "+s.path("/parts"), `{"numbers":[1]}`).Want(200)
	c.put(apitest.Read[struct{ Parts []part }](signed).Parts[0], "hello").Want(200)
	done := c.asGuest(link, guest, "POST "+s.path("/complete"), "").Want(200)
	expect.Equal(t, "the answer", done.Text, `{"files":[{"name":"film.mp4","length":5}]}`+"\n")
	c.asGuest(link, guest, "POST /uploads", `{"name":"a","length":5,"m":"bob@example.com"}`).Want(400)
	c.asGuest(link, guest, "GET /download/list", "").Want(401)
	expect.Equal(t, "the maker's list", c.names(), []string{"film.mp4"})
}

// asGuest sends a request with the token of a request's link, and as the guest of an earlier answer.
func (c caller) asGuest(link string, earlier apitest.Answer, request, body string) apitest.Answer {
	c.Helper()
	_, token, _ := strings.Cut(link, "&k=")
	return c.Send(request, body, "Authorization", "Bearer "+token, "Content-Type", "application/json",
		"Ferry-Guest", earlier.Header.Get("Ferry-Guest"))
}

// guestBegins begins a session as a new guest.
func (c caller) guestBegins(link, plan string) apitest.Answer {
	c.Helper()
	return c.asGuest(link, apitest.Answer{}, "POST /uploads", plan)
}

func TestTheMakerSeesWhoHasSentWhat(t *testing.T) {
	t.Parallel()
	c := begin(t)
	made := c.request(`{"title":"Photos"}`)
	c.Send("PUT "+made.LinkURL+"&file=a.txt&by=Carla+%F0%9F%8E%89", "hello").Want(200)
	got := apitest.Read[struct{ Request, By, Uploader string }](c.Ask("GET /files/1", "").Want(200))
	expect.Equal(t, "the file", got, struct{ Request, By, Uploader string }{made.ID, "Carla 🎉", ""})
	plan := `{"name":"film.mp4","length":5,"by":"Dan"}`
	c.guestBegins(made.LinkURL, plan).Want(201)
	open := apitest.Read[struct {
		Uploads []struct{ Request, By string }
	}](c.Ask("GET /uploads", "").Want(200)).Uploads
	expect.Equal(t, "the session", open[0], struct{ Request, By string }{made.ID, "Dan"})
	bad := []string{strings.Repeat("x", 101), "a%0Ab"}
	if !c.InStack() { // the gateway makes UTF-8 of it
		bad = append(bad, "%ff")
	}
	for _, by := range bad {
		c.Send("PUT "+made.LinkURL+"&file=a.txt&by="+by, "hello").Want(400, "the parameter by")
	}
	c.Ask("POST /uploads", plan).Want(400, "the parameter by is only for guests")
}

func TestAGuestSeesWhatTheySentAndNobodyElseDoes(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request("{}").LinkURL
	sees := func(a apitest.Answer) (names []string) {
		about := apitest.Read[wire.RequestAbout](c.Send("GET "+link, "", "Ferry-Guest", a.Header.Get("Ferry-Guest")).
			Want(200))
		for _, f := range about.Sent {
			names = append(names, f.Name)
		}
		return names
	}
	first := c.Send("PUT "+link+"&file=a", "1").Want(200)
	other := c.Send("PUT "+link+"&file=b", "1").Want(200)
	cookie := strings.Split(first.Header.Get("Set-Cookie"), ";")[0]
	planted := c.Send("PUT "+link+"&file=c", "1", "Cookie", cookie+"; "+cookie).Want(200) // one of them is a neighbour's
	if planted.Header.Get("Ferry-Guest") == first.Header.Get("Ferry-Guest") {
		t.Error("one of two cookies is taken")
	}
	c.Send("PUT "+link+"&file=c", "1", "Cookie", cookie).
		Want(200).
		WantHeaders("Ferry-Guest", first.Header.Get("Ferry-Guest"))
	expect.Equal(t, "the first guest sees", sees(first), []string{"c", "a"})
	expect.Equal(t, "another guest sees", sees(other), []string{"b"})
	expect.Equal(t, "a new guest sees", len(sees(apitest.Answer{})), 0)
	c.asGuest(link, first, "POST /uploads", `{"name":"film","length":5}`).Want(201)
	c.asGuest(link, other, "POST /uploads", `{"name":"e","length":5}`).Want(201)
	list := c.asGuest(link, first, "GET /uploads?limit=1", "").Want(200)
	if !strings.Contains(list.Text, "film") || list.Header.Get("Link") != "" {
		t.Errorf("a guest's list goes on at another guest's session: %s %v", list.Text, list.Header)
	}
	if text := c.asGuest(link, other, "GET /uploads", "").Want(200).Text; strings.Contains(text, "film") ||
		!strings.Contains(text, `"e"`) {
		t.Errorf("a guest's list of sessions is %s", text)
	}
}

func TestARepeatedUploadOfAGuestIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request(`{"files":2}`).LinkURL
	key := []string{"Idempotency-Key", "k"}
	first := c.Send("PUT "+link+"&file=a", "1", key...).Want(200)
	again := c.Send("PUT "+link+"&file=a", "1", append(key, "Ferry-Guest", first.Header.Get("Ferry-Guest"))...).
		Want(200)
	expect.Equal(t, "the answer", again.Text, first.Text)
	c.Send("PUT "+link+"&file=a", "2", key...).Want(200) // by another guest
	full := c.Send("PUT "+link+"&file=a", "1", append(key, "Ferry-Guest", first.Header.Get("Ferry-Guest"))...)
	expect.Equal(t, "the answer once the request is full", full.Want(200).Text, first.Text)
	unnamed := c.request("{}").LinkURL
	begun := c.Send("GET "+unnamed, "").Want(200)
	key = append(key, "Ferry-Guest", begun.Header.Get("Ferry-Guest"))
	first = c.Send("PUT "+unnamed, "1", key...).Want(200)
	c.Clock.Advance(time.Second)
	expect.Equal(t, "the answer later", c.Send("PUT "+unnamed, "1", key...).Want(200).Text, first.Text)
	c.Ask("DELETE /files/3", "").Want(200)
	c.Send("PUT "+unnamed, "1", key...).Want(410)
	expect.Equal(t, "the maker's list", c.names(), []string{"a", "a"})
	c.asGuest(link, apitest.Answer{}, "GET /uploads", "").Want(200)
}

func TestASourceHasFewSessionsAndARequestAHundred(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs sources")
	made := c.request(`{"files":200}`)
	for range 5 {
		c.guestBegins(made.LinkURL, `{"name":"a","length":5}`).Want(201)
	}
	c.guestBegins(made.LinkURL, `{"name":"a","length":5}`).Want(429)
	for i := range 96 {
		by := files.By{Request: made.ID, Guest: fmt.Sprint(i), Source: fmt.Sprint(i / 4)}
		_, err := c.Service.Files().BeginSession(t.Context(), by, files.Plan{Owner: "ann", Name: "a", Length: 1}, nil)
		if full := i == 95; full != fault.Is(err, fault.TooMany) || !full && err != nil {
			t.Fatalf("session %d: %v", i+6, err)
		}
	}
	c.Ask("POST /uploads", `{"name":"a","length":5}`).Want(201) // the maker's own do not count
}

func TestNoMoreIsReadThanARequestTakes(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs the calls")
	made := c.request(`{"bytes":10}`)
	begun := c.guestBegins(made.LinkURL, `{"name":"a"}`).Want(201)
	of := "POST /uploads/" + apitest.Read[session](begun).ID + "/parts"
	c.asGuest(made.LinkURL, begun, of, `{"numbers":[1],"length":11}`).Want(413)
	parts := c.asGuest(made.LinkURL, begun, of, `{"numbers":[1],"length":10}`).Want(200)
	c.Calls.Reset()
	c.Send("PUT "+made.LinkURL+"&file=a", "12345678901").Want(413)
	kind, body := encode(aFile("a", strings.Repeat("x", 2<<20)))
	c.Send("POST "+made.LinkURL, body, "Content-Type", kind).Want(413)
	c.wantNoneCreated("more bytes than a request takes")
	c.Send("PUT "+made.LinkURL+"&file=a", "1234567890").Want(200)
	c.Send("PUT "+made.LinkURL+"&file=empty", "").Want(200) // which needs no room
	c.Ask("DELETE /requests/"+made.ID, "").Want(204)
	c.put(apitest.Read[struct{ Parts []part }](parts).Parts[0], "1234567890").Want(403, "ended")
}

func TestRoomIsReservedWhenASessionBegins(t *testing.T) {
	t.Parallel()
	c := begin(t)
	made := c.request(`{"bytes":10,"files":2}`)
	begun := c.guestBegins(made.LinkURL, `{"name":"a","length":8}`).Want(201)
	c.Send("PUT "+made.LinkURL+"&file=b", "123").Want(413)
	c.asGuest(made.LinkURL, begun, "POST /uploads", `{"name":"b","length":3}`).Want(413)
	c.Send("PUT "+made.LinkURL+"&file=b", "12").Want(200)
	c.Send("PUT "+made.LinkURL+"&file=c", "").Want(403)
	s := apitest.Read[session](begun)
	c.asGuest(made.LinkURL, begun, "DELETE "+s.path(""), "").Want(204)
	c.Send("PUT "+made.LinkURL+"&file=d", "12345678").Want(200)
	c.Send("PUT "+made.LinkURL+"&file=e", "1").Want(403)
}

func TestARequestTakesTenThousandFilesUnlessItsMakerSaysMore(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		name, asks string
		arrived    int64
		session    bool // one is under way
		status     int
	}{
		{name: "the last but one", asks: "{}", arrived: links.UsualFiles - 2, session: true, status: 200},
		{name: "the last", asks: "{}", arrived: links.UsualFiles - 1, status: 200},
		{name: "one more", asks: "{}", arrived: links.UsualFiles, status: 403},
		{name: "the last beside a session", asks: "{}", arrived: links.UsualFiles - 1, session: true, status: 403},
		{
			name:    "one more of a request that takes more",
			asks:    `{"files":20000}`,
			arrived: links.UsualFiles,
			status:  200,
		},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.InProcess("it needs the table")
			made := c.request(k.asks)
			at := table.Key{PK: "requests#ann", SK: made.ID}
			expect.NoErr(t, c.Data.Table.Write(t.Context(), table.Update(at).
				Set("files", k.arrived).
				If(table.Exists())))
			if k.session {
				c.guestBegins(made.LinkURL, `{"name":"a","length":5}`).Want(201)
			}
			c.Send("PUT "+made.LinkURL+"&file=a", "1").Want(k.status)
		})
	}
}

func TestABundleTakesAsManyOfARequestsFilesAsItHas(t *testing.T) {
	t.Parallel()
	c := begin(t)
	made := c.request(`{"files":10}`)
	packed := func(paths ...string) string {
		var b strings.Builder
		w := bundle.NewWriter(&b)
		for _, path := range paths {
			expect.NoErr(t, w.Add(bundle.Entry{Path: path}, nil))
		}
		expect.NoErr(t, w.Close())
		return b.String()
	}
	archive := packed("a", "b", "c", "empty/")
	start := func(files, want int) (apitest.Answer, session) {
		a := c.guestBegins(
			made.LinkURL,
			fmt.Sprintf(`{"name":"a.zip","length":%d,"bundle":true,"files":%d}`, len(archive), files),
		).
			Want(want)
		return a, apitest.Read[session](a)
	}
	finish := func(guest apitest.Answer, s session, want int) apitest.Answer {
		signed := c.asGuest(made.LinkURL, guest, "POST "+s.path("/parts"), `{"numbers":[1]}`).Want(200)
		c.put(apitest.Read[struct{ Parts []part }](signed).Parts[0], archive).Want(200)
		return c.asGuest(made.LinkURL, guest, "POST "+s.path("/complete"), "").Want(want)
	}
	usual := c.request("{}")
	c.guestBegins(usual.LinkURL, `{"name":"a.zip","length":1,"bundle":true,"files":10000}`).Want(201)
	c.Send("PUT "+usual.LinkURL+"&file=x", "1").Want(403, "at most 10000 files")
	start(11, 403)
	guest, right := start(3, 201)
	start(8, 403)
	other, wrong := start(7, 201)
	c.Send("PUT "+made.LinkURL+"&file=x", "1").Want(403)
	finish(other, wrong, 400).Want(400, "3 files, but 7 were stated")
	finish(guest, right, 200)
	unsaid, small := start(0, 201) // an older client does not say: what has come counts
	finish(unsaid, small, 200)
	start(5, 403)
	archive = packed("empty/") // folders alone take a place, too
	alone, folders := start(0, 201)
	finish(alone, folders, 200)
	now := c.requests()
	at := slices.IndexFunc(now, func(r wire.Request) bool { return r.ID == made.ID })
	expect.Equal(t, "files that have arrived", now[at].Arrived.Files, 7)
	for _, body := range []string{
		`{"name":"a","length":1,"files":1}`,
		`{"name":"a","length":1,"bundle":true,"files":10001}`,
		`{"name":"a","length":1,"bundle":true,"files":-1}`,
	} {
		c.asGuest(made.LinkURL, guest, "POST /uploads", body).Want(400, "the number of files in a bundle")
	}
}

func TestNothingOfASessionAppearsAfterItsRequestHasEnded(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(caller, wire.Request){
		"ended by its maker": func(c caller, q wire.Request) { c.Ask("DELETE /requests/"+q.ID, "").Want(204) },
		"its maker disabled": func(c caller, _ wire.Request) {
			expect.NoErr(c.TB, c.Users.Disable(c.Context(), "ann"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			made := c.request("{}")
			begun := c.guestBegins(made.LinkURL, `{"name":"a","length":5}`).Want(201)
			s := apitest.Read[session](begun)
			end(c, made)
			c.asGuest(made.LinkURL, begun, "POST "+s.path("/parts"), `{"numbers":[1]}`).Want(401, "ended")
			c.asGuest(made.LinkURL, begun, "POST "+s.path("/complete"), "").Want(401, "ended")
			c.Send("PUT "+made.LinkURL+"&file=a", "1").Want(401, "ended")
			if all := c.Partitions("files#"); len(all) > 0 {
				t.Errorf("there are files: %v", all)
			}
		})
	}
}

func TestARequestThatEndsWhileAGuestSendsTakesNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	made := c.request("{}")
	c.Calls.Before("blob.Create", func() error {
		c.Calls.Before("blob.Create", nil)
		c.Ask("DELETE /requests/"+made.ID, "").Want(204)
		return nil
	})
	c.Send("PUT "+made.LinkURL+"&file=a", "1").Want(403, "ended")
	c.wantNothing("the request has ended")
}

func TestTheMakerIsToldOnceForABatch(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.InProcess("it needs the clock")
	ann := caller{s.Add("ann")}
	link := ann.request(`{"title":"Photos","notify":true}`).LinkURL
	guest := 0
	send := func(after time.Duration) {
		s.Clock.Advance(after)
		by := fmt.Sprintf("&by=Carla%%20%d", guest)
		if guest == 3 {
			by = ""
		}
		s.Send("PUT "+link+"&file=a"+by, "12345").Want(200)
		guest++
	}
	// The first notice goes out in a minute, and takes one more; the second in ten, and takes the next two, but
	// not what comes just before its end.
	for _, after := range []time.Duration{
		0, 30 * time.Second, time.Minute, 7 * time.Minute, 90 * time.Second, 85 * time.Second, 30 * time.Minute,
	} {
		send(after)
	}
	begun := s.Clock.Now().Add(-41*time.Minute - 25*time.Second)
	var told []string
	for _, doc := range s.Partitions("outbox#") {
		n := struct {
			Kind, To      string
			Files, Length int
			From          []string
			NotBefore     int64
		}{}
		expect.NoErr(t, json.Unmarshal([]byte(doc), &n))
		told = append(told, fmt.Sprint(time.UnixMilli(n.NotBefore).
			Sub(begun).
			Round(time.Second), n.Kind, n.To, n.Files, n.Length, strings.Join(n.From, ", ")))
	}
	slices.Sort(told)
	expect.Equal(t, "the notices", told, []string{
		"11m30sarrivedann@example.com3 15Carla 2, , Carla 4", "1m0sarrivedann@example.com2 10Carla 0, Carla 1",
		"21m25sarrivedann@example.com1 5Carla 5", "42m25sarrivedann@example.com1 5Carla 6",
	})
	bob := s.Add("bob", func(u *users.User) { u.Email = "" })
	bob.Ask("POST /requests", `{"notify":true}`).Want(400, "no registered address")
}

func TestASourceSendsSoOftenInAnHour(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs the clock")
	made := c.request("{}")
	source := keys.HashToken(made.ID + " 127.0.0.1")[:16]
	count := struct {
		Hour  int64 `json:"hour"`
		Count int64 `json:"count"`
	}{c.Clock.Now().Unix() / 3600, 999}
	key := table.Key{PK: "request#" + made.ID, SK: "source#" + source}
	expect.NoErr(t, c.Data.Ports.Table.Write(t.Context(), table.Put(key, count)))
	c.Send("PUT "+made.LinkURL+"&file=a", "1").Want(200)
	c.Calls.Reset()
	c.Send("PUT "+made.LinkURL+"&file=b", "1").Want(429)
	c.wantNoneCreated("a source that has sent too often")
	c.Clock.Advance(time.Hour)
	c.Send("PUT "+made.LinkURL+"&file=a", "1").Want(200)
}

func TestRequestsEndWithTheirMaker(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request("{}").LinkURL
	c.remove("ann")
	c.Send("GET "+link, "").Want(401)
	if left := c.Partitions("requests#"); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestAUserHasAHundredRequestsTheNewestFirst(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs the clock")
	var want, titles []string
	for i := range 100 {
		want = append([]string{fmt.Sprint(i)}, want...)
		c.request(fmt.Sprintf(`{"title":"%d"}`, i))
		c.Clock.Advance(time.Second)
	}
	c.Ask("POST /requests", "{}").Want(409)
	for _, q := range c.requests() {
		titles = append(titles, q.Title)
	}
	expect.Equal(t, "the titles", titles, want)
}

func TestAGuestsFormHasFilesAlone(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := c.request("{}").LinkURL
	for _, name := range []string{"password", "d", "m", "expires", "x"} {
		kind, body := encode(formPart{disposition: "name=" + name, content: "x"}, aFile("b", "one"))
		c.Send("POST "+link, body, "Content-Type", kind).Want(400, "the parameter "+name+" is not for guests")
	}
	c.wantNothing("a form of a guest")
}

func TestBadFieldsOfARequest(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for body, parameter := range map[string]string{
		`{"title":"a\nb"}`: "title", `{"message":"` + strings.Repeat(
			"x",
			1001,
		) + `"}`: "message", `{"bytes":-1}`: "bytes",
		`{"files":-1}`: "files", `{"expires":"yesterday"}`: "expires", `{"titel":"a"}`: "",
	} {
		a := c.Ask("POST /requests", body).Want(400)
		expect.Equal(t, "the parameter of "+body, a.Header.Get("Ferry-Parameter"), parameter)
	}
}

func TestAMakerChangesAndEndsARequestHoweverManySend(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it sends a lot")
	made := c.request(`{"notify":true}`)
	var all sync.WaitGroup
	ended := make(chan struct{})
	for range 20 {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if a := c.Send("PUT "+made.LinkURL+"&file=a", ""); a.Code >= 500 {
						t.Errorf("a guest is sent away: %d %s", a.Code, a.Text)
					}
				}
			}
		})
	}
	for i := range 20 {
		c.Ask("PATCH /requests/"+made.ID, fmt.Sprintf(`{"title":"%d"}`, i)).Want(200)
	}
	c.Ask("DELETE /requests/"+made.ID, "").Want(204)
	c.Send("PUT "+made.LinkURL+"&file=a", "").Want(401, "ended")
	close(ended)
	all.Wait()
}

func TestAGuestsSessionFindsTheDiskFull(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs a disk")
	c.onDisk(func() (int64, error) { return 10, nil })
	link := c.request("{}").LinkURL
	c.guestBegins(link, `{"name":"a","length":500}`).Want(507)
	c.wantNothingLeft()
}

func TestAGuestSendsWhileTheNoticeThatWaitsIsTaken(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it needs the notices")
	link := c.request(`{"notify":true}`).LinkURL
	notice := func() (id string) {
		for _, doc := range c.Partitions("outbox#") {
			n := struct{ ID string }{}
			expect.NoErr(t, json.Unmarshal([]byte(doc), &n))
			id = n.ID
		}
		return id
	}
	c.Send("PUT "+link+"&file=a", "1").Want(200)
	first := notice()
	expect.NoErr(t, notify.Cancel(t.Context(), c.Data.Ports.Table, c.Clock.Now(), first))
	c.Send("PUT "+link+"&file=b", "1").Want(200)
	if now := notice(); now == "" || now == first {
		t.Errorf("the notice of what came later is %q", now)
	}
}

func TestARequestHasANewLinkWhenTheKeyIsRevoked(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("it changes the key")
	old, p := c.request("{}").LinkURL, c.Service
	_, err := p.Key.Rotate(t.Context(), p.Table, p.Random, 1)
	expect.NoErr(t, err)
	c.Send("PUT "+old+"&file=a", "1").Want(401, "ended")
	_, err = p.Links().Renew(t.Context(), 1)
	expect.NoErr(t, err)
	all := c.requests()
	c.Send("PUT "+all[0].LinkURL+"&file=a", "1").Want(200)
	c.Send("PUT "+old+"&file=a", "1").Want(401)
}
