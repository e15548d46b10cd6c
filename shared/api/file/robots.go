package file

import (
	"net/http"
	"strings"
)

// listed reports whether a word of a User-Agent, in lower case, is one that only
// robots have. Where their makers say so:
//
//	slackbot, slack-imgproxy     https://api.slack.com/robots
//	facebookexternalhit, facebookcatalog, meta-externalagent, meta-externalfetcher
//	                             https://developers.facebook.com/docs/sharing/webmasters/web-crawlers
//	                             (iMessage, LINE and KakaoTalk have the first as well)
//	twitterbot                   https://developer.x.com/en/docs/x-for-websites/cards/guides/getting-started
//	googlebot and other names of Google's
//	                             https://developers.google.com/search/docs/crawling-indexing/overview-google-crawlers
//	bingbot, bingpreview         https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0
//	applebot                     https://support.apple.com/en-us/119829
//	ms-office, msoffice          https://learn.microsoft.com/en-us/office/troubleshoot/office-suite-issues/click-hyperlink-to-sso-website
//	                             (Office and Outlook ask themselves before they hand a link to the browser)
//
// The others, and the mail gateways of Barracuda, Proofpoint, Mimecast, Cisco,
// Trend Micro, FireEye and Symantec, publish no list. The words are those under
// which operators of sites and mailing lists see them, where they do not hide.
func listed(word string) bool {
	switch word {
	case "slack-imgproxy", "facebookexternalhit", "facebookcatalog", "facebot", "meta-externalagent", "meta-externalfetcher",
		"skypeuripreview", "bingpreview", "google-inspectiontool", "apis-google", "google-safety", "feedfetcher-google", "google-read-aloud",
		"googleimageproxy", "googleother", "mediapartners-google", "iframely", "embedly", "mastodon", "line-poker", "kakaotalk-scrap",
		"ms-office", "msoffice", "safelinks", "barracuda", "barracudacentral", "proofpoint", "urldefense", "mimecast", "ciscosecureemail",
		"ironport", "tmes", "trendmicro", "fireeye", "symantec", "messagelabs", "virustotal", "urlscan", "zscaler", "mailguard", "headlesschrome":
		return true
	}
	return false
}

// discovers reports whether it is Office or Outlook that asks what a link leads to.
func discovers(agent string) bool {
	if !strings.Contains(agent, "microsoft") {
		return strings.Contains(agent, "safe links")
	}
	return strings.Contains(agent, "microsoft office") || strings.Contains(agent, "microsoft outlook") || strings.Contains(agent, "microsoft-webdav-miniredir")
}

// MadeByRobot reports whether a program made the request on its own: by its
// User-Agent, or because there is none, or because a browser asks for what its
// user has not opened.
//
// Scanners that want to see what a person would see claim to be a browser and
// cannot be recognized. They get the page that browsers get, and only the button
// on that page leads to the file.
func MadeByRobot(r *http.Request) bool {
	return prefetch(r.Header) || named(r.Header.Get("User-Agent"))
}

// prefetch knows Sec-Purpose (https://fetch.spec.whatwg.org/#sec-purpose-header)
// and what browsers sent before there was that.
func prefetch(h http.Header) bool {
	for _, name := range []string{"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"} {
		value := strings.ToLower(h.Get(name))
		if strings.HasPrefix(value, "prefetch") || strings.HasPrefix(value, "preview") || strings.HasPrefix(value, "instant") {
			return true
		}
	}
	return false
}

func named(agent string) bool {
	agent = strings.ToLower(agent)
	if strings.TrimSpace(agent) == "" {
		return true // Safe Links among others; programs that people use have a name
	}
	if discovers(agent) || strings.HasPrefix(agent, "whatsapp/") { // in the midst that would be a browser within
		return true
	}
	for word := range strings.FieldsFuncSeq(agent, func(c rune) bool { return (c < 'a' || c > 'z') && c != '-' }) {
		if listed(word) || robotic(word) {
			return true
		}
	}
	return false
}

// robotic reports whether a word says of itself that it is a robot's: slackbot,
// slackbot-linkexpanding, crawler, baiduspider. CUBOT makes telephones.
func robotic(word string) bool {
	for part := range strings.SplitSeq(word, "-") {
		switch {
		case part == "cubot":
		case strings.HasSuffix(part, "bot"), strings.HasSuffix(part, "crawler"), strings.HasSuffix(part, "spider"),
			strings.HasSuffix(part, "preview"), strings.HasSuffix(part, "scanner"), strings.HasSuffix(part, "robot"):
			return true
		}
	}
	return false
}
