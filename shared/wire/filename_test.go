package wire_test

import (
	"mime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

func TestNameIsCleanedToOnePathElement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, name, want string }{
		{what: "an ordinary name stays", name: "report.pdf", want: "report.pdf"},
		{what: "spaces within stay", name: "my report.pdf", want: "my report.pdf"},
		{what: "spaces around a name go", name: "  report.pdf \t", want: "report.pdf"},
		{what: "any script is welcome", name: "写真 фото صورة.jpg", want: "写真 фото صورة.jpg"},
		{what: "emoji stay, even joined ones", name: "👩\u200d💻 🎉.txt", want: "👩\u200d💻 🎉.txt"},
		{what: "quotes stay", name: `the "best" one's.txt`, want: `the "best" one's.txt`},
		{what: "folders go", name: "a/b/report.pdf", want: "report.pdf"},
		{what: "Windows folders go", name: `C:\Users\me\report.pdf`, want: "report.pdf"},
		{what: "parent folders go", name: "../../etc/passwd", want: "passwd"},
		{what: "a parent folder leaves nothing", name: ".."},
		{what: "a folder leaves nothing", name: "photos/"},
		{what: "dots leave nothing", name: "a/..."},
		{what: "dots between spaces leave nothing", name: " .. "},
		{what: "an empty name is nothing"},
		{what: "a hidden name stays", name: ".bashrc", want: ".bashrc"},
		{what: "control characters go", name: "a\x00b\r\nc\x7f.txt\u0085", want: "abc.txt"},
		{what: "characters that reorder text go", name: "photo_\u202egpj.exe\u061c\u200f", want: "photo_gpj.exe"},
		{what: "line ends go", name: "a\u2028b\u2029.txt", want: "ab.txt"},
		{what: "a byte order mark goes", name: "\ufeffa.txt", want: "a.txt"},
		{what: "letters are composed", name: "e\u0301te\u0301.txt", want: "été.txt"},
		{what: "letters are composed over dropped characters", name: "e\u200e\u0301.txt", want: "é.txt"},
		{what: "what is no UTF-8 is Windows-1252", name: "caf\xe9 \x80\x96\xff.txt", want: "café €–ÿ.txt"},
		{what: "UTF-8 that is cut is Windows-1252 too", name: "\xc3\xa9\xc3.txt", want: "Ã©Ã.txt"},
		{what: "a byte that Windows-1252 lacks goes", name: "a\x81\xe9.txt", want: "aé.txt"},
		{what: "a replacement character that was written stays", name: "a\ufffd.txt", want: "a\ufffd.txt"},
	} {
		expect.Equal(t, c.what, wire.CleanFileName(c.name), c.want)
	}
}

func TestLongNameKeepsItsExtension(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ name, suffix string }{
		"ASCII":                    {strings.Repeat("a", 300) + ".pdf", "a.pdf"},
		"three-byte runes":         {strings.Repeat("写", 100) + ".jpg", "写.jpg"},
		"emoji":                    {strings.Repeat("🎉", 80) + ".txt", "🎉.txt"},
		"no extension":             {strings.Repeat("b", 300), "bb"},
		"a long extension":         {"a." + strings.Repeat("c", 300), "cc"},
		"a space at the cut":       {strings.Repeat("d", 254) + " e" + strings.Repeat("f", 50), "dd"},
		"only dots before the cut": {strings.Repeat(".", 300) + strings.Repeat("g", 40), ""},
	} {
		got := wire.CleanFileName(c.name)
		if len(got) > wire.MaxFileName || !strings.HasSuffix(got, c.suffix) || c.suffix == "" && got != "" {
			t.Errorf("%s: %d bytes, %q", what, len(got), got)
		}
	}
}

func TestAttachmentNameWorksInEveryClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"report.pdf", `attachment; filename="report.pdf"; filename*=UTF-8''report.pdf`},
		{"my report.pdf", `attachment; filename="my report.pdf"; filename*=UTF-8''my%20report.pdf`},
		{`a"b\c.txt`, `attachment; filename="a_b_c.txt"; filename*=UTF-8''a%22b%5Cc.txt`},
		{"Grüße aus Łódź.txt", `attachment; filename="Gru_e aus _odz.txt"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20aus%20%C5%81%C3%B3d%C5%BA.txt`},
		{"写真.jpg", `attachment; filename="__.jpg"; filename*=UTF-8''%E5%86%99%E7%9C%9F.jpg`},
		{"写真", `attachment; filename="file"; filename*=UTF-8''%E5%86%99%E7%9C%9F`},
		{"🎉.写", `attachment; filename="file._"; filename*=UTF-8''%F0%9F%8E%89.%E5%86%99`},
		{"100%.txt", `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`},
		{"a；b／c.txt", `attachment; filename="a_b_c.txt"; filename*=UTF-8''a%EF%BC%9Bb%EF%BC%8Fc.txt`},
		{"a+b~c-d_e.txt", `attachment; filename="a+b~c-d_e.txt"; filename*=UTF-8''a%2Bb~c-d_e.txt`},
	} {
		expect.Equal(t, c.name, wire.Attachment(c.name), c.want)
	}
}

func FuzzCleanFileNameIsSafe(f *testing.F) {
	for _, seed := range []string{
		"report.pdf", "../x", "a\\b", "e\u0301", "e\u200e\u0301", "\xff", strings.Repeat(
			"é.",
			200,
		), strings.Repeat(" .", 150) + "a",
		"\u0958" + strings.Repeat("\ufdfa", 85), "\u202e", "a\u2028", ". .", "\u1100\u1161\u11a8",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := wire.CleanFileName(name)
		expect.Equal(t, "cleaned again", wire.CleanFileName(clean), clean)
		if len(clean) > wire.MaxFileName || !utf8.ValidString(clean) || !norm.NFC.IsNormalString(clean) {
			t.Errorf("%q is too long, not UTF-8, or not NFC", clean)
		}
		if strings.ContainsAny(clean, `/\`) || clean == "." || clean == ".." || strings.TrimSpace(clean) != clean {
			t.Errorf("%q is not a plain name", clean)
		}
		if strings.ContainsFunc(clean, unicode.IsControl) {
			t.Errorf("%q has control characters", clean)
		}
		wantAttachment(t, clean)
	})
}

// wantAttachment checks that clients can read the header for a name.
func wantAttachment(t *testing.T, name string) {
	if name == "" {
		return
	}
	header := wire.Attachment(name)
	kind, params, err := mime.ParseMediaType(header)
	if err != nil || kind != "attachment" || params["filename"] != name {
		t.Errorf("%q reads back as %q %q, %v", header, kind, params["filename"], err)
	}
	_, quoted, _ := strings.Cut(header, `filename="`)
	ascii, _, _ := strings.Cut(quoted, `"`)
	if len(ascii) == 0 ||
		len(ascii) > wire.MaxFileName ||
		strings.Trim(ascii, ". ") == "" ||
		strings.ContainsAny(ascii, `\/%`) {
		t.Errorf("%q is not a name for old clients", ascii)
	}
	for i := range len(header) {
		if header[i] < 0x20 || header[i] > 0x7e {
			t.Fatalf("%q has a byte that a header must not have", header)
		}
	}
}
