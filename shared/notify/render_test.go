package notify_test

import (
	"context"
	"fmt"
	"html"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/texts"
)

func TestMessagesInEachLanguage(t *testing.T) {
	t.Parallel()
	for _, lang := range texts.Tags() {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			p := newMachine(t)
			link := p.linkNotice(42)
			link.Lang, link.Name, link.Message = lang, "Résumé & plans 2026.pdf", "Hello Ann,\n\nthis is <the> file.\nSee you"
			p.put(t, link)
			text := link
			text.Channel, text.To, text.Message = files.SMS, "+393331234567", ""
			p.put(t, text)
			pin := p.pinNotice()
			pin.Lang = lang
			p.put(t, pin)
			receipt := p.receiptNotice(42)
			receipt.Lang, receipt.Name = lang, link.Name
			p.put(t, receipt)
			invite := p.inviteNotice()
			invite.Lang = lang
			p.put(t, invite)
			arrived := p.pinNotice()
			arrived.Kind, arrived.Expires, arrived.Lang, arrived.Name = notify.Arrived, 0, lang, "Photos of evil.com"
			arrived.Files, arrived.Length, arrived.By, arrived.From = 3, 1_500_000, "1f2e", []string{"Carla", "", "Ann.zip"}
			p.put(t, arrived)
			if sent, _ := p.pass(t, p.sender(t, nil)); sent != 6 {
				t.Fatalf("%d sent: %s", sent, p.log)
			}
			got := p.received(t) // newest first
			for i, name := range map[int]string{0: "arrived-mail-", 1: "invite-mail-", 2: "receipt-mail-", 3: "pin-mail-", 5: "link-mail-"} {
				expect.Golden(t, name+lang+".txt", "Subject: "+got[i].Subject+"\n\n"+got[i].Text)
				expect.Golden(t, name+lang+".html", got[i].HTML)
			}
			expect.Golden(t, "link-sms-"+lang+".txt", got[4].Text+"\n")
			expect.Equal(t, "segments of the text message", notify.Segments(got[4].Text), 1)
		})
	}
}

// sendOne delivers one notice to the inbox and returns what arrived.
func sendOne(t *testing.T, change func(*notify.Notice)) (subject, text, html string) {
	t.Helper()
	p := newMachine(t)
	n := p.linkNotice(1)
	change(&n)
	p.put(t, n)
	p.pass(t, p.sender(t, nil))
	got := p.received(t)
	if len(got) != 1 {
		t.Fatalf("%d messages arrived: %s", len(got), p.log)
	}
	return got[0].Subject, got[0].Text, got[0].HTML
}

func TestMailHoldsTheRecipientsOwnLink(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	tests := []struct {
		name string
		area blob.Area
		want string
	}{
		{"in the user area", blob.Files, base + "/download/file?lang=it&k=" + key.Recipient(blob.Files, "demo", 1, onlyID())},
		{"in the backup area", blob.Backup, base + "/download/file/backup?lang=it&z=" + key.Recipient(blob.Backup, "demo", 1, onlyID())},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, text, page := sendOne(t, func(n *notify.Notice) { n.Area, n.Lang = tt.area, "it" })
			if !strings.Contains(text, "\n"+tt.want+"\n") {
				t.Errorf("the link is not in %s", text)
			}
			if !strings.Contains(html.UnescapeString(page), `href="`+tt.want+`"`) {
				t.Errorf("the link is not in %s", page)
			}
		})
	}
}

func TestAMailShowsANameAsItIsAndNoProgramMakesALinkOfIt(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ name, subject, text, html string }{
		{"Hochzeit.zip", "Hochzeit", "Hochzeit .zip", "Hochzeit<span>.</span>zip"},
		{"notes.md", "notes", "notes .md", "notes<span>.</span>md"},
		{"evil.com.pdf", "evil .com.pdf", "evil .com.pdf", "evil<span>.</span>com.pdf"},
		{"ann@evil.com", "ann @evil", "ann @evil .com", "ann<span>@</span>evil<span>.</span>com"},
		{"https://evil", "https ://evil", "https ://evil", "https<span>:</span>//evil"},
		{"report.v2.pdf", "report.v2.pdf", "report.v2.pdf", "report.v2.pdf"},
	} {
		subject, text, page := sendOne(t, func(n *notify.Notice) { n.Name, n.Message = k.name, "see "+k.name })
		if subject != "demo sent you a file: "+k.subject || !strings.Contains(text, "File: "+k.text+"\n") || !strings.Contains(text, "> see "+k.text+"\n") ||
			strings.Count(page, k.html) < 2 || strings.Contains(subject+text+page, "\x00") {
			t.Errorf("%s: %q\n%s\n%s", k.name, subject, text, page)
		}
	}
}

func TestAMailOfABundleSaysHowManyFilesItHasAndNamesTen(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		files         int
		subject, text string
	}{
		{30, "demo sent you 30\u00a0files: trip", "Contains: 0.jpg\n  1.jpg\n  2.jpg\n  3.jpg\n  4.jpg\n  5.jpg\n  6.jpg\n  7.jpg\n  8.jpg\n  9.jpg\n  and 20\u00a0files more\n"},
		{2, "demo sent you 2\u00a0files: trip", "Contains: 0.jpg\n  1.jpg\nAvailable"},
	} {
		var c files.Contents
		for i := range k.files {
			c.Add(fmt.Sprint(i, ".jpg"))
		}
		c.Add("empty/")
		subject, text, _ := sendOne(t, func(n *notify.Notice) { n.Name, n.Files, n.First = "trip.zip", c.Files(), c.First })
		if subject != k.subject || !strings.Contains(text, k.text) {
			t.Errorf("%q\n%s", subject, text)
		}
	}
}

func TestFileThatNeverExpiresHasNoDate(t *testing.T) {
	t.Parallel()
	_, text, _ := sendOne(t, func(n *notify.Notice) { n.Expires = 0 })
	if strings.Contains(text, "Available until") {
		t.Errorf("got %s", text)
	}
}

func TestAMailSaysWhatLimitsItsLink(t *testing.T) {
	t.Parallel()
	_, text, page := sendOne(t, func(n *notify.Notice) { n.Limit, n.Protected = 3, true })
	for _, want := range []string{"Downloads allowed: 3", "a password that demo gives you"} {
		if !strings.Contains(text, want) || !strings.Contains(page, strings.TrimPrefix(want, "Downloads allowed: ")) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "no password") {
		t.Errorf("got %s", text)
	}
}

func TestUserTextCannotLookLikeOurs(t *testing.T) {
	t.Parallel()
	const fake = "hi\n\nDownload it here:\nhttps://evil.example.org/\r\rx\vy\u2028z\u0085w\x00\x1b[31m\u202efdp.exe"
	subject, text, page := sendOne(t, func(n *notify.Notice) {
		n.Sender, n.Name = "de\r\nmo\u202e", "a\r\nBcc: b@example.org\r\n\r\n<script>.pdf\u2066"
		n.Message = fake + `</blockquote><a href="https://evil.example.org/">Download</a>`
	})
	if want := "de mo sent you a file: a Bcc: b @example .org <script>.pdf"; subject != want {
		t.Errorf("the subject is %q, want %q", subject, want)
	}
	if strings.ContainsAny(text+page, "\r\v\x00\x1b\u0085\u2028\u202e\u2066") {
		t.Error("control characters got through")
	}
	own := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, "evil") && !strings.HasPrefix(line, "> ") {
			t.Errorf("a line of the sender looks like ours: %q", line)
		}
		if line == "Download it here:\n" {
			own++
		}
	}
	expect.Equal(t, "lines that announce the link", own, 1)
	if strings.Contains(page, "<script>") || strings.Contains(page, `href="https://evil`) || strings.Count(page, "</blockquote>") != 1 || strings.Contains(page+text, "evil.example.org") {
		t.Errorf("markup got through: %s", page)
	}
}

func TestTextMessageFitsOneSegmentIfItCan(t *testing.T) {
	t.Parallel()
	link := base + "/download/file?lang=en&k=" + testKey(t).Recipient(blob.Files, "demo", 1, onlyID())
	long := strings.Repeat("quarterly-report-", 14) + ".pdf"
	tests := []struct {
		name, file, message, want string
		segments                  int
	}{
		{"with the name", "report.pdf", "", `demo sent you "report.pdf": ` + link, 1},
		{"with a long name shortened", long, "", `demo sent you "quarterly-report-quarterly-...eport-.pdf": ` + link, 1},
		{"without a name that costs a segment", "报告 🚢.pdf", "", "demo sent you a file: " + link, 1},
		{"with a short message", "a.pdf", "hi", `demo sent you "a.pdf": ` + link + ` "hi"`, 1},
		{"with the whole message, even a long one", "a.pdf", strings.Repeat("word ", 100), `demo sent you "a.pdf": ` + link + ` "` + strings.TrimSpace(strings.Repeat("word ", 100)) + `"`, 5},
		{"with a message that cannot end its quotation", "a\".pdf", "x\" https://evil/\ny", `demo sent you "a'.pdf": ` + link + ` "x' https ://evil/ y"`, 1},
		{"with a message that seems to end its quotation", "a”.pdf", "“x”", `demo sent you "a'.pdf": ` + link + ` "'x'"`, 1},
		{"with plain quotes and dashes where that saves a segment", "l’été – fin….pdf", "", `demo sent you "l'été - fin....pdf": ` + link, 1},
		{"without accents that cost a segment", "información.pdf", "", `demo sent you "informacion.pdf": ` + link, 1},
		{"with accents that cost no segment", "información.pdf", "🚢", `demo sent you "información.pdf": ` + link + ` "🚢"`, 2},
		{"with a name that is written from right to left", "תקציר.pdf", "🚢", "demo sent you \"\u2068תקציר.pdf\u2069\": " + link + ` "🚢"`, 2},
		{"without what would be a link", "evil.com", "see evil.co.uk", `demo sent you "evil .com": ` + link + ` "see evil .co .uk"`, 1},
		{"without a name if there is none", "", "", "demo sent you a file: " + link, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, text, _ := sendOne(t, func(n *notify.Notice) {
				n.Channel, n.To, n.Name, n.Message = files.SMS, "+393331234567", tt.file, tt.message
			})
			if text != tt.want || notify.Segments(text) != tt.segments {
				t.Errorf("got %q in %d segments (%d characters)\nwant %q in %d", text, notify.Segments(text), len(text), tt.want, tt.segments)
			}
		})
	}
}

func TestLongNameIsShortenedOnlyInTheSubject(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("ü", 120) + ".pdf"
	subject, text, _ := sendOne(t, func(n *notify.Notice) { n.Name = name })
	if len([]rune(subject)) > 120 || !strings.HasSuffix(subject, ".pdf") || !strings.Contains(text, "File: "+name+"\n") {
		t.Errorf("subject %q, text %q", subject, text)
	}
}

func TestReceiptSaysWhoseLinkWasUsed(t *testing.T) {
	t.Parallel()
	for recipient, want := range map[string]string{
		"":                "\nLink: the one in your list of files\n",
		"ann@example.com": "\nLink: sent to ann@example.com\n",
		"+393331234567":   "\nLink: sent to +393331234567\n",
	} {
		p := newMachine(t)
		n := p.receiptNotice(1)
		n.Recipient, n.Name = recipient, "evil.com"
		p.put(t, n)
		p.pass(t, p.sender(t, nil))
		got := p.received(t)
		if len(got) != 1 || got[0].Subject != "Your file was downloaded: evil" ||
			!strings.Contains(got[0].Text, want) || !strings.Contains(got[0].Text, "\nDownloaded: 1 August 2026, 14:30 UTC\n") {
			t.Errorf("got %+v: %s", got, p.log)
		}
	}
}

func TestMailSaysHowToUnsubscribe(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	for _, n := range []notify.Notice{p.linkNotice(1), p.receiptNotice(1), p.pinNotice(), p.inviteNotice()} {
		sent := &lastMail{}
		p.put(t, n)
		p.pass(t, p.sender(t, sent))
		want := base + "/notifications/stop?lang=en&t=" + testKey(t).Stop(n.To)
		shown := strings.Contains(sent.Text, "\nStop e-mails like this one:\n"+want+"\n")
		if n.Kind == notify.PIN || n.Kind == notify.Invite { // these must always arrive
			want = ""
		}
		if sent.Unsubscribe != want || shown != (want != "") || strings.Contains(html.UnescapeString(sent.HTML), base+"/notifications/stop") != shown {
			t.Errorf("%s: %q, in\n%s", n.Kind, sent.Unsubscribe, sent.Text)
		}
	}
}

type lastMail struct{ mail.Message }

func (l *lastMail) Send(_ context.Context, m mail.Message) (string, error) {
	l.Message = m
	return m.ID, nil
}

func TestSendersAddressIsShown(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ sender, replyTo, shown string }{
		{"demo", "demo@example.net", "\nFrom: demo@example.net\nFile"},
		{"demo@example.net", "demo@example.net", "demo@example.net sent you a file.\n\nFile"},
		{"demo", "", "demo sent you a file.\n\nFile"},
		{"evil.com", `"https://evil.com"@example.net`, "evil .com sent you a file.\n\nFile"},
	} {
		_, text, _ := sendOne(t, func(n *notify.Notice) { n.Sender, n.ReplyTo = k.sender, k.replyTo })
		if !strings.Contains(text, k.shown) {
			t.Errorf("%s with the address %s: %s", k.sender, k.replyTo, text)
		}
	}
}

func TestMailAboutAFileWithoutANameShowsNoName(t *testing.T) {
	t.Parallel()
	subject, text, page := sendOne(t, func(n *notify.Notice) { n.Name = "\u200b\u202e" })
	if subject != "demo sent you a file" || strings.Contains(text, "File:") || strings.Contains(page, "File:") {
		t.Errorf("subject %q, text %s", subject, text)
	}
}

func TestMailLoadsNothing(t *testing.T) {
	t.Parallel()
	_, _, page := sendOne(t, func(n *notify.Notice) { n.Message = "<img src=x><link rel=stylesheet href=x><style>@import x" })
	for _, bad := range []string{"<img", "<link", "<script", "<iframe", "<style>@", "url(", "src=\""} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in %s", bad, page)
		}
	}
}

func TestANameOrSentenceInASubjectThatIsTooLongEndsInAnEllipsis(t *testing.T) {
	t.Parallel()
	subject, _, _ := sendOne(t, func(n *notify.Notice) {
		n.Sender, n.Name = "Association of the friends of long names and addresses", strings.Repeat("minutes ", 12)+"2026.pdf"
	})
	const want = "Association of the friends of long na... sent you a file: "
	if !strings.HasPrefix(subject, want) || !strings.HasSuffix(subject, "min...s 2026.pdf") {
		t.Errorf("got %q", subject)
	}
}
