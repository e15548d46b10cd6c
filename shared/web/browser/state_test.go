package browser_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/notify"
	"ferry/shared/web/browsertest"
)

// photo returns a JPEG of the sky above the sea.
func photo() string {
	var b bytes.Buffer
	m := image.NewRGBA(image.Rect(0, 0, 640, 400))
	for i := range 640 * 400 {
		x, y, c := i%640, i/640, color.RGBA{18, 70, 96, 255}
		if y < 250 {
			c = color.RGBA{uint8(70 + y/2), uint8(110 + y/3), uint8(190 - y/8), 255}
		}
		m.Set(x, y, c)
	}
	_ = jpeg.Encode(&b, m, nil) // a buffer takes all
	return b.String()
}

// sound is a WAV of a second of silence.
var sound = "RIFF\x64\x1f\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00" +
	"data\x40\x1f\x00\x00" + strings.Repeat("\x80", 8000)

// film is a script that makes a film, as base64.
const film = `new Promise(done => {
	const c = document.createElement("canvas"), x = c.getContext("2d"), parts = [], reader = new FileReader()
	const r = new MediaRecorder(c.captureStream(25), {mimeType: "video/webm"})
	let i = 0
	const t = setInterval(() => { x.fillStyle = "#2b6c" + (10 + i++ % 80); x.fillRect(0, 0, 999, 999) }, 40)
	reader.onload = () => done(reader.result.split(",")[1])
	r.ondataavailable = e => parts.push(e.data)
	r.onstop = () => { clearInterval(t); reader.readAsDataURL(new Blob(parts)) }
	r.start(); setTimeout(() => r.stop(), 500) })`

// TestEachStateIsSeen visits the states of pages that no flow passes.
func TestEachStateIsSeen(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	if !browsertest.All() {
		t.Skip("make test-pages keeps the pictures")
	}
	for _, v := range []browsertest.View{browsertest.Desk(), browsertest.Phone(), browsertest.Phone().WithoutScript()} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			seeStates(t, v)
		})
	}
}

func seeStates(t *testing.T, v browsertest.View) {
	s, b := begin(t, v)
	s.InProcess("it moves the clock, and lets calls to the stores fail")
	alice, quentin := s.As("alice"), s.Add("quentin", apitest.Quota(1000))
	json := []string{"Content-Type", "application/json"}
	long := strings.Repeat("Vertragsverhandlungsprotokoll", 7)[:190] + "-final.pdf"
	rtl := strings.Repeat("חוזה-שכירות-", 7) + "2026.pdf"
	link := func(query, content string) string { return alice.Upload(query, content).LinkURL }
	ask := func(title, more string) (made struct{ ID, LinkURL string }) {
		about := fmt.Sprintf(`{"title":%q,"message":"Everything from the first week"%s}`, title, more)
		return apitest.Read[struct{ ID, LinkURL string }](alice.Ask("POST /requests", about, json...).Want(201))
	}
	bring := func(query, to string) string {
		s.Send("POST "+to+query, "content").Want(200)
		return to
	}
	photos := map[string]string{"harbour.jpg": photo(), "pier.jpg": photo()}
	notes := strings.Repeat("The ferry leaves at half past nine.\n", 60)
	ended, edited := ask("Nothing any more", ""), ask("Receipts", `,"password":"open sesame","bytes":5000000`)
	alice.Ask("DELETE /requests/"+ended.ID, "").Want(204)
	message := url.QueryEscape(strings.Repeat("Here is the plan. ", 24))
	plan := alice.Upload("file=plan.zip&m=bob@example.com&i="+message, "plan")
	messaged := s.Base + s.LinksOf(s.Newest("alice"))[1]
	alice.Ask(fmt.Sprintf("DELETE /files/%d", alice.Upload("file=minutes.pdf", "minutes").ID), "").Want(200)
	kept := alice.Ask("GET /download/list/backup", "").Want(200).File()
	alice.Ask("POST /uploads", fmt.Sprintf(`{"name":%q,"length":100}`, long), json...).Want(201)
	bounced := notify.Suppress("carla@example.com", notify.AddressBounced, "", time.Now())
	apitest.Must(t, s.Data.Table.Write(t.Context(), bounced))
	quentin.Upload("file=report.pdf", strings.Repeat("x", 960))
	longest := alice.Upload("file="+long+"&m="+long[:60]+"@example.com", "x").ID
	crossing, hold := link("file=crossing.webm", "a film"), make(chan bool)
	if !v.Scriptless {
		made, err := base64.StdEncoding.DecodeString(b.Text(film))
		apitest.Must(t, err)
		crossing = link("file=crossing.webm", string(made))
	}
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	who := ""
	for _, state := range []struct {
		name, who, page string // who is logged in
		do              func() // before the page is visited, or instead
	}{
		{"link-image", "", link("file=harbour.jpg", photo()), nil},
		{"link-film", "", crossing, nil},
		{"link-sound", "", link("file=horn.wav", sound), nil},
		{"link-text", "", link("file=notes.txt", notes), nil},
		{"link-message", "", messaged, nil},
		{"link-long", "", link("downloads=3&file="+long, "x"), nil},
		{"link-rtl", "", link("file="+url.QueryEscape(rtl), "x"), nil},
		{"link-backup", "", kept.LinkURL, nil},
		{"bundle-pictures-only", "", bundle(s, "trip.zip", photos), nil},
		{"bundle-picture", "", "", func() { b.Press("ul.grid a") }},
		{"bundle-closed", "", bundle(s, "trip.zip&downloads=2", photos), nil},
		{"dead-expired", "", link("file=late.txt&expires=10m", "late"), func() { s.Clock.Advance(time.Hour) }},
		{"guest-locked", "", ask("Minutes", `,"password":"open sesame"`).LinkURL, nil},
		{"guest-wrong", "", "", func() { b.Fill("#password", "close sesame"); b.Press("main .primary") }},
		{"guest-dead", "", ended.LinkURL, nil},
		{"guest-full", "", bring("&file=one.jpg", ask("One photo", `,"files":1`).LinkURL), nil},
		{"guest-long", "", bring("&by="+long[:90]+"&file="+long, ask(long[:100], `,"expires":"7d"`).LinkURL), nil},
		{"guest-rtl", "", ask(rtl[:90], "").LinkURL, nil},
		{"guest-failed", "", "r?failed=400&parameter=by&k=" + strings.Split(ask("Photos", "").LinkURL, "k=")[1], nil},
		{"forgot-wrong", "", "", func() { b.Visit("forgot"); b.Fill("#user", "nobody else"); b.Press("main .primary") }},
		{"stop-bounced", "", "stop?t=" + s.Data.Ports.Key.Stop("carla@example.com"), nil},
		{"login-throttled", "", "", func() {
			for s.Send("POST /auth/login", "", "Authorization", apitest.Basic("nobody", "wrong")).Code == 401 {
			}
			b.Login("nobody", "wrong")
			b.WaitText("Too many tries")
		}},
		{"send-failed", "alice", "send?failed=400&parameter=downloads", nil},
		{"send-failed-whole", "alice", "send?failed=413", nil},
		{"sent-several", "alice", fmt.Sprintf("send?sent=%d&sent=%d", plan.ID, s.Newest("alice").ID), nil},
		{"forbidden", "alice", "send?sent=1&d=quentin", nil},
		{"token-wrong", "alice", "", func() {
			b.Visit("account")
			b.Click("#tokens ~ details.fold summary")
			b.Fill("#name", " ")
			b.Press("#tokens ~ details.fold .primary")
		}},
		{"files-long", "alice", "files", nil},
		{"file-long", "alice", fmt.Sprintf("files?id=%d", longest), nil},
		{"backup-file", "alice", fmt.Sprintf("files?area=backup&id=%d", kept.ID), nil},
		{"requests-many", "alice", "requests", nil},
		{"requests-edit", "alice", "requests?id=" + edited.ID, nil},
		{"broken", "alice", "", func() {
			b.Expect("status of 500")
			s.Calls.Before("table.Query", func() error { return errors.New("the disk is broken") })
			b.Visit("files")
			s.Calls.Before("table.Query", nil)
		}},
		{"send-long", "alice", "", func() {
			b.Visit("send")
			b.Pick(noise(t, long, 5<<20), noise(t, rtl, 3<<20))
		}},
		{"sending-begins", "alice", "", func() {
			s.Calls.Before("parts.Begin", func() error { <-hold; return nil })
			b.Send()
			b.WaitText("being read")
		}},
		{"sent-long", "alice", "", func() { release(); b.Link() }},
		{"files-one", "quentin", "files", nil},
		{"send-nearly-full", "quentin", "send", nil},
		{"account-nearly-full", "quentin", "account", nil},
	} {
		if v.Scriptless && (strings.HasPrefix(state.name, "sending-") || strings.HasSuffix(state.name, "t-long")) {
			continue
		}
		if state.who != who {
			if who != "" {
				b.Visit("account")
				b.Press("form[action=logout] button")
			}
			if who = state.who; who != "" {
				b.Login(who, password)
			}
		}
		if state.do != nil {
			state.do()
		}
		if state.page != "" {
			b.Visit(state.page)
		}
		b.WaitFor("main h1")
		b.Seen(state.name)
	}
}
