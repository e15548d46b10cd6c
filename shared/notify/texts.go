package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ferry/shared/notify/texts"
	"ferry/shared/wire"
)

// Texts are what Ferry says to people in one language: in mails and text messages.
// Each %s stands for a name.
type Texts struct {
	texts.Language `json:"-"`

	// About a link. Subjects and text messages begin with LinkIntro or Shared, so
	// these have only characters of the GSM alphabet: others cost double.
	LinkIntro, Shared           string // sender; sender and file
	BundleIntro                 string // sender, "30 files"
	Contents, More              string // More: "20 files"
	From, File, Size, Until     string
	LinkHere, Download, NoLogin string
	NeedsPassword               string // sender
	Allowed                     string
	SenderWrites, LinkFooter    string // sender
	Stop                        string

	ReceiptSubject, ReceiptIntro, ReceiptFooter string
	When, LinkWord, OwnLink, SentTo             string // SentTo: recipient

	ArrivedSubject, ArrivedIntro, ArrivedFooter string
	RequestWord, ArrivedWord, NoName            string
	ArrivedHere, ArrivedShow                    string

	MissingSubject, MissingIntro, MissingFooter string
	MissingHere, MissingShow                    string
	Why                                         map[string]string // why a message did not arrive

	PINSubject, PINFooter string
	PINIntro, PINValid    string // user; number of minutes
	PINHere, Choose       string

	InviteSubject, InviteIntro string // InviteIntro: user
	InviteHere, InviteValid    string // InviteValid: time
	InviteFooter               string

	Colon, Decimal string    // between a label and its value, in a number
	Minutes, Bytes [2]string // one, several
	Files          [2]string
	Unit           string // the letter behind k, M, G, T
	DateTime, Date string // layouts of package time
	Months         string
}

// TextsOf returns the texts of a language, or those of the default if there are none.
func TextsOf(tag string) (t Texts) {
	t.Language, _ = texts.Find(tag)
	if err := json.Unmarshal(texts.Mails(t.Lang), &t); err != nil {
		panic("texts of " + t.Lang + ": " + err.Error()) // a test reads each file
	}
	return t
}

// WriteTime writes a time, given in Unix seconds, in the layout DateTime or Date.
func (t Texts) WriteTime(unix int64, layout string) string {
	at := time.Unix(unix, 0).UTC()
	month := strings.Fields(t.Months)[at.Month()-1]
	text := strings.Replace(at.Format(layout), at.Month().String(), month, 1)
	if rest, isFirst := strings.CutPrefix(text, "1 "); isFirst {
		text = t.FirstOfMonth + " " + rest
	}
	return text
}

// WriteSize writes a number of bytes, in powers of 1000 and with one decimal. A brief text
// has at most three digits, and the unit as a letter.
func (t Texts) WriteSize(n int64, brief bool) string {
	next := 999.95 // from here on it would be shown as 1000.0
	if brief {
		next = 999.5
	} else if n < 1000 {
		return t.Count(n, t.Bytes)
	}
	value, prefix := wire.Scale(n, next)
	decimals := 1
	if brief && value >= 100 {
		decimals = 0
	}
	number := strconv.FormatFloat(value, 'f', decimals, 64)
	if brief {
		number = strings.TrimSuffix(number, ".0")
	}
	return strings.Replace(number, ".", t.Decimal, 1) + "\u00a0" + prefix + t.Unit
}

// Count writes a number with the name of what is counted.
func (t Texts) Count(n int64, things [2]string) string {
	thing := things[1]
	if slices.Contains(t.Singular, n) {
		thing = things[0]
	}
	return fmt.Sprintf("%d\u00a0%s", n, thing)
}
