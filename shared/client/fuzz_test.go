package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func FuzzARangeIsTakenOnlyIfItIsTheRequestedOne(f *testing.F) {
	f.Add("bytes 3-6/10", int64(3), int64(7), int64(10))
	for _, stated := range []string{
		"bytes 3-/10", "bytes 3-5/10", "bytes 3-6/*", "bytes */10", "bytes 3-x/10", "bytes 3-6,8-9/10",
		"bytes  3-6/10", "3-6/10", "",
	} {
		f.Add(stated, int64(3), int64(7), int64(10))
	}
	f.Fuzz(func(t *testing.T, stated string, from, to, length int64) {
		if from < 0 || to <= from || length < to {
			return
		}
		o := &origin{remote: Remote{Length: length}}
		resp := &http.Response{
			StatusCode: 206,
			Header:     http.Header{"Content-Range": {stated}},
			Body:       io.NopCloser(strings.NewReader("")),
		}
		body, err := o.body(resp, span{from, to})
		exact := stated == fmt.Sprintf("bytes %d-%d/%d", from, to-1, length)
		if (err == nil) != exact || (body == nil) != (err != nil) {
			t.Errorf("%q for %d to %d of %d: %v", stated, from, to, length, err)
		}
	})
}

func FuzzARecordOfADownloadIsWholeOrRefused(f *testing.F) {
	for _, text := range []string{
		`{"etag":"\"x\"","length":100,"missing":[{"From":10,"To":20},{"From":20,"To":100}]}`, `{"etag":"\"x\"","length":100,"missing":[]}`,
		`{"etag":"\"x\"","length":100,"missing":[null]}`, `{"etag":"\"x\"","length":100,"missing":[{"From":-1,"To":5}]}`,
		`{"etag":"\"x\"","length":100,"missing":[{"From":10,"To":30},{"From":20,"To":101}]}`, `{"etag":"\"y\"","length":100}`, `{"etag":"\"x\"","length":1e2}`, "{", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := Remote{ETag: `"x"`, Length: 100}
		var found record
		if json.Unmarshal(text, &found) != nil || !found.isOf(r) {
			return
		}
		p := &partial{remote: r, spans: found.Missing}
		bits := make([]bool, r.Length)
		for _, s := range p.missing() {
			for i := s.From; i < s.To; i++ {
				if bits[i] {
					t.Fatalf("%q misses byte %d twice", text, i)
				}
				bits[i] = true
			}
		}
		if have := p.have(); have < 0 || have > r.Length {
			t.Errorf("%q has %d of %d bytes", text, have, r.Length)
		}
		before := p.missing()
		if again := (record{r.ETag, r.Length, before, ""}); !again.isOf(r) {
			t.Errorf("%q is saved as %v", text, before)
		}
		p.split(7)
		for _, s := range p.spans {
			if s.To-s.From > 7 || s.To <= s.From {
				t.Fatalf("%q gives a span of %d bytes", text, s.To-s.From)
			}
		}
		if after := p.missing(); !reflect.DeepEqual(before, after) {
			t.Errorf("%q misses %v, and cut into pieces %v", text, before, after)
		}
	})
}
