package notify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
	"ferry/shared/notify/texts"
)

// TestMessagesInEachLanguage compares the messages of one language whole, and looks for a text of each kind in the
// others. What all languages must have is in texts_test.go.
func TestMessagesInEachLanguage(t *testing.T) {
	t.Parallel()
	for _, lang := range texts.Tags() {
		p, said := newMachine(t), notify.TextsOf(lang)
		link, receipt, arrived := p.linkNotice(42), p.receiptNotice(42), p.pinNotice()
		link.Name, link.Message = "Résumé & plans 2026.pdf", "Hello Ann,\n\nthis is <the> file.\nSee you"
		text := link
		text.Channel, text.To, text.Message = files.SMS, "+393331234567", ""
		receipt.Name = link.Name
		arrived.Kind, arrived.Expires, arrived.Name = notify.Arrived, 0, "Photos of evil.com"
		arrived.Files, arrived.Length, arrived.By, arrived.From = 3, 1_500_000, "1f2e", []string{"Carla", "", "Ann.zip"}
		for _, k := range []struct {
			golden string
			notice notify.Notice
			says   string
		}{
			{golden: "link-mail-en", notice: link, says: said.LinkHere},
			{notice: text, says: fmt.Sprintf(said.Shared, text.Sender, text.Name)},
			{golden: "pin-mail-en", notice: p.pinNotice(), says: said.PINHere},
			{golden: "receipt-mail-en", notice: receipt, says: said.ReceiptIntro},
			{golden: "invite-mail-en", notice: p.inviteNotice(), says: said.InviteHere},
			{golden: "arrived-mail-en", notice: arrived, says: said.ArrivedIntro},
		} {
			k.notice.Lang = lang
			p.put(k.notice)
			p.pass(p.sender(p.table, nil))
			got := p.received()[0]
			if !strings.Contains(got.Text, k.says) || k.golden == "" && notify.Segments(got.Text) != 1 {
				t.Errorf("%q is not in %s", k.says, got.Text)
			}
			if lang == "en" && k.golden != "" {
				expect.Golden(t, k.golden+".txt", "Subject: "+got.Subject+"\n\n"+got.Text)
				expect.Golden(t, k.golden+".html", got.HTML)
			}
		}
	}
}

// sendOne delivers one notice to the inbox and returns what arrived.
func sendOne(t *testing.T, change func(*notify.Notice)) (subject, text, html string) {
	t.Helper()
	p := newMachine(t)
	n := p.linkNotice(1)
	change(&n)
	p.put(n)
	p.pass(p.sender(p.table, nil))
	got := p.received()
	if len(got) != 1 {
		t.Fatalf("%d messages arrived: %s", len(got), p.log)
	}
	return got[0].Subject, got[0].Text, got[0].HTML
}

func TestAMailSaysWhatItsNoticeHolds(t *testing.T) {
	t.Parallel()
	backup := base + "/download/file/backup?lang=it&z=" + testKey(t).Recipient(blob.Backup, "demo", 1, onlyID())
	const plain = " sent you a file.\n\nFile"
	for name, k := range map[string]struct {
		change     func(*notify.Notice)
		has, lacks string
	}{
		"the link of a file in the backup area": {
			change: func(n *notify.Notice) { n.Area, n.Lang = blob.Backup, "it" }, has: "\n" + backup + "\n",
		},
		"no date if it never expires": {change: func(n *notify.Notice) { n.Expires = 0 }, lacks: "Available until"},
		"a limit of downloads": {
			change: func(n *notify.Notice) { n.Limit = 3 },
			has:    "\nDownloads allowed: 3\n",
		},
		"a password": {
			change: func(n *notify.Notice) {
				n.Protected = true
			}, has: "a password that demo gives you", lacks: "no password",
		},
		"no name if there is none": {
			change: func(n *notify.Notice) {
				n.Name = "\u200b\u202e"
			}, has: "demo sent you a file\ndemo sent you a file.\n", lacks: "File:",
		},
		"text from right to left by itself": {
			change: func(n *notify.Notice) { n.Sender, n.Name = "דנה", "تقرير 2026.pdf" },
			has:    "\u2068דנה\u2069 sent you a file.\n\nFrom: demo@example.net\nFile: \u2068تقرير 2026.pdf\u2069\n",
		},
		"the sender's address": {change: func(*notify.Notice) {}, has: "\nFrom: demo@example.net\nFile"},
		"it only once": {
			change: func(n *notify.Notice) { n.Sender = n.ReplyTo },
			has:    "demo@example.net" + plain,
		},
		"none that is not known": {change: func(n *notify.Notice) { n.ReplyTo = "" }, has: "demo" + plain},
		"none that could deceive": {
			change: func(n *notify.Notice) { n.Sender, n.ReplyTo = "evil.com", `"https://evil.com"@example.net` },
			has:    "evil .com" + plain,
		},
		"the upload's own link in a receipt": {
			change: func(n *notify.Notice) { n.Kind, n.Name = notify.Receipt, "evil.com" },
			has:    "\nLink: the one in your list of files\n", lacks: "evil.com",
		},
	} {
		subject, text, _ := sendOne(t, k.change)
		said := subject + "\n" + text
		if !strings.Contains(said, k.has) || k.lacks != "" && strings.Contains(said, k.lacks) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func TestAMailShowsANameAsItIsAndNoProgramMakesALinkOfIt(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ name, subject, text, html string }{
		{name: "Hochzeit.zip", subject: "Hochzeit", text: "Hochzeit .zip", html: "Hochzeit<span>.</span>zip"},
		{name: "evil.com.pdf", subject: "evil .com.pdf", text: "evil .com.pdf", html: "evil<span>.</span>com.pdf"},
		{name: "https://evil", subject: "https ://evil", text: "https ://evil", html: "https<span>:</span>//evil"},
	} {
		subject, text, page := sendOne(t, func(n *notify.Notice) { n.Name, n.Message = k.name, "see "+k.name })
		if subject != "demo sent you a file: "+k.subject ||
			!strings.Contains(text, "File: "+k.text+"\n") ||
			!strings.Contains(text, "> see "+k.text+"\n") ||
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
		{
			files:   30,
			subject: "demo sent you 30\u00a0files: trip",
			text:    "Contains: 0.jpg\n  1.jpg\n  2.jpg\n  3.jpg\n  4.jpg\n  5.jpg\n  6.jpg\n  7.jpg\n  8.jpg\n  9.jpg\n  and 20\u00a0files more\n",
		},
		{files: 2, subject: "demo sent you 2\u00a0files: trip", text: "Contains: 0.jpg\n  1.jpg\nAvailable"},
	} {
		var c files.Contents
		for i := range k.files {
			c.Add(fmt.Sprint(i, ".jpg"))
		}
		c.Add("empty/")
		subject, text, _ := sendOne(t, func(n *notify.Notice) {
			n.Name, n.Files, n.First = "trip.zip", c.Files(), c.First
		})
		if subject != k.subject || !strings.Contains(text, k.text) {
			t.Errorf("%q\n%s", subject, text)
		}
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
	if strings.Contains(page, "<script>") ||
		strings.Contains(page, `href="https://evil`) ||
		strings.Count(page, "</blockquote>") != 1 ||
		strings.Contains(page+text, "evil.example.org") {
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
		{
			name:     "with a long name shortened",
			file:     long,
			want:     `demo sent you "quarterly-report-quarterly-...eport-.pdf": ` + link,
			segments: 1,
		},
		{
			name:     "without a name that costs a segment",
			file:     "报告 🚢.pdf",
			want:     "demo sent you a file: " + link,
			segments: 1,
		},
		{
			name:     "with a short message",
			file:     "a.pdf",
			message:  "hi",
			want:     `demo sent you "a.pdf": ` + link + ` "hi"`,
			segments: 1,
		},
		{
			name:     "with the whole message, even a long one",
			file:     "a.pdf",
			message:  strings.Repeat("word ", 100),
			want:     `demo sent you "a.pdf": ` + link + ` "` + strings.TrimSpace(strings.Repeat("word ", 100)) + `"`,
			segments: 5,
		},
		{
			name:     "with a message that cannot end its quotation",
			file:     "a\".pdf",
			message:  "x\" https://evil/\ny",
			want:     `demo sent you "a'.pdf": ` + link + ` "x' https ://evil/ y"`,
			segments: 1,
		},
		{
			name:     "with a message that seems to end its quotation",
			file:     "a”.pdf",
			message:  "“x”",
			want:     `demo sent you "a'.pdf": ` + link + ` "'x'"`,
			segments: 1,
		},
		{
			name:     "with plain quotes and dashes where that saves a segment",
			file:     "l’été – fin….pdf",
			want:     `demo sent you "l'été - fin....pdf": ` + link,
			segments: 1,
		},
		{
			name:     "without accents that cost a segment",
			file:     "información.pdf",
			want:     `demo sent you "informacion.pdf": ` + link,
			segments: 1,
		},
		{
			name:     "with accents that cost no segment",
			file:     "información.pdf",
			message:  "🚢",
			want:     `demo sent you "información.pdf": ` + link + ` "🚢"`,
			segments: 2,
		},
		{
			name:     "with a name that is written from right to left",
			file:     "תקציר.pdf",
			message:  "🚢",
			want:     "demo sent you \"\u2068תקציר.pdf\u2069\": " + link + ` "🚢"`,
			segments: 2,
		},
		{
			name:     "without what would be a link",
			file:     "evil.com",
			message:  "see evil.co.uk",
			want:     `demo sent you "evil .com": ` + link + ` "see evil .co .uk"`,
			segments: 1,
		},
		{name: "without a name if there is none", want: "demo sent you a file: " + link, segments: 1},
	}
	for _, tt := range tests {
		_, text, _ := sendOne(t, func(n *notify.Notice) {
			n.Channel, n.To, n.Name, n.Message = files.SMS, "+393331234567", tt.file, tt.message
		})
		if text != tt.want || notify.Segments(text) != tt.segments {
			t.Errorf("%s: got %q in %d segments\nwant %q in %d",
				tt.name, text, notify.Segments(text), tt.want, tt.segments)
		}
	}
}

// TestAProviderGetsTheAddressesOfAMail is about those that are in no text: the page that stops mails is not for what
// must always arrive, and an address to reply to that is none is left out.
func TestAProviderGetsTheAddressesOfAMail(t *testing.T) {
	t.Parallel()
	p := newMachine(t)
	stop := base + "/notifications/stop?lang=en&t=" + testKey(t).Stop(ann)
	spy := p.linkNotice(2)
	spy.ReplyTo = "a@example.org\r\nBcc: spy@example.org"
	for _, k := range []struct {
		notice               notify.Notice
		unsubscribe, replyTo string
	}{
		{notice: p.linkNotice(1), unsubscribe: stop, replyTo: "demo@example.net"},
		{notice: spy, unsubscribe: stop},
		{notice: p.pinNotice()},
		{notice: p.inviteNotice()},
	} {
		var got lastMail
		n := p.put(k.notice)
		p.pass(p.sender(p.table, notify.ByMail(&got)))
		if got.Unsubscribe != k.unsubscribe ||
			got.ReplyTo != k.replyTo ||
			got.To != n.To ||
			got.ID != n.ID ||
			got.From != "Ferry <ferry@example.org>" {
			t.Errorf("%s: %+v", n.Kind, got)
		}
	}
}

type lastMail struct{ mail.Message }

func (l *lastMail) Send(_ context.Context, m mail.Message) (string, error) {
	l.Message = m
	return m.ID, nil
}

func TestANameOrSentenceInASubjectThatIsTooLongEndsInAnEllipsis(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("minutes ", 12) + "2026.pdf"
	subject, text, _ := sendOne(t, func(n *notify.Notice) {
		n.Sender, n.Name = "Association of the friends of long names and addresses", name
	})
	const want = "Association of the friends of long na... sent you a file: "
	if !strings.HasPrefix(subject, want) ||
		!strings.HasSuffix(subject, "min...s 2026.pdf") ||
		!strings.Contains(text, "File: "+name+"\n") {
		t.Errorf("got %q", subject)
	}
}
