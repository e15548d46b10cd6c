package browser_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/web/browsertest"
)

// TestEachStateIsSeen visits the states of pages that no flow passes.
func TestEachStateIsSeen(t *testing.T) {
	each(t, true, func(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
		if b.Lang != "en" || !browsertest.All() {
			t.Skip("make test-pages sees them in English")
		}
		seeStates(t, s, b)
	})
}

func seeStates(t *testing.T, s *apitest.Server, b *browsertest.Tab) {
	s.InProcess("it moves the clock, and lets calls to the stores fail")
	alice, bounced := s.As("alice"), "carla@example.com"
	s.Add("quentin", apitest.Quota(1000)).Upload("file=report.pdf", strings.Repeat("x", 960))
	long := strings.Repeat("Vertragsverhandlungsprotokoll", 7)[:190] + "-final.pdf"
	rtl := strings.Repeat("חוזה-שכירות-", 7) + "2026.pdf"
	link := func(query string) string { return alice.Upload(query, picture).LinkURL }
	ask := func(title, more string) (made struct{ ID, LinkURL string }) {
		about := fmt.Sprintf(`{"title":%q,"message":"From the first week"%s}`, title, more)
		return apitest.Read[struct{ ID, LinkURL string }](alice.Ask("POST /requests", about).Want(201))
	}
	bring := func(to, query string) string { s.Send("POST "+to+query, "content").Want(200); return to }
	link("file=plan.zip&m=bob@example.com&i=" + url.QueryEscape(strings.Repeat("Here is the plan. ", 24)))
	messaged := s.Base + s.LinksOf(s.Newest("alice"))[1]
	withdrawn, deleted := alice.Upload("file=a", "a"), alice.Upload("file=minutes.pdf", "minutes")
	alice.Ask(fmt.Sprintf("DELETE /files/%d/links/own", withdrawn.ID), "").Want(200)
	alice.Ask(fmt.Sprintf("DELETE /files/%d", deleted.ID), "").Want(200)
	kept, ended := alice.Ask("GET /download/list/backup", "").Want(200).File(), ask("Nothing any more", "")
	alice.Ask("DELETE /requests/"+ended.ID, "").Want(204)
	alice.Ask("POST /uploads", fmt.Sprintf(`{"name":%q,"length":100}`, long)).Want(201)
	expect.NoErr(t, s.Data.Table.Write(t.Context(), notify.Suppress(bounced, notify.AddressBounced, "", time.Now())))
	longest := alice.Upload("file="+long+"&m="+long[:60]+"@example.com", "x").ID
	evil, _ := browsertest.EvilSite(
		t,
		"localhost",
		map[string]string{"/": `<form method=post action="` + s.Root + `/logout"><button>`},
	)
	breaks := func() error { return fmt.Errorf("the disk is broken") }
	b.Expect("status of 500")
	hold, release := context.WithCancel(t.Context())
	defer release()
	hang := func() error { <-hold.Done(); return nil }
	wrong := func(field, text string) { b.Fill(field, text); b.Press("main form:has(" + field + ") .primary") }
	for _, state := range []struct {
		name, page string
		do         func() // before the page is visited, or instead
	}{
		{name: "inbox-empty", page: "inbox"},
		{name: "inbox", do: func() { s.Deliver(); b.Visit("inbox"); b.WaitText("bob@example.com") }},
		{name: "missing", page: "nothing"},
		{name: "link-image", page: link("file=harbour.png")},
		{name: "link-film", page: link("file=crossing.webm")},
		{name: "link-sound", page: link("file=horn.wav")},
		{
			name: "link-text",
			page: alice.Upload("file=notes.txt", strings.Repeat("The ferry leaves at nine.\n", 60)).LinkURL,
		},
		{name: "link-message", page: messaged},
		{name: "link-long", page: link("downloads=3&file=" + long)},
		{name: "link-rtl", page: link("file=" + url.QueryEscape(rtl))},
		{name: "link-backup", page: kept.LinkURL},
		{name: "bundle-picture", do: func() {
			b.Visit(bundle(s, "trip.zip", "harbour.png", picture, "pier.png", picture))
			b.Press("ul.grid a")
		}},
		{name: "bundle-closed", page: bundle(s, "trip.zip&downloads=2", "harbour.png", picture, "pier.png", picture)},
		{name: "dead-withdrawn", page: withdrawn.LinkURL},
		{name: "dead-deleted", page: deleted.LinkURL},
		{name: "dead-mistyped", page: deleted.LinkURL[:len(deleted.LinkURL)-1]},
		{name: "dead-incomplete", page: s.Base + "/download/file?k="},
		{name: "dead-expired", page: link("file=late.txt&expires=10m"), do: func() { s.Clock.Advance(time.Hour) }},
		{name: "guest-locked", page: ask("Minutes", `,"password":"open sesame"`).LinkURL},
		{name: "guest-wrong", do: func() { wrong("#password", "close sesame") }},
		{name: "guest-dead", page: ended.LinkURL},
		{name: "guest-full", page: bring(ask("One photo", `,"files":1`).LinkURL, "&file=one.jpg")},
		{name: "guest-long", page: bring(ask(long[:100], `,"expires":"7d"`).LinkURL, "&by="+long[:90]+"&file="+long)},
		{
			name: "guest-failed",
			page: "r?failed=400&parameter=by&k=" + strings.Split(ask("Photos", "").LinkURL, "k=")[1],
		},
		{name: "forgot-wrong", do: func() { b.Visit("forgot"); wrong("#user", "nobody else") }},
		{name: "stop-bounced", page: "stop?t=" + s.Data.Ports.Key.Stop(bounced)},
		{name: "stop", page: "stop?t=" + s.Data.Ports.Key.Stop("ann@example.com")},
		{name: "stopped", do: func() { b.Press("main form button") }},
		{name: "login-throttled", do: func() {
			for !strings.Contains(b.Words(), "Too many") {
				b.Login("nobody", "wrong")
			}
		}},
		{name: "forbidden", do: func() { b.Visit(evil + "/"); b.Press("button") }},
		{name: "send-failed", page: "send?failed=400&parameter=downloads", do: func() { b.Login("alice", password) }},
		{name: "sent-several", page: fmt.Sprintf("send?sent=1&sent=%d", alice.Upload("file="+long, "x").ID)},
		{
			name: "token-wrong",
			do:   func() { b.Visit("account"); b.Click("#tokens ~ .fold summary"); wrong("#name", " ") },
		},
		{name: "files-long", page: "files"},
		{name: "file-long", page: fmt.Sprintf("files?id=%d", longest)},
		{name: "backup-file", page: fmt.Sprintf("files?area=backup&id=%d", kept.ID)},
		{name: "requests-many", page: "requests"},
		{name: "requests-edit", page: "requests?id=" + ask("Receipts", `,"password":"open sesame"`).ID},
		{name: "broken", page: "files", do: func() { s.Calls.Before("table.Query", breaks) }},
		{name: "send-long", do: func() { b.Visit("send"); b.Pick(noise(t, long, 9000), noise(t, rtl, 10)) }},
		{
			name: "sending-begins",
			do:   func() { s.Calls.Before("parts.Begin", hang); b.Send(); b.WaitText("being read") },
		},
		{name: "sent-long", do: func() { release(); b.Link() }},
		{
			name: "files-one",
			page: "files",
			do:   func() { b.Visit("account"); b.Press("main .head button"); b.Login("quentin", password) },
		},
		{name: "send-nearly-full", page: "send"},
	} {
		if b.Scriptless && strings.Contains("send-long sending-begins sent-long", state.name) {
			continue
		}
		if state.do != nil {
			state.do()
		}
		if state.page != "" {
			b.Visit(state.page)
		}
		s.Calls.Before("table.Query", nil)
		b.WaitFor("main h1")
		b.Seen(state.name)
	}
}

// TestAFileIsSentByKeyboardAlone sees the focus at each stop on the way.
func TestAFileIsSentByKeyboardAlone(t *testing.T) {
	_, b := begin(t, browsertest.Desk())
	b.Visit("login")
	b.Type("alice")
	b.TabTo("#password")
	b.Type(password)
	b.TabTo("main form button.primary")
	b.Type("\r")
	b.WaitFor("#start .drop")
	b.TabTo("#start input[name=file]")
	b.Choose("#start input[name=file]", noise(t, "timetable.pdf", 2000))
	b.WaitFor("#stage form")
	b.TabTo("#stage .action button")
	b.Type(" ")
	b.WaitFor("#link0")
	b.TabTo("[data-copy]")
	b.Type("\r")
	b.WaitText("Copied")
}

// TestAButtonStaysReadableUnderThePointer tries accents on which white or black text is just readable.
func TestAButtonStaysReadableUnderThePointer(t *testing.T) {
	_, b := begin(t, browsertest.Desk())
	b.Visit("login")
	b.WaitFor("main .primary")
	box := "document.querySelector('main .primary').getBoundingClientRect()"
	x, y := b.Number(box+".x"), b.Number(box+".y")
	for accent, text := range map[string]string{
		"#14568f": "#fff",
		"#767676": "#fff",
		"#777777": "#000",
		"#85bff2": "#0a1c2d",
	} {
		b.Is(`document.documentElement.style.cssText = "--accent: ` + accent + `; --accent-text: ` + text + `", true`)
		b.Do("leaving the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
		before := b.Contrast("main .primary")
		b.Do("pointing at the button", chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x+9, y+9))
		if got := b.Contrast("main .primary"); got <= before || got < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f under the pointer, and %.2f else", text, accent, got, before)
		}
	}
	b.Is(`document.querySelector("main .primary").ariaBusy = "true", true`)
	if got := b.Text(`getComputedStyle(document.querySelector("main .primary"), "::before").animationName`); got != "none" {
		t.Errorf("with reduced motion the busy sign moves: %s", got)
	}
}
