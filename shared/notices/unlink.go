package notices

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unlinked puts a space where a mail program or a phone would begin to take a
// user's text for an address, and make a link of it: "evil .example .com",
// "https ://host". A space ends an address for every one of them; characters
// that nobody sees would not, and are what spam filters look for. What a
// sender writes stays readable, and nobody goes there by one touch.
func unlinked(s string) string {
	var b strings.Builder
	for i, r := range s {
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && !unicode.IsSpace(before) && linksOn(s[:i], before, s[i:]) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// linksOn reports whether an address goes on from one text to the next.
func linksOn(text string, before rune, rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	switch r {
	case ':':
		return strings.HasPrefix(rest, "://")
	case '\\':
		return before == '\\' // a share on a Windows server
	case '@', '\uff20', '\ufe6b':
		return strings.IndexFunc(rest[size:], isWord) == 0
	case '.', '\uff0e', '\u2024':
		return isDomain(text, rest[size:])
	}
	return false
}

// isDomain reports whether a dot between two texts may be one of a domain.
func isDomain(left, right string) bool {
	left = left[strings.LastIndexFunc(left, isNoDomain)+1:]
	if i := strings.IndexFunc(right, isNoDomain); i >= 0 {
		right = right[:i]
	}
	if left == "" || strings.HasSuffix(left, ".") {
		return false // an ellipsis, or a hidden file
	}
	if host, _, _ := strings.Cut(left, "."); strings.EqualFold(host, "www") {
		return right != ""
	}
	if ip, err := netip.ParseAddr(strings.Trim(left+"."+right, ".")); err == nil && ip.Is4() {
		return true
	}
	label, _, _ := strings.Cut(right, ".")
	return mayEndDomain(label)
}

func isNoDomain(r rune) bool { return !isWord(r) && r != '-' && r != '_' && r != '.' }

func isWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// mayEndDomain reports whether a label may be a top-level domain. There are
// thousands, with more to come; so it is one unless it cannot be.
func mayEndDomain(label string) bool {
	label = strings.ToLower(label)
	if utf8.RuneCountInString(label) < 2 {
		return false
	}
	if first, _, found := strings.Cut(label, "-"); found && first != "xn" {
		return mayEndDomain(first)
	}
	if strings.HasPrefix(label, "xn--") {
		return true
	}
	return !strings.ContainsFunc(label, unicode.IsDigit) && !strings.Contains(endings, " "+label+" ")
}

// endings are those of files that are no top-level domains, so that the names
// of most files stay as they are. Others are both, such as zip and mov.
const endings = " aac accdb aif aiff apk asc avi avif bak bat bin bmp bzip cer cfg conf crt css csv dat db deb dll dmg dng doc docm docx dwg dxf eml eps" +
	" epub exe flac gif gz gzip heic heif htm html iges img ini ipynb iso jar jpeg jpg js json jsonl key log mdb mid mkv mpeg mpg mpp msg msi" +
	" numbers obj odg odp ods odt ogg opus otf parquet pcap pdf pem php pkg plist png pot pps ppsx ppt pptm pptx psd pst rar raw rpm rtf sig" +
	" skp sql srt stl stp svg tar tex tgz tif tiff tmp torrent tsv ttf txt vcf vsd vsdx war wav webm webp wma wmv woff xls xlsb xlsm xlsx xml xps" +
	" xsd xz yaml yml zst "
