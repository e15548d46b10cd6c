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
	store, data := New(client, buckets), content(t, 6*mib)
	labels := blob.Signed{
		Expires: 5 * time.Minute, ContentType: "text/html; charset=utf-8",
		ContentDisposition: `attachment; filename="r\"e port+1.html"; filename*=UTF-8''r%C3%A9%20port%2B1.html`,
	}
	const key = "a@b.c+/x+y@z"
	for _, key := range []string{key, "o/other"} {
		must(t, failure(store.Create(t.Context(), blob.Files, key, stream(data), int64(len(data)))))
	}
	signed, err := store.SignGet(t.Context(), blob.Files, key, labels)
	must(t, err)
	get := blob.SignedPart{Method: http.MethodGet, URL: signed}
	res, got, err := request(t.Context(), get, nil)
	must(t, err)
	kind, name := res.Header.Get("Content-Type"), res.Header.Get("Content-Disposition")
	if res.StatusCode != 200 ||
		!bytes.Equal(got, data) ||
		kind != labels.ContentType ||
		name != labels.ContentDisposition {
		t.Errorf("%s, %d bytes as %s, %s", res.Status, len(got), kind, name)
	}
	get.Header = map[string]string{"Range": "bytes=1000-1999"}
	res, got, err = request(t.Context(), get, nil)
	must(t, err)
	if res.StatusCode != 206 || !bytes.Equal(got, data[1000:2000]) {
		t.Errorf("a range: %s with %d bytes", res.Status, len(got))
	}
	other, err := url.Parse(signed)
	must(t, err)
	other.Path = strings.Replace(other.Path, key, "o/other", 1)
	res, got, err = request(t.Context(), blob.SignedPart{Method: http.MethodGet, URL: other.String()}, nil)
	must(t, err)
	if res.StatusCode != 403 || bytes.Contains(got, data) {
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
		"other bytes": {signed, changed}, "fewer bytes": {signed, part[:1000]}, "more bytes": {signed, append(
			slices.Clone(part),
			'x',
		)}, "no bytes": {signed, nil},
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
}
