package upload_test

import (
	"fmt"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// TestEveryAnswerThatStoresNamesWhatItStored sends files of one name and length, which the list of an area does
// not tell apart, after others like them.
func TestEveryAnswerThatStoresNamesWhatItStored(t *testing.T) {
	t.Parallel()
	three := []formPart{aFile("same", "one"), aFile("same", "two"), aFile("same", "six")}
	send := func(c caller, what, to string, headers ...string) apitest.Answer {
		switch what {
		case "a form":
			return c.form(to, three, headers...)
		case "a form with a token that may only upload":
			return c.withToken("upload").form(to, three, headers...)
		case "a form that is repeated":
			c.form(to, three, "Idempotency-Key", "k").Want(200)
			return c.form(to, three, append(headers, "Idempotency-Key", "k")...)
		}
		s := c.sent(map[string]string{"d=bob": `,"d":"bob"`}[to], "one")
		c.complete(s, "").Want(200)
		return c.Ask("POST "+s.path("/complete"), "", headers...)
	}
	for what, want := range map[string]string{ // in the order of the parts
		"a form": "one two six", "a form with a token that may only upload": "one two six",
		"a form that is repeated": "one two six", "a session that is completed twice": "one",
	} {
		for owner, to := range map[string]string{"ann": "", "bob": "d=bob"} {
			for _, accept := range []string{"application/json", "text/plain"} {
				t.Run(what+" for "+owner+", "+accept, func(t *testing.T) {
					t.Parallel()
					c := begin(t)
					area := c.as(owner)
					area.form("", three).Want(200)
					answer, links := send(c, what, to, "Accept", accept).Want(200), map[string]string{}
					for _, f := range area.Ask("GET /download/list", "").Want(200).Files {
						links[fmt.Sprint(f.ID)] = f.LinkURL
					}
					var stored, given []string
					for id := range strings.SplitSeq(answer.Header.Get("Ferry-Files"), ", ") {
						stored = append(stored, c.Get(links[id]))
					}
					expect.Equal(t, "what it names", strings.Join(stored, " "), want)
					if accept == "text/plain" {
						for link := range strings.Lines(answer.Text) {
							given = append(given, c.Get(strings.TrimSpace(link)))
						}
						expect.Equal(t, "what its links give", given, stored)
					}
				})
			}
		}
	}
}

func TestAGuestsAnswerListsWhatTheGuestSentInItsOrder(t *testing.T) {
	t.Parallel()
	c := begin(t)
	link := strings.TrimPrefix(c.request("{}").LinkURL, c.Base)
	kind, body := encode(someFiles("bb", "a", "ccc", "a")...)
	for _, key := range []string{"first", "second", "first"} {
		a := c.Send("POST "+link, body, "Content-Type", kind, "Idempotency-Key", key).Want(200)
		expect.Equal(
			t,
			"the answer",
			a.Text,
			`{"files":[{"name":"bb","length":2},{"name":"a","length":1},{"name":"ccc","length":3},{"name":"a","length":1}]}`+"\n",
		)
		expect.Equal(t, "the ids", a.Header.Values("Ferry-Files"), nil)
	}
}
