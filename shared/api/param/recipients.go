package param

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ferry/shared/contact"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/notify/texts"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// maxMessage is the longest message to a recipient, in characters.
const maxMessage = 500

// Sending checks what an upload asks for. It returns a message for each recipient, the receipt, and
// what limits the links. base is the service's address in the links. Bad recipients are an Invalid
// fault, and so is an unknown language.
func Sending(
	s *service.Service, base string, r *http.Request, u users.User, d wire.Delivery,
) (to files.Sending, err error) {
	lang := LangOf(d.Lang, r, u)
	usual := files.Message{
		Text:    d.Message,
		Lang:    lang,
		Base:    base,
		Sender:  u.Name,
		ReplyTo: u.Email,
	}
	if to.Recipients, err = messages(s.Settings, d, usual); err != nil {
		return to, err
	}
	if _, ok := texts.Find(d.Lang); !ok && d.Lang != "" {
		return to, fault.Parameter("lang", "the parameter lang must be one of %s",
			strings.Join(texts.Tags(), ", "))
	}
	if d.Notify {
		if u.Email == "" {
			return to, fault.Parameter("notify",
				"the parameter notify sends you a mail, but you have no registered address")
		}
		to.Tell = files.Contact{To: u.Email, Lang: lang, Base: base}
	}
	if to.Expiry, err = Expiry(d.Expires, s.Now()); err != nil {
		return to, err
	}
	to.Options, err = Options(r.Context(), s, d.Limits)
	return to, err
}

// messages returns m for each number and address; an empty one is ignored. Addresses that differ
// only in case or in the form of their domain count as the same.
func messages(
	set service.Settings,
	d wire.Delivery,
	m files.Message,
) (all []files.Message, err error) {
	if err := CheckText("i", d.Message, maxMessage); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	to := map[files.Channel]wire.Texts{files.SMS: d.SMS, files.Mail: d.Mail}
	for _, channel := range files.Channels() {
		for _, text := range to[channel] {
			if text == "" {
				continue
			}
			m.Channel = channel
			if m.To, err = parsers()[channel](text, set); err != nil {
				return nil, err
			}
			one := contact.Canonical(m.To) // the form that the limits count by
			if !seen[one] {
				seen[one] = true
				all = append(all, m)
			}
		}
	}
	if len(all) > files.MaxRecipients {
		return nil, fault.Parameter("c, m",
			"the parameters c and m allow at most %d recipients together", files.MaxRecipients)
	}
	return all, nil
}

// parser reads a recipient. An error names the parameter that it comes in.
type parser func(text string, set service.Settings) (string, error)

func parsers() map[files.Channel]parser {
	return map[files.Channel]parser{files.SMS: parseMobile, files.Mail: parseAddress}
}

func parseMobile(text string, set service.Settings) (string, error) {
	if strings.HasPrefix(text, " ") { // an unescaped + in the URL
		text = "+" + strings.TrimLeft(text, " +")
	}
	number, err := contact.ParseMobile(text, set.PhoneRegion)
	if err != nil {
		return "", fault.Parameter("c", "the parameter c is %v", err)
	}
	return number, checkCountry(number, set)
}

func parseAddress(text string, set service.Settings) (string, error) {
	plain, err := contact.ParseAddress(text)
	if err == nil && set.ASCIIMail {
		err = contact.CheckLocal(plain)
	}
	if err != nil {
		return "", fault.Parameter("m", "the parameter m is %v", err)
	}
	return plain, nil
}

// CheckCountries returns an error if a country in the settings does not exist: such a list would
// refuse the very numbers that it is meant to allow.
func CheckCountries(set service.Settings) error {
	for _, country := range append([]string{set.PhoneRegion}, set.SMSCountries...) {
		if country != "" && !contact.KnownRegion(country) {
			return fmt.Errorf(
				"FERRY_PHONE_REGION or FERRY_SMS_COUNTRIES: there is no country %s (Britain is GB)", country,
			)
		}
	}
	return nil
}

// checkCountry refuses a number to which this service sends no text messages.
func checkCountry(number string, set service.Settings) error {
	country, all := contact.CountryOf(number), strings.Join(set.SMSCountries, ", ")
	switch {
	case !set.Sends(files.SMS):
		return fault.Parameter(
			"c", "the parameter c is not supported: this service sends no text messages",
		)
	case all != "" && !slices.Contains(set.SMSCountries, country):
		return fault.Parameter("c",
			"the parameter c is a number in %s, but text messages go only to %s", country, all)
	}
	return nil
}

// CheckText returns a fault unless a parameter is UTF-8 text of no more than most characters,
// without control characters other than line ends and tabs.
func CheckText(parameter, s string, most int) error {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > most {
		return fault.Parameter(
			parameter, "the parameter %s must be text of at most %d characters", parameter, most,
		)
	}
	if strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r)
	}) {
		return fault.Parameter(parameter, "the parameter %s has control characters", parameter)
	}
	return nil
}
