package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
)

// request sends a signed request with net/http alone, as a stranger would, and reads the answer.
func request(ctx context.Context, signed blob.SignedPart, body []byte) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, signed.Method, signed.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for name, value := range signed.Header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res, answer, err
}

func TestASignedURLGivesTheObjectWithItsTypeAndName(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t)
	store, small, large := New(client, buckets), content(t, 100_000), content(t, 6*mib)
	labels := blob.Signed{
		Expires: 5 * time.Minute, ContentType: "text/html; charset=utf-8",
		ContentDisposition: `attachment; filename="r\"e port+1.html"; filename*=UTF-8''r%C3%A9%20port%2B1.html`,
	}
	all := map[string][]byte{"o/empty": {}, "a@b.c+/x+y@z": small, "o/large": large}
	ask := func(area blob.Area, key string, change func(string) string, ranges string) (*http.Response, []byte) {
		t.Helper()
		signed, err := store.SignGet(t.Context(), area, key, labels)
		must(t, err)
		get := blob.SignedPart{Method: http.MethodGet, URL: change(signed), Header: map[string]string{}}
		if ranges != "" {
			get.Header["Range"] = ranges
		}
		res, body, err := request(t.Context(), get, nil)
		must(t, err)
		return res, body
	}
	same := func(url string) string { return url }
	for _, area := range blob.Areas() {
		for key, want := range all {
			must(t, failure(store.Create(t.Context(), area, key, stream(want), int64(len(want)))))
			res, got := ask(area, key, same, "")
			kind, name := res.Header.Get("Content-Type"), res.Header.Get("Content-Disposition")
			if res.StatusCode != 200 || !bytes.Equal(got, want) || kind != labels.ContentType || name != labels.ContentDisposition {
				t.Errorf("%s of %s: %s, %d bytes as %s, %s", key, area, res.Status, len(got), kind, name)
			}
		}
	}
	for ranges, want := range map[string][]byte{
		"bytes=0-0": large[:1], "bytes=1000-1999": large[1000:2000], "bytes=-5": large[6*mib-5:], "bytes=6291455-": large[6*mib-1:],
	} {
		if res, got := ask(blob.Files, "o/large", same, ranges); res.StatusCode != 206 || !bytes.Equal(got, want) {
			t.Errorf("%s: %s with %d bytes", ranges, res.Status, len(got))
		}
	}
	if res, _ := ask(blob.Files, "o/none", same, ""); res.StatusCode != 404 {
		t.Errorf("a missing object: %s", res.Status)
	}
	other := func(url string) string { return strings.Replace(url, "o/empty", "o/large", 1) }
	if res, got := ask(blob.Files, "o/empty", other, ""); res.StatusCode != 403 || bytes.Contains(got, large) {
		t.Errorf("another object: %s with %d bytes", res.Status, len(got))
	}
}

func TestASignedPartAcceptsOnlyWhatWasSigned(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t)
	s := begin(t, New(client, buckets))
	part, sum := s.part(1), crc64nvme.Checksum(s.part(1))
	signed := s.sign(1, &sum)
	bare, another, method := signed, signed, signed
	bare.Header, method.Method = nil, http.MethodPost
	to, err := url.Parse(signed.URL)
	must(t, err)
	query := to.Query()
	query.Set("partNumber", "2")
	to.RawQuery = query.Encode()
	another.URL = to.String()
	changed := slices.Clone(part)
	changed[1000] ^= 1
	for name, c := range map[string]struct {
		signed  blob.SignedPart
		content []byte
	}{
		"other bytes": {signed, changed}, "fewer bytes": {signed, part[:1000]}, "more bytes": {signed, append(slices.Clone(part), 'x')}, "no bytes": {signed, nil},
		"no checksum": {bare, part}, "another part": {another, part}, "another method": {method, part},
	} {
		if res, _, err := request(t.Context(), c.signed, c.content); err == nil && res.StatusCode/100 != 4 {
			t.Errorf("%s: %s, want one of 4xx", name, res.Status)
		}
	}
	if there, err := s.upload.List(t.Context()); err != nil || len(there) > 0 {
		t.Errorf("there are %+v, %v", there, err)
	}
	s.send(1)
	for _, expires := range []time.Duration{0, -time.Minute, 8 * 24 * time.Hour} {
		if _, err := s.upload.Sign(t.Context(), 1, nil, expires); err == nil {
			t.Errorf("a request that expires after %s is signed", expires)
		}
	}
}
