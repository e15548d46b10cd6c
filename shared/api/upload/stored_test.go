package upload_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

// TestEveryAnswerThatStoresNamesWhatItStored sends files of one name and length, which the list of an area does
// not tell apart, after others like them.
func TestEveryAnswerThatStoresNamesWhatItStored(t *testing.T) {
	t.Parallel()
	three := []formPart{aFile("file", "same", "one"), aFile("file", "same", "two"), aFile("file", "same", "six")}
	text := []string{"Accept", "text/plain"}
	for what, k := range map[string]struct {
		send  func(c caller) apitest.Answer
		owner string
		want  string // what was stored, in the order of the parts
	}{
		"a form":                {func(c caller) apitest.Answer { return c.form("", three) }, "ann", "one two six"},
		"a form as text":        {func(c caller) apitest.Answer { return c.form("", three, text...) }, "ann", "one two six"},
		"a form for another":    {func(c caller) apitest.Answer { return c.form("d=bob", three) }, "bob", "one two six"},
		"a body":                {func(c caller) apitest.Answer { return c.post("file=same", "one") }, "ann", "one"},
		"a body for another":    {func(c caller) apitest.Answer { return c.post("file=same&d=bob", "one", text...) }, "bob", "one"},
		"PUT":                   {func(c caller) apitest.Answer { return c.Ask("PUT /upload?file=same", "one") }, "ann", "one"},
		"PUT of a name":         {func(c caller) apitest.Answer { return c.Ask("PUT /upload/same", "one", text...) }, "ann", "one"},
		"a session":             {func(c caller) apitest.Answer { return c.complete(c.sent("", "one"), "") }, "ann", "one"},
		"a session for another": {func(c caller) apitest.Answer { return c.complete(c.sent(`,"d":"bob"`, "one"), "") }, "bob", "one"},
		"a token that may only upload": {func(c caller) apitest.Answer {
			return c.withToken("upload").form("", three)
		}, "ann", "one two six"},
		"a session that is completed again, as text": {func(c caller) apitest.Answer {
			s := c.sent("", "one")
			c.complete(s, "").Want(200)
			return c.Ask("POST "+s.path("/complete"), "", text...)
		}, "ann", "one"},
		"a repeat after a hundred others": {func(c caller) apitest.Answer {
			c.form("", three, "Idempotency-Key", "k").Want(200)
			c.Fill(100)
			return c.form("", three, "Idempotency-Key", "k")
		}, "ann", "one two six"},
		"a repeat as text, for another": {func(c caller) apitest.Answer {
			c.form("d=bob", three, "Idempotency-Key", "k").Want(200)
			return c.form("d=bob", three, "Idempotency-Key", "k", "Accept", "text/plain")
		}, "bob", "one two six"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			owner := c.as(k.owner)
			owner.form("", three).Want(200)
			links := map[string]string{}
			answer := k.send(c).Want(200)
			for _, f := range owner.Ask("GET /download/list?limit=1000", "").Want(200).Files {
				links[fmt.Sprint(f.ID)] = f.LinkURL
			}
			var stored []string
			for id := range strings.SplitSeq(answer.Header.Get("Ferry-Files"), ", ") {
				stored = append(stored, c.Get(links[id]))
			}
			apitest.Equal(t, "what it names", strings.Join(stored, " "), k.want)
			if !strings.HasPrefix(answer.Text, "{") {
				var given []string
				for link := range strings.Lines(answer.Text) {
					given = append(given, c.Get(strings.TrimSpace(link)))
				}
				apitest.Equal(t, "what its links give", given, stored)
			}
		})
	}
}

func TestABundleIsNamedAsTheOneFileThatItIs(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.Fill(2)
	c.form("bundle=all.zip", someFiles("a", "b")).Want(200).WantHeaders("Ferry-Files", "3")
}

func TestWhatStoresNothingNamesNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.keyed("file=a", "hello").Want(200)
	for what, a := range map[string]apitest.Answer{
		"a refusal":        c.post("file=a&d=nobody", "hello").Want(400),
		"another file":     c.keyed("file=a", "hallo").Want(409),
		"a list":           c.Ask("GET /download/list", "").Want(200),
		"a new session":    c.Ask("POST /uploads", `{"name":"a","length":1}`).Want(201),
		"missing parts":    c.complete(c.plan("", 5), "").Want(400),
		"a move":           c.Ask("DELETE /files/1", "").Want(200),
		"a file that went": c.keyed("file=a", "hello").Want(410),
	} {
		apitest.Equal(t, what, a.Header.Values("Ferry-Files"), nil)
	}
	apitest.Equal(t, "the envelope of a refusal", c.Ask("PUT /upload/x?m=nowhere", "x", "Accept", "text/plain").Want(400).Status, 400)
}

func TestAGuestsAnswerListsWhatTheGuestSentInItsOrder(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := strings.TrimPrefix(c.request("{}").LinkURL, c.Base)
	kind, body := encode(someFiles("bb", "a", "ccc", "a")...)
	for _, key := range []string{"first", "second", "first"} {
		a := c.Send("POST "+link, body, "Content-Type", kind, "Idempotency-Key", key).Want(200)
		apitest.Equal(t, "the answer", a.Text, `{"files":[{"name":"bb","length":2},{"name":"a","length":1},{"name":"ccc","length":3},{"name":"a","length":1}]}`+"\n")
		apitest.Equal(t, "the ids", a.Header.Values("Ferry-Files"), nil)
	}
}
