package blobtest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"ferry/shared/blob"
)

func signTests() map[string]func(*testing.T, suite) {
	return map[string]func(*testing.T, suite){
		"a signed URL hands out the bytes and labels them": signedServes,
		"a signed URL answers ranges":                      signedRanges,
		"a URL is signed without looking at the object":    signedMissing,
		"a changed signed URL hands out nothing":           signedChanged,
	}
}

func signed() blob.Signed {
	return blob.Signed{
		Expires:            5 * time.Minute,
		ContentType:        "text/html; charset=utf-8",
		ContentDisposition: `attachment; filename="r\"e port+1.html"; filename*=UTF-8''r%C3%A9%20port%2B1.html`,
	}
}

// sign skips the test where the store cannot sign.
func (s suite) sign(area blob.Area, key string) string {
	s.Helper()
	u, err := s.SignGet(s.Context(), area, key, signed())
	if errors.Is(err, blob.ErrUnsupported) {
		s.Skip("this store does not sign URLs")
	}
	if err != nil {
		s.Fatalf("signing: %v", err)
	}
	return u
}

// fetch is a plain GET without anything that a stranger would not send.
func (s suite) fetch(url, ranges string) (*http.Response, []byte) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.Fatal(err)
	}
	if ranges != "" {
		req.Header.Set("Range", ranges)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res, body
}

func signedServes(t *testing.T, s suite) {
	for _, area := range areas() {
		for _, key := range []string{s.key("k"), s.owner + "+a@b.c/x+y@z", s.key("empty")} {
			data := content(t, 100_000)
			if key == s.key("empty") {
				data = nil
			}
			s.create(area, key, data)
			res, body := s.fetch(s.sign(area, key), "")
			if res.StatusCode != http.StatusOK || !bytes.Equal(body, data) {
				t.Errorf("%s: got status %d and %d bytes, want the %d written", key, res.StatusCode, len(body), len(data))
			}
			if got, want := res.Header.Get("Content-Type"), signed().ContentType; got != want {
				t.Errorf("%s: Content-Type is %q, want %q", key, got, want)
			}
			if got, want := res.Header.Get("Content-Disposition"), signed().ContentDisposition; got != want {
				t.Errorf("%s: Content-Disposition is %q, want %q", key, got, want)
			}
		}
	}
}

func signedRanges(t *testing.T, s suite) {
	data := content(t, 6*mib)
	s.create(blob.Files, s.key("k"), data)
	url := s.sign(blob.Files, s.key("k"))
	for ranges, want := range map[string][]byte{
		"bytes=0-0": data[:1], "bytes=1000-1999": data[1000:2000], "bytes=-5": data[6*mib-5:], "bytes=6291455-": data[6*mib-1:],
	} {
		res, body := s.fetch(url, ranges)
		if res.StatusCode != http.StatusPartialContent || !bytes.Equal(body, want) {
			t.Errorf("%s: got status %d and %d bytes, want 206 and %d", ranges, res.StatusCode, len(body), len(want))
		}
	}
}

func signedMissing(t *testing.T, s suite) {
	if res, _ := s.fetch(s.sign(blob.Files, s.key("none")), ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("got status %d, want 404", res.StatusCode)
	}
}

func signedChanged(t *testing.T, s suite) {
	s.create(blob.Files, s.key("aaaa"), []byte("public"))
	s.create(blob.Files, s.key("bbbb"), []byte("private"))
	url := s.sign(blob.Files, s.key("aaaa"))
	changed := bytes.Replace([]byte(url), []byte("aaaa"), []byte("bbbb"), 1)
	if res, body := s.fetch(string(changed), ""); res.StatusCode != http.StatusForbidden || bytes.Contains(body, []byte("private")) {
		t.Errorf("got status %d and %q, want 403", res.StatusCode, body)
	}
}
