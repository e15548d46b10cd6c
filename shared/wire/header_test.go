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
		{what: "a quoted value", header: `form-data; name="a;b"; filename="c"`, name: "name", value: "a;b", all: true},
		{
			what:   "escaped quotes",
			header: `form-data; filename="a \"b\".txt"`,
			name:   "filename",
			value:  `a "b".txt`,
			all:    true,
		},
		{
			what:   "a path of an old browser",
			header: `form-data; filename="C:\dir\a.txt"`,
			name:   "filename",
			value:  `C:\dir\a.txt`,
			all:    true,
		},
		{
			what:   "a value without quotes",
			header: `form-data; filename=a b (1).txt ; x=y`,
			name:   "filename",
			value:  "a b (1).txt",
			all:    true,
		},
		{
			what:   "names in capitals, and spaces",
			header: `FORM-DATA ;  FileName = "a"`,
			name:   "filename",
			value:  "a",
			all:    true,
		},
		{
			what:   "semicolons too many",
			header: "text/plain;; ;charset=utf-8;",
			name:   "charset",
			value:  "utf-8",
			all:    true,
		},
		{
			what:   "UTF-8 with a star, under another name",
			header: `form-data; filename*=utf8''%C3%A9; filename="_"`,
			name:   "filename",
			value:  "é",
			all:    true,
		},
		{
			what:   "Latin-1 with a star",
			header: `form-data; filename*=ISO-8859-1'en'%E9.txt`,
			name:   "filename",
			value:  "é.txt",
			all:    true,
		},
		{
			what:   "an encoded word",
			header: `form-data; filename="=?utf-8?B?dMO8LmJpbg==?="`,
			name:   "filename",
			value:  "tü.bin",
			all:    true,
		},
		{
			what:   "several encoded words",
			header: `form-data; filename="=?UTF-8?Q?=C3=A9?= =?iso-8859-1?q?=E9?= =?windows-1252?Q?=80?="`,
			name:   "filename",
			value:  "éé€",
			all:    true,
		},
		{
			what:   "a word beside others",
			header: `form-data; filename="a =?utf-8?B?dMO8?="`,
			name:   "filename",
			value:  "a =?utf-8?B?dMO8?=",
			all:    true,
		},
		{
			what:   "what only looks like a word",
			header: `form-data; filename="=?really?="`,
			name:   "filename",
			value:  "=?really?=",
			all:    true,
		},
		{what: "raw bytes", header: "form-data; filename=\"\xe9.txt\"", name: "filename", value: "\xe9.txt", all: true},
		{
			what:   "the others beside one without a value",
			header: "text/plain; x; charset=utf-8",
			name:   "charset",
			value:  "utf-8",
		},
		{
			what:   "one name twice",
			header: `form-data; filename="a"; filename="a"`,
			name:   "filename",
			value:  "a",
			all:    true,
		},
		{what: "two names", header: `form-data; filename="a"; filename="b"`, name: "filename", value: "a"},
		{what: "a quote that is not closed", header: `form-data; name="file"; filename="a`, name: "filename"},
		{what: "a quote that is closed too early", header: `form-data; filename="a"b".txt"`, name: "filename"},
		{
			what:   "another charset with a star",
			header: `form-data; filename*=Shift_JIS''%83.txt; filename="a"`,
			name:   "filename",
			value:  "a",
		},
		{what: "a broken escape with a star", header: `form-data; filename*=UTF-8''%zz.txt`, name: "filename"},
		{what: "a star without a charset", header: `form-data; filename*=a.txt`, name: "filename"},
		{what: "a continuation", header: `form-data; filename*0="a"; filename*1="b"`, name: "filename"},
		{what: "an encoded word that is no UTF-8", header: `form-data; filename="=?utf-8?Q?=E9?="`, name: "filename"},
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
		"":                                               "", ";;;": "", "pdf": "", "a b/c": "", "text/": "", "text/plain, text/html": "", strings.Repeat(
			"x",
			127,
		) + "/y": "",
	} {
		expect.Equal(t, header, wire.MediaType(header), want)
	}
}
