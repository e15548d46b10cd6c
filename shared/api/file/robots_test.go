package file_test

import (
	"net/http"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/boot/expect"
)

func TestPreviewsAndScannersCountAsRobots(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"no name":           "",
		"blanks":            "  ",
		"Slack":             "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
		"Slack's images":    "Slack-ImgProxy (+https://api.slack.com/robots)",
		"WhatsApp":          "WhatsApp/2.23.20.0 A",
		"Facebook":          "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
		"X":                 "Twitterbot/1.0",
		"Telegram":          "TelegramBot (like TwitterBot)",
		"Teams":             "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com",
		"Office":            "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
		"Office's look":     "Microsoft Office Existence Discovery",
		"Outlook":           "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.4266; Pro)",
		"Safe Links":        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b",
		"Barracuda":         "Barracuda Sentinel (EE)",
		"Proofpoint":        "Mozilla/5.0 (compatible; Proofpoint URL Defense)",
		"Mimecast":          "Mimecast/1.0",
		"Google":            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"Apple":             "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)",
		"Baidu":             "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
		"Mastodon":          "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.social/)",
		"Matrix":            "Synapse (bot; +https://github.com/matrix-org/synapse)",
		"a headless Chrome": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36",
	} {
		expect.Equal(t, name, file.MadeByRobot(request("User-Agent", agent)), true)
	}
}

func TestBrowsersAndToolsCountAsPeople(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{
		"Firefox":                  "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
		"Chrome":                   "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
		"Safari on a telephone":    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
		"a telephone of CUBOT":     "Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36",
		"the browser in Facebook":  "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/470.0.0.38.109;FBDV/iPhone14,5]",
		"the browser in Telegram":  "Mozilla/5.0 (Linux; Android 13) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0 Mobile Safari/537.36 Telegram-Android/10.2.9",
		"curl":                     "curl/8.14.1",
		"wget":                     "Wget/1.25.0",
		"ferry, or any Go program": "Go-http-client/1.1",
		"a program in Python":      "python-requests/2.32.3",
		"Windows PowerShell":       "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1",
	} {
		expect.Equal(t, name, file.MadeByRobot(request("User-Agent", agent)), false)
	}
}

func TestPrefetchingBrowserCountsAsRobot(t *testing.T) {
	t.Parallel()
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{name: "Sec-Purpose", value: "prefetch", want: true},
		{name: "Sec-Purpose", value: "prefetch;prerender", want: true},
		{name: "Sec-Purpose", value: "prefetch;anonymous-client-ip", want: true},
		{name: "Purpose", value: "prefetch", want: true},
		{name: "X-Purpose", value: "preview", want: true},
		{name: "X-Moz", value: "prefetch", want: true},
		{name: "Purpose", value: "navigation"},
		{name: "Sec-Fetch-Mode", value: "navigate"},
	} {
		r := request("User-Agent", firefox)
		r.Header.Set(c.name, c.value)
		expect.Equal(t, c.name+": "+c.value, file.MadeByRobot(r), c.want)
	}
}

func request(name, value string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	r.Header.Set(name, value)
	return r
}
