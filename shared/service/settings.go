package service

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/wire"
)

// Settings are an operator's choices. The zero value works, except for PublicURL.
type Settings struct {
	// PublicURL is the service's address, with wire.Prefix and without a trailing slash.
	// If it is empty, the gateway gives the address with each request.
	PublicURL string
	// PhoneRegion is the region of numbers without a country code, such as IT. If it
	// is empty, numbers must have a country code.
	PhoneRegion string
	// Channels are those by which messages are sent; if it is empty, all are.
	Channels []files.Channel
	// SMSCountries are the countries that get text messages, such as IT; if it is empty, all do.
	SMSCountries []string
	// ASCIIMail refuses addresses that are not ASCII before the @, because SES does not take them.
	ASCIIMail bool
	HideUsers bool
	// MaxBody is the most bytes in a request's body; 0 is no limit.
	MaxBody int64
	// MaxUploads is the most concurrent uploads and parts in a process; 0 is no limit.
	MaxUploads int
	// RedirectOver is the file size in bytes above which a download is redirected to
	// the store; 0 is never.
	RedirectOver int64
	// LinkBytes is how many bytes a link gives out in an hour; 0 is no limit.
	LinkBytes int64
	// Retention is for how many days files stay in the user area, and then in the
	// backup area; 0 is for ever.
	Retention files.Retention
	// BackupClass is the S3 storage class of files over 256 KiB in the backup area:
	// STANDARD or GLACIER_IR; empty is STANDARD.
	BackupClass string
	// Movers is how many files a sweep moves at the same time.
	Movers int
	// Notices limits the notices that a user causes in an hour and in a day, and
	// those to one recipient in a day; 0 is no limit.
	Notices notify.Limits
	// Events turns on the recording of public events.
	Events bool
	// PlainLogin lets browsers log in without https, where others could read the login.
	PlainLogin bool
	Look       Look
}

// Sends reports whether messages are sent by a channel.
func (s Settings) Sends(c files.Channel) bool {
	return len(s.Channels) == 0 || slices.Contains(s.Channels, c)
}

// The defaults of retention.
const (
	DefaultKeepDays   = 30
	DefaultBackupDays = 90
)

// maxMovers is well below the 1,024 files and connections that a function may have open.
const maxMovers = 200

// ReadSettings reads the settings from the environment with a function like os.Getenv.
// Its error names everything that is wrong.
//
//	FERRY_PUBLIC_URL      address of the service in links, such as https://files.example.com/v1
//	FERRY_PHONE_REGION    region of mobile numbers without a country code, such as IT
//	FERRY_SMS_COUNTRIES   countries that get text messages, such as IT,FR; empty is all
//	FERRY_SMS_SENDING     off: nothing sends text messages, so numbers are refused; default on
//	FERRY_HIDE_USERS      on: GET /auth/forget answers unknown users like known ones
//	FERRY_KEEP_DAYS       days in the user area; 0 is for ever; default 30
//	FERRY_BACKUP_DAYS     days in the backup area after that; 0 is for ever; default 90
//	FERRY_BACKUP_STORAGE_CLASS  STANDARD or GLACIER_IR, of files over 256 KiB in the backup area; default STANDARD
//	FERRY_MOVERS          files that a sweep moves at the same time, 1 to 200; default 50
//	FERRY_MAX_BODY        most bytes in a request, with a unit or without, such as 5GB; 0 is no limit
//	FERRY_EVENTS          on: public events are recorded, for the stack's topic
//	FERRY_NOTICES_PER_HOUR      most notices that a user causes in an hour; 0 is no limit; default 100
//	FERRY_NOTICES_PER_DAY       most notices that a user causes in a day; 0 is no limit; default 500
//	FERRY_NOTICES_PER_RECIPIENT most notices to an address or number in a day; 0 is no limit; default 50
//	FERRY_LINK_BYTES_PER_HOUR   most bytes that a link gives out in an hour; 0 is no limit; default 1TiB
//	FERRY_PLAIN_LOGIN     on: browsers may log in without https, where others could read the login
//	FERRY_NAME            the service's name on its pages and in its mails; default Ferry
//	FERRY_ACCENT          their colour, such as #0b5cad
//	FERRY_LOGO            their logo: a file, or its content as data:image/...;base64,...
//	FERRY_IMPRINT         address of the imprint, shown on each page
//	FERRY_PRIVACY         address of the privacy notice, shown on each page
//	FERRY_INTRO           an introduction on the sending page, one paragraph of text
//	FERRY_HOME            send or login: the page at the root; default send
//	FERRY_REDIRECT_OVER   bytes above which a download is a redirect to the store; 0 is never
func ReadSettings(getenv func(string) string) (Settings, error) {
	e := env{getenv: getenv}
	s := Settings{
		PublicURL:    e.address("FERRY_PUBLIC_URL"),
		PhoneRegion:  e.region("FERRY_PHONE_REGION", e.getenv("FERRY_PHONE_REGION")),
		SMSCountries: e.regions("FERRY_SMS_COUNTRIES"),
		HideUsers:    e.flag("FERRY_HIDE_USERS"),
		Events:       e.flag("FERRY_EVENTS"),
		MaxBody:      e.size("FERRY_MAX_BODY", "0"),
		RedirectOver: e.size("FERRY_REDIRECT_OVER", "0"),
		LinkBytes:    e.size("FERRY_LINK_BYTES_PER_HOUR", "1TiB"),
		BackupClass:  e.getenv("FERRY_BACKUP_STORAGE_CLASS"),
		PlainLogin:   e.flag("FERRY_PLAIN_LOGIN"),
		Look:         e.look(),
	}
	if c := s.BackupClass; c != "" && c != "STANDARD" && c != "GLACIER_IR" {
		e.fail("FERRY_BACKUP_STORAGE_CLASS", "must be STANDARD or GLACIER_IR")
	}
	if e.getenv("FERRY_SMS_SENDING") != "" && !e.flag("FERRY_SMS_SENDING") {
		s.Channels = []files.Channel{files.Mail}
	}
	s.Retention.KeepDays = e.number("FERRY_KEEP_DAYS", DefaultKeepDays)
	s.Retention.BackupDays = e.number("FERRY_BACKUP_DAYS", DefaultBackupDays)
	s.Movers = int(e.number("FERRY_MOVERS", 50))
	if s.Movers < 1 || s.Movers > maxMovers {
		e.fail("FERRY_MOVERS", fmt.Sprintf("must be a number from 1 to %d", maxMovers))
	}
	s.Notices.PerHour = e.number("FERRY_NOTICES_PER_HOUR", 100)
	s.Notices.PerDay = e.number("FERRY_NOTICES_PER_DAY", 500)
	s.Notices.PerRecipient = e.number("FERRY_NOTICES_PER_RECIPIENT", 50)
	return s, errors.Join(e.errs...)
}

type env struct {
	getenv func(string) string
	errs   []error
}

func (e *env) fail(name, what string) {
	text := e.getenv(name)
	if len(text) > 200 { // a logo
		text = text[:200] + "..."
	}
	e.errs = append(e.errs, fmt.Errorf("%s=%q: %s", name, text, what))
}

func (e *env) address(name string) string {
	text := strings.TrimRight(e.getenv(name), "/")
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil ||
		u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "" ||
		u.RawQuery != "" ||
		u.Fragment != "":
		e.fail(name, "must be an address such as https://files.example.com/v1")
	case !strings.HasSuffix(u.Path, wire.Prefix):
		e.fail(name, "must end in "+wire.Prefix)
	}
	return text
}

func (e *env) regions(name string) (all []string) {
	for text := range strings.FieldsFuncSeq(e.getenv(name), func(r rune) bool { return r == ',' || r == ' ' }) {
		all = append(all, e.region(name, text))
	}
	return all
}

func (e *env) region(name, text string) string {
	text = strings.ToUpper(text)
	if text != "" &&
		(len(text) != 2 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		e.fail(name, "must be a two-letter region such as IT")
	}
	return text
}

func (e *env) flag(name string) bool {
	switch strings.ToLower(e.getenv(name)) {
	case "on", "true", "1", "yes":
		return true
	case "", "off", "false", "0", "no":
		return false
	}
	e.fail(name, "must be on or off")
	return false
}

func (e *env) number(name string, fallback int64) int64 {
	n, err := strconv.ParseInt(cmp.Or(e.getenv(name), strconv.FormatInt(fallback, 10)), 10, 64)
	if err != nil || n < 0 {
		e.fail(name, "must be a whole number, 0 or more")
		return 0
	}
	return n
}

func (e *env) size(name, fallback string) int64 {
	n, err := ParseSize(cmp.Or(e.getenv(name), fallback))
	if err != nil {
		e.fail(name, err.Error())
	}
	return n
}

// ParseSize reads a number of bytes. It may have a unit: kB, MB, GB, TB and PB are powers of
// 1000, KiB and so on of 1024; the B and the letters' case do not matter.
func ParseSize(text string) (int64, error) {
	form := regexp.MustCompile(`^(\d+) *(?:([kmgtp])(i?))?b?$`)
	parts := form.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if parts == nil {
		return 0, errors.New("not a size such as 500MB, 5GB or 5GiB")
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	unit := int64(1000 + 24*len(parts[3]))
	for range strings.Index(" kmgtp", parts[2]) {
		if n > math.MaxInt64/unit {
			err = strconv.ErrRange
		}
		n *= unit
	}
	if err != nil {
		return 0, errors.New("too large")
	}
	return n, nil
}
