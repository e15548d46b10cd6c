package contact_test

import (
	"errors"
	"strings"
	"testing"

	"ferry/shared/contact"
)

func TestOnlyOnePlainAddressIsARecipient(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"ann@example.com", "a.b+c_d-e@sub.example.co.uk", "o'hara=x@example.com", "josé@example.com", "用户@例子.中国",
		"x@xn--bcher-kva.example", "x@bücher.example", "x@1and1.com", "x@192.0.2.1.example.com", "דנה@example.com", "cafe\u0301@example.com",
	} {
		if _, err := contact.ParseAddress(text); err != nil {
			t.Errorf("%q is refused", text)
		}
	}
	for _, text := range []string{
		"",                                        // nothing
		"ann",                                     // no domain
		"ann@localhost",                           // no dot
		"a@example.com,b@example.com",             // two
		"Ann <ann@example.com>",                   // a name
		"<ann@example.com>",                       // brackets
		"ann@example.com (x)",                     // a comment
		`"ann"@example.com`,                       // quotes
		"ann @example.com",                        // a space
		"ann@example.com\n",                       // a line end
		"ann@example.com\r\nBcc: x@example.com",   // a header
		"a\x00nn@example.com",                     // NUL
		"x@[127.0.0.1]",                           // a machine in brackets
		"root@127.0.0.1",                          // a machine
		"root@[IPv6:::1]",                         // a machine in IPv6
		"root@127.0.0.0x1",                        // a machine in hex
		"root@127.0.0.\uff11",                     // a machine in wide digits
		"x@y.1",                                   // a number
		"x%y@z",                                   // a detour
		"x%y@example.com",                         // a detour to a domain
		"z!x@example.com",                         // a path of machines
		"a\u202enn@example.com",                   // a bidi override
		"ann\u200e@example.com",                   // a bidi mark
		"\u2066ann\u2069@example.com",             // a bidi isolate
		"ann\u061c@example.com",                   // an Arabic mark
		"ann@exam\u200fple.com",                   // a bidi mark in the domain
		"a\u2028nn@example.com",                   // a line separator
		"ann@example.com\u2029",                   // a paragraph separator
		"ann\u00a0@example.com",                   // NBSP
		"a\u3000nn@example.com",                   // a wide space
		"a\u200bnn@example.com",                   // a zero width space
		"a\u3164nn@example.com",                   // a filler
		"\ufeffann@example.com",                   // a BOM
		"ann\uff20example.com",                    // a wide @
		"ann@example\uff0ecom",                    // a wide dot
		"ann@example\u3002com",                    // an ideographic dot
		"ann@example..com",                        // an empty label
		"ann@example.com.",                        // a last dot
		"ann@.example.com",                        // a first dot
		"ann@-example.com",                        // a hyphen
		"ann@" + strings.Repeat("a", 64) + ".com", // a long label
		strings.Repeat("a", 250) + "@example.com", // a long address
		"ann\xff@example.com",                     // not UTF-8
		"ann@" + strings.Repeat("ü", 31) + "xyz.example", // a label too long as an A-label
		"x@\u0627a.example",      // a label with Arabic before Latin
		"\U0001f469@example.com", // an emoji
		"ann@exa_mple.com",       // an underscore
	} {
		if _, err := contact.ParseAddress(text); !errors.Is(err, contact.ErrAddress) {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestAnAddressHasOneForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ typed, kept, canonical, shown string }{
		"ASCII stays": {
			typed:     "Ann@Example.com",
			kept:      "Ann@Example.com",
			canonical: "ann@example.com",
			shown:     "Ann@example.com",
		},
		"a domain with an umlaut": {
			typed:     "ann@bücher.example",
			kept:      "ann@xn--bcher-kva.example",
			canonical: "ann@xn--bcher-kva.example",
			shown:     "ann@bücher.example",
		},
		"it in capitals": {
			typed:     "ann@BÜCHER.Example",
			kept:      "ann@xn--bcher-kva.example",
			canonical: "ann@xn--bcher-kva.example",
			shown:     "ann@bücher.example",
		},
		"it as A-labels": {
			typed:     "ann@XN--Bcher-Kva.example",
			kept:      "ann@XN--Bcher-Kva.example",
			canonical: "ann@xn--bcher-kva.example",
			shown:     "ann@bücher.example",
		},
		"a sharp s is not two": {
			typed:     "x@straße.example",
			kept:      "x@xn--strae-oqa.example",
			canonical: "x@xn--strae-oqa.example",
			shown:     "x@straße.example",
		},
		"A-labels that decode not": {
			typed:     "x@xn--a.example",
			kept:      "x@xn--a.example",
			canonical: "x@xn--a.example",
			shown:     "x@xn--a.example",
		},
	} {
		kept, err := contact.ParseAddress(c.typed)
		if err != nil || kept != c.kept {
			t.Errorf("%s: kept as %q, %v; want %q", name, kept, err, c.kept)
		}
		for _, form := range []string{c.typed, c.kept, " " + c.shown} {
			if got := contact.Canonical(form); got != c.canonical {
				t.Errorf("%s: %q is compared as %q, want %q", name, form, got, c.canonical)
			}
		}
		if got := contact.Readable(c.kept); got != c.shown {
			t.Errorf("%s: shown as %q, want %q", name, got, c.shown)
		}
	}
}
