package notify

import (
	"cmp"
	"fmt"
	"html"
	"strings"
)

// html is the letter in HTML. Styles are set on each element, as many mail
// programs know no others, and nothing is fetched. On phones that know more, facts
// stand below their labels, so that no address is split. It uses no template
// package: that would make each program a third larger.
func (l letter) html() string {
	var m markup
	m.add(htmlHead, l.lang, l.Subject, l.Intro)
	if len(l.Facts) > 0 {
		m.add(`<table role="presentation" cellpadding="0" cellspacing="0" style="margin: 0 0 24px; border-collapse: collapse;">` + "\n")
		for _, f := range l.Facts {
			m.add(htmlFact, f.Label+l.colon, f.Value)
		}
		m.add("</table>\n")
	}
	if l.Link != "" {
		m.add(htmlLink, l.Link, l.download, l.Link, l.Link, l.noLogin)
	}
	if l.PIN != "" {
		m.add(htmlPIN, l.PIN, l.Valid)
	}
	if len(l.Quote) > 0 {
		m.add(htmlWrites, l.Writes)
		for _, line := range l.Quote {
			m.add(`<div dir="auto">%s</div>`+"\n", cmp.Or(line, "\u00a0")) // which gives an empty line its height
		}
		m.add("</blockquote>\n")
	}
	m.add(`<p style="margin: 0; padding-top: 16px; border-top: 1px solid #888888; font-size: 14px;">%s</p>`+"\n", l.Footer)
	if l.Unsubscribe != "" {
		m.add(`<p style="margin: 16px 0 0; font-size: 14px;"><a href="%s">%s</a></p>`+"\n", l.Unsubscribe, l.stop)
	}
	m.add("</div>\n</body>\n</html>\n")
	return m.String()
}

// markup is HTML under construction.
type markup struct{ strings.Builder }

// add writes a constant format; each value takes the place of a %s, as text.
func (m *markup) add(format string, values ...string) {
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = html.EscapeString(v)
	}
	fmt.Fprintf(m, format, escaped...)
}

const (
	htmlHead = `<!doctype html>
<html lang="%s" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>%s</title>
<style>
:root { color-scheme: light dark; supported-color-schemes: light dark; }
@media (max-width: 480px) { .label, .value { display: block; padding: 0 !important } .value { padding-bottom: 8px !important } }
</style>
</head>
<body style="margin: 0; padding: 24px; font-family: system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif; font-size: 16px; line-height: 1.5;">
<div style="max-width: 560px; margin: 0 auto; word-break: break-word; overflow-wrap: anywhere;">
<p style="margin: 0 0 16px; font-size: 18px;">%s</p>
`
	htmlFact = `<tr><td class="label" style="padding: 2px 16px 2px 0; vertical-align: top; word-break: normal; overflow-wrap: normal;">%s</td>` +
		`<td class="value" style="padding: 2px 0; vertical-align: top;"><strong style="font-weight: 600;">%s</strong></td></tr>
`
	htmlLink = `<table role="presentation" cellpadding="0" cellspacing="0" style="margin: 0 0 16px;"><tr><td style="border-radius: 6px; background: #1a5fb4; mso-padding-alt: 12px 24px;">` +
		`<a href="%s" style="display: inline-block; padding: 12px 24px; border-radius: 6px; background: #1a5fb4; color: #ffffff; text-decoration: none; font-weight: 600;">%s</a></td></tr></table>
<p style="margin: 0 0 8px; font-size: 14px;"><a href="%s">%s</a></p>
<p style="margin: 0 0 24px; font-size: 14px;">%s</p>
`
	htmlPIN = `<p style="margin: 0 0 16px; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 32px; font-weight: 700; letter-spacing: 4px; word-break: normal; overflow-wrap: normal;">%s</p>
<p style="margin: 0 0 24px;">%s</p>
`
	htmlWrites = `<p style="margin: 0 0 8px;">%s</p>
<blockquote style="margin: 0 0 24px; padding: 4px 0 4px 16px; border-left: 3px solid #888888;">
`
)
