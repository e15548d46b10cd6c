package file

import (
	"net/http"
	"slices"
	"strings"
)

// knownRobots are the words of a User-Agent, in lower case, that only robots use. Their makers
// document these:
//
//	slackbot, slack-imgproxy     https://api.slack.com/robots
//	facebookexternalhit, facebookcatalog, meta-externalagent, meta-externalfetcher
//	                             https://developers.facebook.com/docs/sharing/webmasters/web-crawlers
//	                             (iMessage, LINE and KakaoTalk use the first too)
//	twitterbot                   https://developer.x.com/en/docs/x-for-websites/cards/guides/getting-started
//	googlebot and other names of Google's
//	                             https://developers.google.com/search/docs/crawling-indexing/overview-google-crawlers
//	bingbot, bingpreview         https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0
//	applebot                     https://support.apple.com/en-us/119829
//	ms-office, msoffice          https://learn.microsoft.com/en-us/office/troubleshoot/office-suite-issues/click-hyperlink-to-sso-website
//	                             (Office and Outlook open a link themselves before they give it to the browser)
//
// The others, such as the mail gateways of Barracuda, Proofpoint, Mimecast, Cisco, Trend
// Micro, FireEye and Symantec, publish no list. Operators of sites and mailing lists see
// them under these words, unless they hide.
const knownRobots = `
	slack-imgproxy facebookexternalhit facebookcatalog meta-externalagent meta-externalfetcher
	google-inspectiontool apis-google google-safety feedfetcher-google google-read-aloud
	googleimageproxy googleother mediapartners-google iframely embedly mastodon line-poker kakaotalk-scrap
	ms-office msoffice safelinks barracuda barracudacentral proofpoint urldefense mimecast ciscosecureemail
	ironport tmes trendmicro fireeye symantec messagelabs virustotal urlscan zscaler mailguard headlesschrome`

// isLinkCheck reports whether Office or Outlook checks where a link leads.
func isLinkCheck(agent string) bool {
	if !strings.Contains(agent, "microsoft") {
		return strings.Contains(agent, "safe links")
	}
	return strings.Contains(agent, "microsoft office") ||
		strings.Contains(agent, "microsoft outlook") ||
		strings.Contains(agent, "microsoft-webdav-miniredir")
}

// asker is who makes a request, as far as it can be guessed.
type asker int

const (
	person      asker = iota // or a program that a person runs
	nameless                 // no User-Agent: a scanner such as Safe Links, or a program in Node, .NET or PHP
	named                    // a robot that gives its name
	prefetching              // a browser that fetches what its user has not opened
)

// isRobot reports whether the request itself says that no person has asked for it.
func (a asker) isRobot() bool { return a == named || a == prefetching }

// askerOf guesses who makes a request. Some scanners claim to be a browser and cannot be recognized.
// They get the page that browsers get, and only the button on that page leads to the file.
func askerOf(r *http.Request) asker {
	agent := strings.ToLower(strings.TrimSpace(r.Header.Get("User-Agent")))
	switch {
	case prefetch(r.Header):
		return prefetching
	case agent == "":
		return nameless
	case isRobotAgent(agent):
		return named
	}
	return person
}

// prefetch reads Sec-Purpose (https://fetch.spec.whatwg.org/#sec-purpose-header) and the
// headers that browsers used before it.
func prefetch(h http.Header) bool {
	return slices.ContainsFunc([]string{
		"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz",
	}, func(name string) bool {
		value := strings.ToLower(h.Get(name))
		return strings.HasPrefix(value, "prefetch") || strings.HasPrefix(value, "preview") ||
			strings.HasPrefix(value, "instant")
	})
}

// isRobotAgent reports whether a User-Agent in lower case is a robot's.
func isRobotAgent(agent string) bool {
	if isLinkCheck(agent) || strings.HasPrefix(agent, "whatsapp/") { // elsewhere in the text it is WhatsApp's browser
		return true
	}
	known := strings.Fields(knownRobots)
	for word := range strings.FieldsFuncSeq(agent, func(c rune) bool { return (c < 'a' || c > 'z') && c != '-' }) {
		if slices.Contains(known, word) || looksLikeRobot(word) {
			return true
		}
	}
	return false
}

// looksLikeRobot reports whether a word has the form of a robot's name: slackbot,
// slackbot-linkexpanding, crawler, baiduspider. CUBOT makes phones.
func looksLikeRobot(word string) bool {
	for part := range strings.SplitSeq(word, "-") {
		isEnd := func(end string) bool { return strings.HasSuffix(part, end) }
		if part != "cubot" &&
			slices.ContainsFunc([]string{"bot", "crawler", "spider", "preview", "scanner"}, isEnd) {
			return true
		}
	}
	return false
}
