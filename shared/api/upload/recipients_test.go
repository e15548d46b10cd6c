package upload_test

import (
	"encoding/json"
	"errors"
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
	"ferry/shared/contact"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
)

func TestEachRecipientGetsANoticeForEachFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	query := url.Values{"c": {"+39 347 123 4567"}, "m": {"bob@example.com"}, "i": {"Ciao & <b>bye</b> 🎉\nline"}, "lang": {"it"}}
	e := c.form(query.Encode(), someFiles("one", "two")).Want(200)
	got := c.Outbox()
	if len(got) != 4 {
		t.Fatalf("there are %d notices, want 4: %+v", len(got), got)
	}
	for i, want := range []struct {
		channel files.Channel
		to      string
		name    string
	}{
		{files.Mail, "bob@example.com", "one"}, {files.Mail, "bob@example.com", "two"},
		{files.SMS, "+393471234567", "one"}, {files.SMS, "+393471234567", "two"},
	} {
		n := got[i]
		if n.Channel != want.channel || n.To != want.to || n.Name != want.name || n.Message != query.Get("i") ||
			n.Lang != "it" || n.Sender != "ann" || n.ReplyTo != "ann@example.com" || n.Kind != notify.Link || n.Owner != "ann" {
			t.Errorf("notice %d is %+v", i, n)
		}
	}
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
	query := url.Values{"c": {"+39 347 123 4567", "00393471234567"}, "m": {"bob@example.com", "", "BOB@example.com"}}
	want := []string{"+393471234567", "bob@example.com"}
	for i := range 18 {
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

// TestADomainInAnotherFormIsTheSameRecipient names one address in several forms, and then stops
// mail to one of them.
func TestADomainInAnotherFormIsTheSameRecipient(t *testing.T) {
	t.Parallel()
	forms := []string{"ann@bücher.example", "ANN@BÜCHER.example", "ann@bu\u0308cher.example", "Ann@xn--bcher-kva.example"}
	for i, stopped := range forms {
		c := begin(t)
		c.Upload(url.Values{"file": {"x"}, "m": append(slices.Clone(forms[i:]), forms...)}.Encode(), "1")
		got := c.Outbox()
		if len(got) != 1 || contact.Canonical(got[0].To) != "ann@xn--bcher-kva.example" || strings.Contains(got[0].To, "ü") {
			t.Errorf("beginning with %s: the notices are %+v", stopped, got)
		}
		if c.InStack() { // where only a mail's link stops an address
			continue
		}
		expect.Equal(t, "mails before the stop", c.Deliver(), 1)
		expect.NoErr(t, c.Data.Table.Write(t.Context(), notify.Suppress(stopped, notify.AddressStopped, "", c.Clock.Now())))
		c.Upload(url.Values{"file": {"y"}, "m": forms}.Encode(), "1")
		expect.Equal(t, "mails after the stop of "+stopped, c.Deliver(), 0)
	}
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
	c.Ask("POST /uploads", `{"name":"x","length":1,"m":["用户@例子.中国"]}`).Want(400, "letters before the @ that are not ASCII")
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
	query.Del("c")
	query.Del("file")
	c.form(query.Encode(), someFiles("1", "2", "3")).Want(400, "20 recipients takes at most 2 files")
	c.wantNothing("3 files")
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
		{nil, nil, "+12015550123", ""},
		{[]string{"IT", "US"}, nil, "+12015550123", ""},
		{[]string{"IT", "US"}, nil, "+18767890123", "number in JM, but text messages go only to IT, US"}, // Jamaica shares the code
		{[]string{"IT"}, nil, "+447400123456", "number in GB"},
		{nil, []files.Channel{files.Mail}, "+393471234567", "no text messages"},
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
	for _, country := range []string{"UK", "XX", "EN"} {
		for _, set := range []service.Settings{{PhoneRegion: country}, {SMSCountries: []string{"IT", country}}} {
			err := param.CheckCountries(set)
			if err == nil || !strings.Contains(err.Error(), country) || !strings.Contains(err.Error(), "GB") {
				t.Errorf("%s: %v", country, err)
			}
		}
	}
	expect.NoErr(t, param.CheckCountries(service.Settings{PhoneRegion: "GB", SMSCountries: []string{"IT", "GB"}}))
	expect.NoErr(t, param.CheckCountries(service.Settings{}))
}

func TestNoNoticeExistsWithoutItsFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Calls.Before("blob.Create", func() error {
		expect.Equal(t, "notices before the file is stored", len(c.Outbox()), 0)
		return nil
	})
	c.Upload("file=x&m=bob@example.com", "1")
	c.wantCounts(map[string]int{"outbox#": 1})
	for _, call := range []string{"blob.Create", "table.Write"} {
		c := begin(t)
		c.Calls.Before(call, func() error { return errors.New("the store is broken") })
		c.post("file=x&m=bob@example.com", "1").Want(500)
		c.wantCounts(map[string]int{"outbox#": 0})
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

func TestUploadToOneselfListsOwnFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Upload("file=a.txt", "1")
	for _, d := range []string{"ann", "Ann", ""} {
		if e := c.post("d="+d+"&file=b.txt", "2").Want(200); len(e.Files) < 2 || e.Files[0].Name != "b.txt" {
			t.Errorf("the answer to d=%q is %s", d, e.Text)
		}
	}
}

func TestUnknownDestinationStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", apitest.Password, func(u *users.User) { u.State = users.Disabled })
	for _, d := range []string{"nobody", "gone", "a%00b", "..", "bob%23", "%20", strings.Repeat("x", 1000), "bob%20ann", "user%23bob"} {
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
