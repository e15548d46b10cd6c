package notify_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ferry/shared/boot/expect"
	"ferry/shared/contact"
	"ferry/shared/notify"
	"ferry/shared/notify/mail"
)

func TestUserTextNeverBecomesALink(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"see https://evil.example.com/a?b=c#d now": "see https ://evil.example .com/a?b=c#d now", // a web address
		"HTTPS://EVIL.COM":                         "HTTPS ://EVIL .COM",                         // one in capitals
		"http://localhost/x":                       "http ://localhost/x",                        // one without dots
		"www.evil.docx":                            "www .evil .docx",                            // a domain with www and an unknown end
		"пример.рф, 例子.中国":                         "пример .рф, 例子 .中国",                         // a domain in another script
		"evil.xn--p1ai":                            "evil .xn--p1ai",                             // a domain in ASCII for another script
		"evil．com evil․com evil﹒com":               "evil ．com evil ․com evil ﹒com",              // a domain with other dots
		// a domain with ideographic dots
		"evil。com evil｡com evil︒com 例子。中国": "evil 。com evil ｡com evil ︒com 例子 。中国",
		"www。evil．docx 192。0．2.1":          "www 。evil ．docx 192 。0 ．2 .1", // several kinds of dots
		// a domain before a port, a comma, a stop
		"evil.com:80 evil.com, evil.com.": "evil .com:80 evil .com, evil .com.",
		"evil.co-x evil.co_x":             "evil .co-x evil .co_x", // a domain before a hyphen or an underscore
		"x.y.com":                         "x.y .com",              // a domain of one letter
		// a domain split by invisible characters
		"evil\u200b.\u2060com e\u00advil.c\u200dom evil.\ufe0fcom": "evil .com evil .com evil .com",
		"192.0.2.1 and 192.0.2.1:8080/x":                           "192 .0 .2 .1 and 192 .0 .2 .1:8080/x", // an address of a machine
		"a.b@example.com, mailto:a@b.de":                           "a.b @example .com, mailto:a @b .de",   // an e-mail address
		"root@localhost":                                           "root @localhost",                      // one of a machine without a domain
		`\\evil\share`:                                             `\ \evil\share`,                        // a share
		"photos.zip film.mov README.md":                            "photos .zip film .mov README .md",     // a file that could be a domain

		"evil.app evil.bank": "evil .app evil .bank",  // a domain among the newer ones
		"evil.co.uk evil.ck": "evil .co .uk evil .ck", // domains below a public suffix
		// a domain with letters that look like Latin ones
		"evil.сom évil.vermögensberater": "evil .сom évil .vermögensberater",

		// names of people stay
		"anna.rossi, josé.muñoz, max.muster-frau": "anna.rossi, josé.muñoz, max.muster-frau",
		// a file stays
		"bericht.entwurf.v2.docx, Übersicht.März.xlsx, part.sldprt, report.pdf, Übersicht.xlsx, a.tar.gz, video.mp4, x.7z, photo.JPG": "bericht.entwurf.v2.docx, Übersicht.März.xlsx, part.sldprt, report.pdf, Übersicht.xlsx, a.tar.gz, video.mp4, x.7z, photo.JPG",
		// dates, prices and versions stay
		"21.11.2026, 3.50 EUR, v1.26, 1.234.567,89": "21.11.2026, 3.50 EUR, v1.26, 1.234.567,89",
		"z.B. e.g. a.m. d.h. i.e.":                  "z.B. e.g. a.m. d.h. i.e.", // abbreviations stay
		// sentences stay
		"usw.Das Here it is. See you... wait...it is (done). 12:30, a:b, @ann, 5 @ 3, C:\\x": "usw.Das Here it is. See you... wait...it is (done). 12:30, a:b, @ann, 5 @ 3, C:\\x",
		"你好。这是你要的文件。资料をお送りします。ご確認ください。":                                                      "你好。这是你要的文件。资料をお送りします。ご確認ください。", // sentences in Chinese and Japanese stay
	}
	turns(t, notify.Display, tests)
	turns(t, func(text string) string { return notify.Display(notify.Display(text)) }, tests)
}

// turns checks what a function makes of texts.
func turns[T comparable](t *testing.T, f func(string) T, tests map[string]T) {
	t.Helper()
	for text, want := range tests {
		expect.Equal(t, fmt.Sprintf("%q", text), f(text), want)
	}
}

func TestInvisibleCharactersAreLeftOut(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"a\u202efdp.exe\u202c \u200fb\u2066c\u2069\u061c":             "afdp.exe bc",                           // reordering
		"pay\u200bpal \ufeffx\u2060y \u00adz\u180e\u034f\u115f\u3164": "paypal xy z",                           // zero widths
		"x\U000e0041\U000e007fy":                                      "xy",                                    // tags
		"pay\u200dpal\u200c\ufe0f":                                    "paypal",                                // joiners and variants among Latin letters
		"Z" + strings.Repeat("\u0310", 50) + "a":                      "Z" + strings.Repeat("\u0310", 6) + "a", // too many accents
		// a joined emoji stays
		"👩\u200d👩\u200d👧 1\ufe0f\u20e3 ❤\ufe0f 🇮🇹": "👩\u200d👩\u200d👧 1\ufe0f\u20e3 ❤\ufe0f 🇮🇹",
		"می\u200cخواهم क्\u200dष":                  "\u2068می\u200cخواهم क्\u200dष\u2069", // Persian and Hindi stay
		"e\u0301 Việt":                             "e\u0301 Việt",                        // accents stay
	}
	turns(t, notify.Display, tests)
}

func TestShortenedNameEndsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"abcdefghijklmnop.pdf":           "abcde...pdf",
		"ab\u0301cdefghijklmn.pdf":       "ab\u0301cd...pdf",
		"abcde\u0301ghijklmnop.pdf":      "abcde...pdf",
		"abcd\U0001f469\u200d\U0001f467": "abcd\U0001f469\u200d\U0001f467",
		"abcdefghijklmno\u0301pd":        "abcde...pd",
	} {
		expect.Equal(t, name, notify.Shorten(name, 11), want)
	}
}

// linklike is some of what programs make a link of, and what hides one.
var linklike = regexp.MustCompile(`[\pL\pN]://|(?i:(^|\s)www|[\pL\pN])[.。｡．](?i:com|org|de)([^\pL\pM\pN]|$)|[\x{202e}\x{200b}\r\n]`)

func FuzzUserTextIsNotALink(f *testing.F) {
	f.Add("see https://evil.example.com/")
	f.Add("a\u200b.\u202ecom")
	f.Add("x\u3002com y\uff61com z\uff0ecom")
	f.Fuzz(func(t *testing.T, text string) {
		got := notify.Display(text)
		// The guard of 2,000 characters may cut what the spaces added, if the text was as long.
		if again := notify.Display(got); again != got && utf8.RuneCountInString(got) <= 2000 {
			t.Errorf("%q becomes %q, and then %q", text, got, again)
		}
		if found := linklike.FindString(got); found != "" {
			t.Errorf("%q has a link %q: %q", text, found, got)
		}
	})
}

func FuzzAnAcceptedAddressIsSafeInAMail(f *testing.F) {
	for _, text := range []string{
		"ann@example.com", "用户@例子.中国", "a\u202enn@example.com", "root@127.0.0.1", "x%y@z",
		`"a b"@example.com`, "a@b.com\r\nBcc: c@d.com",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text, err := contact.ParseAddress(text)
		if err != nil {
			return
		}
		if len(text) > 254 || strings.Count(text, "@") != 1 || !mail.Valid(text) {
			t.Fatalf("%q is accepted", text)
		}
		if strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Z) || strings.ContainsRune(`%!<>()[],;:\"`, r)
		}) {
			t.Errorf("%q is accepted", text)
		}
		// What shows it, shows it as it is.
		if shown := strings.ReplaceAll(notify.Display(text), " ", ""); shown != text &&
			shown != "\u2068"+text+"\u2069" {
			t.Errorf("%q is shown as %q", text, shown)
		}
		sent := mail.Message{ID: "1", From: "ferry@example.com", To: text}
		e, err := sent.Envelope()
		if err != nil || e.To.Address != text {
			t.Errorf("%q is sent to %v, %v", text, e.To, err)
		}
	})
}
