package service_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
)

// settings returns a function like os.Getenv for lines such as FERRY_EVENTS=on.
func settings(lines string) func(string) string {
	return func(name string) string {
		for line := range strings.Lines(lines) {
			value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"=")
			if ok {
				return value
			}
		}
		return ""
	}
}

func TestSettingsHaveDefaults(t *testing.T) {
	t.Parallel()
	got, err := service.ReadSettings(settings(""))
	want := service.Settings{
		LinkBytes: 1 << 40, Movers: 50,
		Retention: files.Retention{KeepDays: 30, BackupDays: 90},
		Notices:   notify.Limits{PerHour: 100, PerDay: 500, PerRecipient: 50},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	got, err := service.ReadSettings(settings(`
		FERRY_PUBLIC_URL=https://files.example.com/ferry/v1/
		FERRY_PHONE_REGION=it
		FERRY_SMS_COUNTRIES=it, FR,US
		FERRY_SMS_SENDING=Off
		FERRY_HIDE_USERS=On
		FERRY_NOTICES_PER_HOUR=10
		FERRY_NOTICES_PER_DAY=0
		FERRY_NOTICES_PER_RECIPIENT=3
		FERRY_KEEP_DAYS=7
		FERRY_BACKUP_DAYS=0
		FERRY_BACKUP_STORAGE_CLASS=GLACIER_IR
		FERRY_MOVERS=200
		FERRY_MAX_BODY=4600 kB
		FERRY_REDIRECT_OVER=4MiB
		FERRY_LINK_BYTES_PER_HOUR=0
		FERRY_EVENTS=on
		FERRY_PLAIN_LOGIN=on
		FERRY_NAME=Acme Files
		FERRY_ACCENT=#0B5cad
		FERRY_LOGO=data:image/png;base64,iVBORw==
		FERRY_IMPRINT=https://example.com/imprint?lang=en#top
		FERRY_PRIVACY=http://example.com
		FERRY_INTRO=For <our> customers.
		FERRY_HOME=login`))
	want := service.Settings{
		PublicURL: "https://files.example.com/ferry/v1", PhoneRegion: "IT", SMSCountries: []string{
			"IT", "FR", "US",
		}, Channels: []files.Channel{files.Mail}, HideUsers: true, Events: true,
		MaxBody: 4600000, RedirectOver: 4194304, Retention: files.Retention{
			KeepDays:   7,
			BackupDays: 0,
		}, BackupClass: "GLACIER_IR",
		Movers: 200, Notices: notify.Limits{PerHour: 10, PerDay: 0, PerRecipient: 3}, PlainLogin: true,
		Look: service.Look{
			Name: "Acme Files", Accent: "#0B5cad", Logo: []byte("\x89PNG"), LogoType: "image/png", Imprint: "https://example.com/imprint?lang=en#top",
			Privacy: "http://example.com", Intro: "For <our> customers.", Home: "login",
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestEveryWrongSettingIsReported(t *testing.T) {
	t.Parallel()
	all := `FERRY_PUBLIC_URL=files.example.com
FERRY_PHONE_REGION=Italy
FERRY_SMS_COUNTRIES=IT,USA
FERRY_SMS_SENDING=seldom
FERRY_HIDE_USERS=maybe
FERRY_NOTICES_PER_HOUR=-1
FERRY_NOTICES_PER_DAY=many
FERRY_NOTICES_PER_RECIPIENT=1.5
FERRY_KEEP_DAYS=a week
FERRY_BACKUP_DAYS=-1
FERRY_MAX_BODY=4 liters
FERRY_REDIRECT_OVER=9999999999999999999
FERRY_EVENTS=some
FERRY_LINK_BYTES_PER_HOUR=a lot
FERRY_BACKUP_STORAGE_CLASS=GLACIER
FERRY_MOVERS=201`
	for lines := range strings.SplitSeq(all+`
FERRY_MOVERS=0
FERRY_ACCENT=blue
FERRY_IMPRINT=imprint.html
FERRY_PRIVACY=ftp://example.com
FERRY_HOME=files
FERRY_PUBLIC_URL=ftp://files.example.com/v1
FERRY_PUBLIC_URL=https:///v1
FERRY_PUBLIC_URL=https://files.example.com
FERRY_PUBLIC_URL=https://files.example.com/v1?x=1
FERRY_PUBLIC_URL=https://files.example.com/v1#x
FERRY_PUBLIC_URL=://`, "\n") {
		_, err := service.ReadSettings(settings(lines))
		name, value, _ := strings.Cut(lines, "=")
		if err == nil || !strings.Contains(err.Error(), name+`="`+value+`": `) {
			t.Errorf("%s gives %v", lines, err)
		}
	}
	_, err := service.ReadSettings(settings(all))
	for line := range strings.SplitSeq(all, "\n") {
		name, _, _ := strings.Cut(line, "=")
		if err == nil || !strings.Contains(err.Error(), name+"=") {
			t.Errorf("%s is not in the error %v", name, err)
		}
	}
}

func TestTheLogoIsAnImageOfAModestSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/"
	for name, size := range map[string]int{
		"logo.svg": 10, "logo.png": 256 << 10, "logo.webp": 256<<10 + 1, "logo.html": 10, "logo": 10, "logo.gif": 0,
	} {
		expect.NoErr(t, os.WriteFile(dir+name, make([]byte, size), 0o600))
	}
	for logo, kind := range map[string]string{
		dir + "logo.svg": "image/svg+xml", dir + "logo.png": "image/png",
		"data:image/svg+xml;base64,PHN2Zy8+": "image/svg+xml",
	} {
		set, err := service.ReadSettings(settings("FERRY_LOGO=" + logo))
		if err != nil || set.Look.LogoType != kind || len(set.Look.Logo) == 0 {
			t.Errorf("%s: %q with %d bytes, %v", logo, set.Look.LogoType, len(set.Look.Logo), err)
		}
	}
	for _, logo := range []string{
		dir, dir + "none.svg", dir + "logo.webp", dir + "logo.html", dir + "logo", dir + "logo.gif",
		"data:text/html;base64,PHN2Zy8+", "data:image/png;base64,%", "data:image/png,PHN2Zy8+", "data:",
		"data:image/png;base64," + strings.Repeat("AAAA", 100_000),
	} {
		_, err := service.ReadSettings(settings("FERRY_LOGO=" + logo))
		if err == nil || !strings.Contains(err.Error(), "FERRY_LOGO=") || len(err.Error()) > 500 {
			t.Errorf("%.80s: the error is %.600v", logo, err)
		}
	}
}

func TestSizesHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "17B": 17, "5 KB": 5000, "5KiB": 5120, "3M": 3e6, " 5gb ": 5e9, "2TB": 2e12, "1Pi": 1 << 50,
		"9223372036854775807": 1<<63 - 1,
	} {
		if got, err := service.ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", "-1", "1.5GB", "5iB", "5 XB", "5GBB", "9223372036854775808", "9224PB", "8192PiB", "１",
	} {
		if got, err := service.ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
