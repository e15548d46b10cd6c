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
		{what: "UTF-8", body: `{"text":"é😀"}`, want: "é😀"},
		{what: "a byte order mark", body: "\ufeff" + `{"text":"a"}`, want: "a"},
		{what: "a replacement character", body: `{"text":"` + "\ufffd" + `"}`, want: "\ufffd"},
		{what: "an escaped replacement character", body: `{"text":"\ufffd\uFFFD"}`, want: "\ufffd\ufffd"},
		{what: "a surrogate pair", body: `{"text":"\ud83d\ude00\uD83D\uDE00"}`, want: "😀😀"},
		{
			what: "an escaped backslash before what looks like half of one",
			body: `{"text":"\\ud83d \\\\ud83d"}`,
			want: `\ud83d \\ud83d`,
		},
		{what: "Latin-1", body: "{\"text\":\"caf\xe9\"}"},
		{what: "Latin-1 in a name", body: "{\"t\xe9xt\":\"a\"}"},
		{what: "the first half alone", body: `{"text":"\ud83d"}`},
		{what: "the first half before another escape", body: `{"text":"\ud83d\n\ude00"}`},
		{what: "the first half twice", body: `{"text":"\uD83D\ud83d\ude00"}`},
		{what: "the second half alone", body: `{"text":"\\\ude00"}`},
		{what: "half of a pair in a name", body: `{"te\ud83dxt":"a"}`},
		{what: "UTF-16", body: "\xff\xfe{\x00}\x00"},
	} {
		var in struct{ Text string }
		err := api.JSON(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &in, false)
		if in.Text != c.want || (c.want == "") != fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %q, %v", c.what, in.Text, err)
		}
	}
	err := api.JSON(httptest.NewRequest("POST", "/", strings.NewReader("\ufeff \n")), &struct{}{}, true)
	if err != nil {
		t.Errorf("a byte order mark and nothing else: %v", err)
	}
}
