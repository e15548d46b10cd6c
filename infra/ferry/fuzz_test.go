package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func FuzzAStateFileIsUsableOrIgnored(f *testing.F) {
	for _, text := range []string{
		`{"key":"KEY","session":"7-AAAA","file":"/a/b"}`, `{"key":"KEY"}`, `{"key":"a\r\nX: y"}`, `{"key":""}`, `{"key":"a","session":"../b c"}`,
		`{"key":1}`, `[]`, `null`, `{"key":"KEY"`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, again state
		if !s.restore(text) {
			return
		}
		w := new(strings.Builder)
		header := http.Header{"Idempotency-Key": {s.Key}, "Location": {s.Session}}
		if s.Key == "" || header.Write(w) != nil || w.String() != "Idempotency-Key: "+s.Key+"\r\nLocation: "+s.Session+"\r\n" {
			t.Errorf("%q makes the headers %q", text, w)
		}
		saved, err := json.Marshal(s)
		if err != nil || !again.restore(saved) || again != s {
			t.Errorf("%q is %+v, and then %+v, %v", text, s, again, err)
		}
	})
}
