package notify

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// texts has a file for each language.
//
//go:embed phrases/*.json
var texts embed.FS

// phrases are what Ferry says in one language. Each %s stands for a name.
type phrases struct {
	Lang string

	// About a link. Subjects and text messages begin with LinkIntro or Shared, so
	// these have only characters of the GSM alphabet: others cost double.
	LinkIntro, Shared           string // sender; sender and file
	From, File, Size, Until     string
	LinkHere, Download, NoLogin string
	SenderWrites, LinkFooter    string // sender
	Stop                        string

	ReceiptSubject, ReceiptIntro, ReceiptFooter string
	When, LinkWord, OwnLink, SentTo             string // SentTo: recipient

	PINSubject, PINFooter string
	PINIntro, PINValid    string // user; number of minutes

	Colon, Decimal string    // between a label and its value, in a number
	Minutes, Bytes [2]string // one, several
	Unit           string    // the letter behind k, M, G, T
	Date, Months   string    // day, month, year, time
}

// say returns the phrases of a language, or those of English.
func say(lang string) (p phrases) {
	primary, _, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(lang, "_", "-")), "-")
	text, err := texts.ReadFile("phrases/" + primary + ".json")
	if err != nil {
		return say("en")
	}
	if err := json.Unmarshal(text, &p); err != nil {
		panic("phrases of " + primary + ": " + err.Error()) // a test reads each file
	}
	return p
}

// day writes a time, given in Unix seconds.
func (p phrases) day(unix int64) string {
	t := time.Unix(unix, 0).UTC()
	day := strconv.Itoa(t.Day())
	if t.Day() == 1 && p.Lang == "fr" {
		day = "1er"
	}
	return fmt.Sprintf(p.Date, day, strings.Fields(p.Months)[t.Month()-1], t.Year(), t.Format("15:04 MST"))
}

// sent is LinkIntro without its full stop.
func (p phrases) sent() string { return strings.TrimSuffix(p.LinkIntro, ".") }

// length writes a number of bytes, in powers of 1000.
func (p phrases) length(n int64) string {
	if n < 1000 {
		return p.count(n, p.Bytes)
	}
	value, prefixes := float64(n)/1000, "kMGTPE"
	for value >= 999.95 && len(prefixes) > 1 { // what would be shown as 1000.0
		value, prefixes = value/1000, prefixes[1:]
	}
	number := strings.Replace(fmt.Sprintf("%.1f", value), ".", p.Decimal, 1)
	return number + "\u00a0" + prefixes[:1] + p.Unit
}

// count writes a number with the name of what is counted.
func (p phrases) count(n int64, things [2]string) string {
	thing := things[1]
	if n == 1 || n == 0 && p.Lang == "fr" {
		thing = things[0]
	}
	return fmt.Sprintf("%d\u00a0%s", n, thing)
}
