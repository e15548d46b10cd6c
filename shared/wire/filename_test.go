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
		{"an ordinary name stays", "report.pdf", "report.pdf"},
		{"spaces within stay", "my report.pdf", "my report.pdf"},
		{"spaces around a name go", "  report.pdf \t", "report.pdf"},
		{"any script is welcome", "写真 фото صورة.jpg", "写真 фото صورة.jpg"},
		{"emoji stay, even joined ones", "👩\u200d💻 🎉.txt", "👩\u200d💻 🎉.txt"},
		{"quotes stay", `the "best" one's.txt`, `the "best" one's.txt`},
		{"folders go", "a/b/report.pdf", "report.pdf"},
		{"Windows folders go", `C:\Users\me\report.pdf`, "report.pdf"},
		{"parent folders go", "../../etc/passwd", "passwd"},
		{"a parent folder leaves nothing", "..", ""},
		{"a folder leaves nothing", "photos/", ""},
		{"dots leave nothing", "a/...", ""},
		{"dots between spaces leave nothing", " .. ", ""},
		{"an empty name is nothing", "", ""},
		{"a hidden name stays", ".bashrc", ".bashrc"},
		{"control characters go", "a\x00b\r\nc\x7f.txt\u0085", "abc.txt"},
		{"characters that reorder text go", "photo_\u202egpj.exe\u061c\u200f", "photo_gpj.exe"},
		{"line ends go", "a\u2028b\u2029.txt", "ab.txt"},
		{"a byte order mark goes", "\ufeffa.txt", "a.txt"},
		{"letters are composed", "e\u0301te\u0301.txt", "été.txt"},
		{"letters are composed over dropped characters", "e\u200e\u0301.txt", "é.txt"},
		{"what is no UTF-8 is Windows-1252", "caf\xe9 \x80\x96\xff.txt", "café €–ÿ.txt"},
		{"UTF-8 that is cut is Windows-1252 too", "\xc3\xa9\xc3.txt", "Ã©Ã.txt"},
		{"a byte that Windows-1252 lacks goes", "a\x81\xe9.txt", "aé.txt"},
		{"a replacement character that was written stays", "a\ufffd.txt", "a\ufffd.txt"},
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
		"report.pdf", "../x", "a\\b", "e\u0301", "e\u200e\u0301", "\xff", strings.Repeat("é.", 200), strings.Repeat(" .", 150) + "a",
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
	if len(ascii) == 0 || len(ascii) > wire.MaxFileName || strings.Trim(ascii, ". ") == "" || strings.ContainsAny(ascii, `\/%`) {
		t.Errorf("%q is not a name for old clients", ascii)
	}
	for i := range len(header) {
		if header[i] < 0x20 || header[i] > 0x7e {
			t.Fatalf("%q has a byte that a header must not have", header)
		}
	}
}
