package web_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/expect"
	"ferry/shared/notify/texts"
)

// TestEachLanguageIsSpokenEverywhere looks at pages, their list of languages, the interface, its
// description, and a mail. A test of package texts runs it with a further language.
func TestEachLanguageIsSpokenEverywhere(t *testing.T) {
	v := visit(t)
	v.Logf("the service speaks %s", strings.Join(texts.Tags(), ", "))
	document := v.Ask("GET /openapi.json", "").Want(200).Text
	for _, l := range texts.All() {
		v.another(desk).opens("login?language="+l.Lang, 200, `<html lang="`+l.Lang+`">`, "<summary", l.Name)
		v.opens("login", 200, `hreflang="`+l.Lang+`" lang="`+l.Lang+`"`, ">"+l.Name+"</a>")
		v.has("the description", document, `"`+l.Lang+`"`)
		v.Clock.Advance(time.Second) // so that its mail is the newest
		uploaded := v.Upload("file=a.txt&m=bob@example.com&lang="+l.Lang, "content")
		v.has("the link", uploaded.LinkURL, "lang="+l.Lang+"&")
		v.Deliver()
		mails, err := v.Service.Inbox.List(t.Context(), 1)
		expect.NoErr(t, err)
		v.has("the mail", mails[0].HTML, `<html lang="`+l.Lang+`"`)
	}
}
