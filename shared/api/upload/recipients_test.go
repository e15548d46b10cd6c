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

	"ferry/shared/api"
	"ferry/shared/api/upload"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
)

// outbox returns the notices in the outbox.
func (c caller) outbox() []notify.Notice {
	c.Helper()
	var all []notify.Notice
	for key, text := range c.Partitions("outbox#") {
		var n notify.Notice
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			c.Fatalf("reading the notice %s: %v", key, err)
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b notify.Notice) int {
		return strings.Compare(string(a.Channel)+a.Name, string(b.Channel)+b.Name)
	})
	return all
}

func TestEachRecipientGetsANoticeForEachFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	query := url.Values{"c": {"+39 347 123 4567"}, "m": {"bob@example.com"}, "i": {"Ciao & <b>bye</b> 🎉\nline"}, "lang": {"it"}}
	e := c.Decode(c.form(query.Encode(), aFile("file", "one", "1"), aFile("file", "two", "22")), 200)
	got := c.outbox()
	if len(got) != 4 {
		t.Fatalf("there are %d notices, want 4: %+v", len(got), got)
	}
	for i, want := range []struct {
		channel notify.Channel
		to      string
		name    string
	}{
		{notify.Mail, "bob@example.com", "one"}, {notify.Mail, "bob@example.com", "two"},
		{notify.SMS, "+393471234567", "one"}, {notify.SMS, "+393471234567", "two"},
	} {
		n := got[i]
		if n.Channel != want.channel || n.To != want.to || n.Name != want.name || n.Message != query.Get("i") ||
			n.Lang != "it" || n.Sender != "ann" || n.ReplyTo != "ann@example.com" || n.Kind != notify.Link || n.Owner != "ann" {
			t.Errorf("notice %d is %+v", i, n)
		}
	}
	if sent := c.Deliver(); sent != 4 {
		t.Errorf("%d notices were sent, want 4", sent)
	}
	messages, err := c.Service.Inbox.List(t.Context(), 10)
	if err != nil {
		t.Fatalf("reading the inbox: %v", err)
	}
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
	if len(links) != 4 {
		t.Errorf("4 messages have %d links, want one each", len(links))
	}
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
		"an upload": func(c caller) {
			c.Decode(c.form(query.Encode(), aFile("file", "one", "1"), aFile("file", "two", "22")), 200)
		},
		"a repeated upload": func(c caller) {
			for range 2 {
				body := strings.NewReader("1")
				c.Decode(c.post("file=one&"+query.Encode(), "", body, "Idempotency-Key", "a-key"), 200)
			}
		},
		"a session": func(c caller) {
			text, _ := json.Marshal(query)
			s := c.plan(","+strings.Trim(string(text), "{}"), 0)
			c.sendAll(s, nil)
			c.complete(s.ID, "")
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := begin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.PhoneRegion = "IT" })
			upload(c)
			files := map[string][]string{}
			for _, n := range c.outbox() {
				files[n.Name] = append(files[n.Name], n.To)
			}
			for name, got := range files {
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s: told are %q, want %q", name, got, want)
				}
			}
			if links := len(c.Partitions("link#")); len(files) == 0 || links != len(files)*(1+len(want)) {
				t.Errorf("%d files have %d links", len(files), links)
			}
			c.call("DELETE", "/files/1", "", 200, nil)
		})
	}
}

func TestTooManyRecipientsAreRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	query := url.Values{"file": {"x"}, "c": {"+393471234567"}}
	for i := range 20 {
		query.Add("m", fmt.Sprintf("friend%d@example.com", i))
	}
	resp := c.post(query.Encode(), "", strings.NewReader("content"))
	if c.wantStatus("21 recipients", resp, 400); !strings.Contains(resp.Header.Get("Ferry-Error"), "at most 20 recipients") {
		t.Errorf("Ferry-Error is %q", resp.Header.Get("Ferry-Error"))
	}
	c.wantNothing("21 recipients")
	query.Del("c")
	three := []formPart{aFile("file", "1", "1"), aFile("file", "2", "2"), aFile("file", "3", "3")}
	query.Del("file")
	resp = c.form(query.Encode(), three...)
	if c.wantStatus("3 files", resp, 400); !strings.Contains(resp.Header.Get("Ferry-Error"), "20 recipients takes at most 2 files") {
		t.Errorf("Ferry-Error is %q", resp.Header.Get("Ferry-Error"))
	}
	c.wantNothing("3 files")
}

func TestMobileNumbersAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	c := begin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.PhoneRegion = "IT" })
	for i, query := range []string{"c=%2B393471234567", "c=+393471234567", "c=00393471234567", "c=347+123-45.67", "c=%20%2B39%20347%201234567"} {
		c.Put(c.bearer, "file=x&"+query, "1")
		all := c.outbox()
		if len(all) != i+1 || all[i].To != "+393471234567" {
			t.Errorf("%s gives %+v", query, all)
		}
	}
}

func TestBadRecipientStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	long := strings.Repeat("é", 501)
	for _, query := range []string{
		"c=123", "c=bob", "c=%2B39061234567", "c=3471234567", "c=%2B393471234567,%2B393471234568", "c=%2B39347123456789012345",
		"m=bob", "m=bob@", "m=@example.com", "m=bob@example.com,ann@example.com", "m=Bob+%3Cbob@example.com%3E", "m=bob@example.com%0D%0ABcc:x@example.com",
		"m=" + strings.Repeat("x", 250) + "@example.com",
		"m=bob@example.com&i=" + long, "m=bob@example.com&i=%00", "m=bob@example.com&i=%ff", "i=" + long,
		"c=%2B393471234567&m=bob", "m=bob@example.com&lang=xx", "lang=english",
	} {
		resp := c.post("file=x&"+query, "", strings.NewReader("content"))
		c.wantStatus(query, resp, 400)
		if says := resp.Header.Get("Ferry-Error"); says == "" {
			t.Errorf("%s: Ferry-Error is missing", query)
		}
		c.wantNothing(query)
		c.wantNoneCreated(query)
	}
	c.Put(c.bearer, "file=x&m=bob@example.com&i="+strings.Repeat("é", 500), "with the longest message")
	for _, query := range []string{"i=hello", "i=hello&c=&m=", "lang=", "lang=IT", "lang=de-AT"} {
		c.Put(c.bearer, "file=x&"+query, "the specification asks for no recipient of a message")
	}
}

func TestANumberThatGetsNoTextMessagesIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		countries []string
		none      bool
		number    string
		says      string // empty if it is accepted
	}{
		{nil, false, "+12015550123", ""},
		{[]string{"IT", "US"}, false, "+12015550123", ""},
		{[]string{"IT", "US"}, false, "+18767890123", "number in JM, but text messages go only to IT, US"}, // Jamaica shares the code
		{[]string{"IT"}, false, "+447400123456", "number in GB"},
		{nil, true, "+393471234567", "no text messages"},
	} {
		c := begin(t, func(s *api.Settings, _ *local.ServiceOptions) { s.SMSCountries, s.NoSMS = k.countries, k.none })
		query := "file=x&m=bob@example.com&c=" + url.QueryEscape(k.number)
		if k.says == "" {
			c.Put(c.bearer, query, "1")
			continue
		}
		resp := c.post(query, "", strings.NewReader("1"))
		if c.wantStatus(query, resp, 400); !strings.Contains(resp.Header.Get("Ferry-Error"), k.says) {
			t.Errorf("%+v: %s", k, resp.Header.Get("Ferry-Error"))
		}
		c.wantNothing(query)
		c.Put(c.bearer, "file=x&m=bob@example.com", "1")
	}
}

// TestNoCountryIsOneThatDoesNotExist: a list with only UK would refuse the numbers of all.
func TestNoCountryIsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, country := range []string{"UK", "XX", "EN"} {
		for _, set := range []api.Settings{{PhoneRegion: country}, {SMSCountries: []string{"IT", country}}} {
			err := upload.CheckCountries(set)
			if err == nil || !strings.Contains(err.Error(), country) || !strings.Contains(err.Error(), "GB") {
				t.Errorf("%s: %v", country, err)
			}
		}
	}
	if err := upload.CheckCountries(api.Settings{PhoneRegion: "GB", SMSCountries: []string{"IT", "GB"}}); err != nil {
		t.Error(err)
	}
	if err := upload.CheckCountries(api.Settings{}); err != nil {
		t.Error(err)
	}
}

func TestNoNoticeExistsWithoutItsFile(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Calls.Before("blob.Create", func() error {
		if n := len(c.Partitions("outbox#")); n > 0 {
			t.Errorf("there are %d notices before the file is stored", n)
		}
		return nil
	})
	c.Put(c.bearer, "file=x&m=bob@example.com", "1")
	if n := len(c.outbox()); n != 1 {
		t.Errorf("there are %d notices, want 1", n)
	}
	for _, call := range []string{"blob.Create", "table.Write"} {
		c := begin(t)
		c.Calls.Before(call, func() error { return errors.New("the store is broken") })
		c.Decode(c.post("file=x&m=bob@example.com", "", strings.NewReader("1")), 500)
		if n := len(c.outbox()); n > 0 {
			t.Errorf("%s fails, but there are %d notices", call, n)
		}
	}
}

func TestSenderIsWokenOnceANoticeExists(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("in a stack the table's stream wakes the senders")
	var woken atomic.Int32
	c.Data.Ports.Notify = func() {
		if len(c.outbox()) == 0 {
			t.Error("the sender is woken before there is a notice")
		}
		woken.Add(1)
	}
	c.Put(c.bearer, "file=x", "1")
	c.post("file=x&m=bob", "", strings.NewReader("1"))
	if n := woken.Load(); n != 0 {
		t.Errorf("without a notice the sender is woken %d times", n)
	}
	c.Put(c.bearer, "file=x&m=bob@example.com&c=%2B393471234567", "1")
	if n := woken.Load(); n != 1 {
		t.Errorf("the sender is woken %d times, want once", n)
	}
}
