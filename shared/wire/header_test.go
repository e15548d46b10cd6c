package wire_test

import (
	"maps"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

func TestParametersAreReadAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, header, name, value string
		all                       bool
	}{
		{"a quoted value", `form-data; name="a;b"; filename="c"`, "name", "a;b", true},
		{"escaped quotes", `form-data; filename="a \"b\".txt"`, "filename", `a "b".txt`, true},
		{"a path of an old browser", `form-data; filename="C:\dir\a.txt"`, "filename", `C:\dir\a.txt`, true},
		{"a value without quotes", `form-data; filename=a b (1).txt ; x=y`, "filename", "a b (1).txt", true},
		{"names in capitals, and spaces", `FORM-DATA ;  FileName = "a"`, "filename", "a", true},
		{"semicolons too many", "text/plain;; ;charset=utf-8;", "charset", "utf-8", true},
		{"UTF-8 with a star, under another name", `form-data; filename*=utf8''%C3%A9; filename="_"`, "filename", "é", true},
		{"Latin-1 with a star", `form-data; filename*=ISO-8859-1'en'%E9.txt`, "filename", "é.txt", true},
		{"an encoded word", `form-data; filename="=?utf-8?B?dMO8LmJpbg==?="`, "filename", "tü.bin", true},
		{"several encoded words", `form-data; filename="=?UTF-8?Q?=C3=A9?= =?iso-8859-1?q?=E9?= =?windows-1252?Q?=80?="`, "filename", "éé€", true},
		{"a word beside others", `form-data; filename="a =?utf-8?B?dMO8?="`, "filename", "a =?utf-8?B?dMO8?=", true},
		{"what only looks like a word", `form-data; filename="=?really?="`, "filename", "=?really?=", true},
		{"raw bytes", "form-data; filename=\"\xe9.txt\"", "filename", "\xe9.txt", true},
		{"the others beside one without a value", "text/plain; x; charset=utf-8", "charset", "utf-8", false},
		{"one name twice", `form-data; filename="a"; filename="a"`, "filename", "a", true},
		{"two names", `form-data; filename="a"; filename="b"`, "filename", "a", false},
		{"a quote that is not closed", `form-data; name="file"; filename="a`, "filename", "", false},
		{"a quote that is closed too early", `form-data; filename="a"b".txt"`, "filename", "", false},
		{"another charset with a star", `form-data; filename*=Shift_JIS''%83.txt; filename="a"`, "filename", "a", false},
		{"a broken escape with a star", `form-data; filename*=UTF-8''%zz.txt`, "filename", "", false},
		{"a star without a charset", `form-data; filename*=a.txt`, "filename", "", false},
		{"a continuation", `form-data; filename*0="a"; filename*1="b"`, "filename", "", false},
		{"an encoded word that is no UTF-8", `form-data; filename="=?utf-8?Q?=E9?="`, "filename", "", false},
	} {
		_, params, all := wire.Parameters(c.header)
		expect.Equal(t, c.what, params[c.name], c.value)
		expect.Equal(t, c.what+": all are read", all, c.all)
	}
	kind, params, all := wire.Parameters(" Text/Plain ")
	if kind != "text/plain" || !all || !maps.Equal(params, map[string]string{}) {
		t.Errorf("%q, %q, %v", kind, params, all)
	}
}

func TestWhatCanBeReadOfAMediaTypeIsKept(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"text/plain":                                     "text/plain",
		"Text/Plain;; Charset=UTF-8":                     "text/plain; charset=UTF-8",
		"text/plain; charset":                            "text/plain",
		`text/html; x="; charset=iso-8859-1`:             "text/html",
		`text/csv; header=present; charset="cp 1"`:       `text/csv; charset="cp 1"`,
		"text/plain; charset=" + strings.Repeat("x", 41): "text/plain",
		"text/plain; charset=a\r\nb":                     "text/plain; charset*=utf-8''a%0D%0Ab",
		"":                                               "", ";;;": "", "pdf": "", "a b/c": "", "text/": "", "text/plain, text/html": "", strings.Repeat("x", 127) + "/y": "",
	} {
		expect.Equal(t, header, wire.MediaType(header), want)
	}
}
