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
	for name, text := range map[string]string{
		"nothing": "", "no domain": "ann", "no dot": "ann@localhost", "two": "a@example.com,b@example.com", "a name": "Ann <ann@example.com>",
		"brackets": "<ann@example.com>", "a comment": "ann@example.com (x)", "quotes": `"ann"@example.com`, "a space": "ann @example.com",
		"a line end": "ann@example.com\n", "a header": "ann@example.com\r\nBcc: x@example.com", "NUL": "a\x00nn@example.com",
		"a machine in brackets": "x@[127.0.0.1]", "a machine": "root@127.0.0.1", "a machine in IPv6": "root@[IPv6:::1]",
		"a machine in hex": "root@127.0.0.0x1", "a machine in wide digits": "root@127.0.0.\uff11", "a number": "x@y.1",
		"a detour": "x%y@z", "a detour to a domain": "x%y@example.com", "a path of machines": "z!x@example.com",
		"a bidi override": "a\u202enn@example.com", "a bidi mark": "ann\u200e@example.com", "a bidi isolate": "\u2066ann\u2069@example.com",
		"an Arabic mark": "ann\u061c@example.com", "a bidi mark in the domain": "ann@exam\u200fple.com",
		"a line separator": "a\u2028nn@example.com", "a paragraph separator": "ann@example.com\u2029", "NBSP": "ann\u00a0@example.com",
		"a wide space": "a\u3000nn@example.com", "a zero width space": "a\u200bnn@example.com", "a filler": "a\u3164nn@example.com", "a BOM": "\ufeffann@example.com",
		"a wide @": "ann\uff20example.com", "a wide dot": "ann@example\uff0ecom", "an ideographic dot": "ann@example\u3002com",
		"an empty label": "ann@example..com", "a last dot": "ann@example.com.", "a first dot": "ann@.example.com", "a hyphen": "ann@-example.com",
		"a long label": "ann@" + strings.Repeat("a", 64) + ".com", "a long address": strings.Repeat("a", 250) + "@example.com", "not UTF-8": "ann\xff@example.com",
		"a label too long as an A-label": "ann@" + strings.Repeat("ü", 31) + "xyz.example", "a label with Arabic before Latin": "x@\u0627a.example",
		"an emoji": "\U0001f469@example.com", "an underscore": "ann@exa_mple.com",
	} {
		if _, err := contact.ParseAddress(text); !errors.Is(err, contact.ErrAddress) {
			t.Errorf("%s: %q is accepted", name, text)
		}
	}
}

func TestAnAddressHasOneForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ typed, kept, canonical, shown string }{
		"ASCII stays":              {"Ann@Example.com", "Ann@Example.com", "ann@example.com", "Ann@example.com"},
		"a domain with an umlaut":  {"ann@bücher.example", "ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example", "ann@bücher.example"},
		"it in capitals":           {"ann@BÜCHER.Example", "ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example", "ann@bücher.example"},
		"it as A-labels":           {"ann@XN--Bcher-Kva.example", "ann@XN--Bcher-Kva.example", "ann@xn--bcher-kva.example", "ann@bücher.example"},
		"a sharp s is not two":     {"x@straße.example", "x@xn--strae-oqa.example", "x@xn--strae-oqa.example", "x@straße.example"},
		"A-labels that decode not": {"x@xn--a.example", "x@xn--a.example", "x@xn--a.example", "x@xn--a.example"},
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
