package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/fault"
)

func TestJSONIsNeverRepairedInSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, body, want string }{
		{"UTF-8", `{"text":"é😀"}`, "é😀"},
		{"a byte order mark", "\ufeff" + `{"text":"a"}`, "a"},
		{"a replacement character", `{"text":"` + "\ufffd" + `"}`, "\ufffd"},
		{"an escaped replacement character", `{"text":"\ufffd\uFFFD"}`, "\ufffd\ufffd"},
		{"a surrogate pair", `{"text":"\ud83d\ude00\uD83D\uDE00"}`, "😀😀"},
		{"an escaped backslash before what looks like half of one", `{"text":"\\ud83d \\\\ud83d"}`, `\ud83d \\ud83d`},
		{"Latin-1", "{\"text\":\"caf\xe9\"}", ""},
		{"Latin-1 in a name", "{\"t\xe9xt\":\"a\"}", ""},
		{"the first half alone", `{"text":"\ud83d"}`, ""},
		{"the first half before another escape", `{"text":"\ud83d\n\ude00"}`, ""},
		{"the first half twice", `{"text":"\uD83D\ud83d\ude00"}`, ""},
		{"the second half alone", `{"text":"\\\ude00"}`, ""},
		{"half of a pair in a name", `{"te\ud83dxt":"a"}`, ""},
		{"UTF-16", "\xff\xfe{\x00}\x00", ""},
	} {
		var in struct{ Text string }
		err := api.JSON(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &in, false)
		if in.Text != c.want || (c.want == "") != fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %q, %v", c.what, in.Text, err)
		}
	}
	if err := api.JSON(httptest.NewRequest("POST", "/", strings.NewReader("\ufeff \n")), &struct{}{}, true); err != nil {
		t.Errorf("a byte order mark and nothing else: %v", err)
	}
}
