package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/infra/ferry/cli"
	"ferry/shared/boot/expect"
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
		if s.Key == "" ||
			header.Write(w) != nil ||
			w.String() != "Idempotency-Key: "+s.Key+"\r\nLocation: "+s.Session+"\r\n" {
			t.Errorf("%q makes the headers %q", text, w)
		}
		saved, err := json.Marshal(s)
		if err != nil || !again.restore(saved) || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Errorf("%q is %+v, and then %+v, %v", text, s, again, err)
		}
	})
}

func FuzzASavedLoginIsReadOrCalledDamaged(f *testing.F) {
	f.Setenv("XDG_CONFIG_HOME", f.TempDir())
	path, err := loginFile()
	expect.NoErr(f, errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700)))
	for _, text := range []string{
		`{"url":"http://127.0.0.1:8080/v1","user":"alice","bearer":"AAAA"}`, `{"url":"https://[::1]:1/v1"}`, `{"bearer":"a\r\nX: y"}`,
		`{"url":"\u0000"}`, `{"url":1}`, `{}`, `[]`, `null`, `{"url":"a"`, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		expect.NoErr(t, os.WriteFile(path, text, 0o600))
		s, err := readLogin(cli.Console{})
		if err != nil {
			if cli.ExitCode(err) != cli.ExitSettings || s != (saved{}) {
				t.Errorf("%q gives %+v, %v", text, s, err)
			}
			return
		}
		expect.NoErr(t, writeLogin(s))
		if again, err := readLogin(cli.Console{}); err != nil || again != s {
			t.Errorf("%q is %+v, and then %+v, %v", text, s, again, err)
		}
	})
}
