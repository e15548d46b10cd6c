package upload_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/api/param"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
)

func TestEachRecipientGetsANoticeForEachFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	query := url.Values{
		"c":    {"+39 347 123 4567"},
		"m":    {"bob@example.com"},
		"i":    {"Ciao & <b>bye</b> 🎉\nline"},
		"lang": {"it"},
	}
	e := c.form(query.Encode(), someFiles("one", "two")).Want(200)
	var told []string
	for _, n := range c.Outbox() {
		told = append(told, n.To+" "+n.Name)
	}
	expect.Equal(t, "who is told of what", told, []string{
		"bob@example.com one", "bob@example.com two", "+393471234567 one", "+393471234567 two",
	})
	expect.Equal(t, "notices that were sent", c.Deliver(), 4)
	messages, err := c.Service.Inbox.List(t.Context(), 10)
	expect.NoErr(t, err)
	links := map[string]bool{}
	for _, m := range messages {
		_, link, _ := strings.Cut(m.Text, "&k=")
		links[strings.Fields(link)[0]] = true
		for _, f := range e.Files {
			if strings.Contains(m.Text, f.LinkURL) {
				t.Errorf("a message has the owner's link of %s", f.Name)
			}
		}
	}
	expect.Equal(t, "links in 4 messages", len(links), 4)
}

// TestEveryRepeatedRecipientGetsALink names recipients several times and in several
// ways, as many as there may be.
func TestEveryRepeatedRecipientGetsALink(t *testing.T) {
	t.Parallel()
	query := url.Values{
		"c": {"+39 347 123 4567", "00393471234567"},
		"m": {"bob@example.com", "", "BOB@example.com", "ann@bücher.example", "ANN@xn--bcher-kva.example"},
	}
	want := []string{"+393471234567", "ann@xn--bcher-kva.example", "bob@example.com"}
	for i := range 17 {
		address := fmt.Sprintf("friend%02d@example.com", i)
		query["m"], want = append(query["m"], address), append(want, address)
	}
	for what, upload := range map[string]func(c caller){
		"an upload": func(c caller) { c.form(query.Encode(), someFiles("one", "two")).Want(200) },
		"a repeated upload": func(c caller) {
			for range 2 {
				c.keyed("file=one&"+query.Encode(), "1").Want(200)
			}
		},
		"a session": func(c caller) {
			text, _ := json.Marshal(query)
			c.complete(c.sent(","+strings.Trim(string(text), "{}"), ""), "").Want(200)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := begin(t, func(s *service.Settings, _ *local.ServiceOptions) { s.PhoneRegion = "IT" })
			upload(c)
			files := map[string][]string{}
			for _, n := range c.Outbox() {
				files[n.Name] = append(files[n.Name], n.To)
			}
			for name, got := range files {
				slices.Sort(got)
				expect.Equal(t, "who is told of "+name, got, want)
			}
			if links := len(c.Partitions("link#")); len(files) == 0 || links != len(files)*(1+len(want)) {
				t.Errorf("%d files have %d links", len(files), links)
			}
			c.Ask("DELETE /files/1", "").Want(200)
		})
	}
}

func TestMailToADomainInAnotherFormIsStoppedToo(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("only a mail's link stops an address")
	stop := notify.Suppress("Ann@xn--bcher-kva.example", notify.AddressStopped, "", c.Clock.Now())
	expect.NoErr(t, c.Data.Table.Write(t.Context(), stop))
	c.Upload("file=x&m=bob@example.com&m=ann@bu\u0308cher.example", "1")
	expect.Equal(t, "mails", c.Deliver(), 1)
}

func TestLettersBeforeTheAtAreRefusedWhereMailCannotHaveThem(t *testing.T) {
	t.Parallel()
	const letters = "file=x&m=jörg@example.com"
	c := begin(t)
	if !c.InStack() { // a stack's mail is by SES, which does not take them
		c.Upload(letters, "1")
		c = begin(t, func(s *service.Settings, _ *local.ServiceOptions) { s.ASCIIMail = true })
	}
	c.post(letters, "1").Want(400, "letters before the @ that are not ASCII")
	c.Ask("POST /uploads", `{"name":"x","length":1,"m":["用户@例子.中国"]}`).
		Want(400, "letters before the @ that are not ASCII")
	c.wantNothing("letters before the @")
	c.Upload("file=x&m=ann@bücher.example", "1")
}

func TestTooManyRecipientsAreRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	query := url.Values{"file": {"x"}, "c": {"+393471234567"}}
	for i := range 20 {
		query.Add("m", fmt.Sprintf("friend%d@example.com", i))
	}
	c.post(query.Encode(), "content").Want(400, "at most 20 recipients")
	c.wantNothing("21 recipients")
}

// TestThePlusOfANumberMayBeUnescaped; contact's tests have the other ways to write one.
func TestThePlusOfANumberMayBeUnescaped(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"%2B393471234567", "+393471234567", "%20%2B39%20347%201234567"} {
		c := begin(t)
		c.Upload("file=x&c="+number, "1")
		expect.Equal(t, number, c.Outbox()[0].To, "+393471234567")
	}
}

// TestBadRecipientStoresNothing has one of each kind; contact's tests have the others.
func TestBadRecipientStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	long := strings.Repeat("é", 501)
	for _, query := range []string{
		"c=123", "c=%2B39061234567", "c=3471234567", "c=%2B393471234567,%2B393471234568", "m=bob", "m=Bob+%3Cbob@example.com%3E",
		"m=bob@example.com&i=" + long, "m=bob@example.com&i=%00", "m=bob@example.com&i=%ff", "i=" + long,
		"c=%2B393471234567&m=bob", "m=bob@example.com&lang=xx", "lang=english",
	} {
		c.post("file=x&"+query, "content").Want(400)
		c.wantNothing(query)
		c.wantNoneCreated(query)
	}
	c.Upload("file=x&m=bob@example.com&i="+strings.Repeat("é", 500), "with the longest message")
	for _, query := range []string{"i=hello", "i=hello&c=&m=", "lang=", "lang=IT", "lang=de-AT"} {
		c.Upload("file=x&"+query, "the specification asks for no recipient of a message")
	}
}

func TestANumberThatGetsNoTextMessagesIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		countries []string
		channels  []files.Channel
		number    string
		says      string // empty if it is accepted
	}{
		{countries: []string{"IT", "US"}, number: "+12015550123"},
		{
			countries: []string{"IT", "US"},
			number:    "+18767890123",
			says:      "number in JM, but text messages go only to IT, US",
		}, // Jamaica shares the code
		{channels: []files.Channel{files.Mail}, number: "+393471234567", says: "no text messages"},
	} {
		c := begin(t, func(s *service.Settings, _ *local.ServiceOptions) {
			s.SMSCountries, s.Channels = k.countries, k.channels
		})
		query := "file=x&m=bob@example.com&c=" + url.QueryEscape(k.number)
		if k.says == "" {
			c.Upload(query, "1")
			continue
		}
		c.post(query, "1").Want(400, k.says)
		c.wantNothing(query)
		c.Upload("file=x&m=bob@example.com", "1")
	}
}

// TestNoCountryIsOneThatDoesNotExist: a list with only UK would refuse the numbers of all.
func TestNoCountryIsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for country, known := range map[string]bool{"UK": false, "EN": false, "GB": true, "": true} {
		for _, set := range []service.Settings{{PhoneRegion: country}, {SMSCountries: []string{"IT", country}}} {
			expect.Equal(t, country, param.CheckCountries(set) == nil, known)
		}
	}
}

func TestSenderIsWokenOnceANoticeExists(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("in a stack the table's stream wakes the senders")
	var woken atomic.Int32
	c.Service.Notify = func() {
		if len(c.Outbox()) == 0 {
			t.Error("the sender is woken before there is a notice")
		}
		woken.Add(1)
	}
	c.Upload("file=x", "1")
	c.post("file=x&m=bob", "1").Want(400)
	expect.Equal(t, "calls without a notice", woken.Load(), 0)
	c.Upload("file=x&m=bob@example.com&c=%2B393471234567", "1")
	expect.Equal(t, "calls", woken.Load(), 1)
}

func TestFileGoesToAnotherUsersArea(t *testing.T) {
	t.Parallel()
	c := begin(t)
	bob := c.as("bob")
	bob.Upload("file=private.txt", "bob's own")
	c.Upload("file=mine.txt", "ann's own")
	for _, d := range []string{"bob", "BOB"} {
		e := c.form("d="+d, someFiles("one", "two")).Want(200)
		if e.User != "ann" || len(e.Files) != 2 || e.Files[0].Name == e.Files[1].Name {
			t.Fatalf("the answer is %s, want only the two files of this upload", e.Text)
		}
		for _, f := range e.Files {
			expect.Equal(t, f.Name, c.Get(f.LinkURL), f.Name)
		}
	}
	expect.Equal(t, "bob's files", strings.Join(bob.names(), " "), "private.txt one two one two")
	expect.Equal(t, "ann's files", strings.Join(c.names(), " "), "mine.txt")
}

func TestUnknownDestinationStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", apitest.Password, func(u *users.User) { u.State = users.Disabled })
	for _, d := range []string{
		"nobody", "gone", "a%00b", "..", "bob%23", "%20", strings.Repeat("x", 1000), "bob%20ann", "user%23bob",
	} {
		c.post("file=x&d="+d, "content").Want(400, "the parameter d is not a user name")
		c.wantNothing("d=" + d)
		c.wantNoneCreated("d=" + d)
	}
}

func TestUserInFirstAccessCanReceiveFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("new", apitest.Password, func(u *users.User) { u.State = users.FirstAccess })
	expect.Equal(t, "the file", c.Get(c.Upload("file=x&d=new", "1").LinkURL), "1")
}
