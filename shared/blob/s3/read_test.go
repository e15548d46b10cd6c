package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
)

// cutting breaks off the first answers that carry an object, after some bytes.
func cutting(answers int64, after int64) *spoiler {
	var seen atomic.Int64
	return &spoiler{after: func(req *http.Request, resp *http.Response) (*http.Response, error) {
		if req.Method == http.MethodGet && resp.ContentLength > after && seen.Add(1) <= answers {
			body := resp.Body
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(body, after), failing{func() error { return io.ErrUnexpectedEOF }}), body}
		}
		return resp, nil
	}}
}

func TestReadingResumesWhereAConnectionBroke(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t, cutting(3, 100_000).use)
	store, data := New(client, buckets), content(t, mib)
	must(t, failure(store.Create(t.Context(), blob.Files, "o/k", stream(data), mib)))
	wantContent(t, store, blob.Files, "o/k", data)
}

func TestReadingGivesUpOnADeadConnection(t *testing.T) {
	t.Parallel()
	dead := cutting(1000, 0)
	client, buckets := connect(t, dead.use)
	store := New(client, buckets)
	must(t, failure(store.Create(t.Context(), blob.Files, "o/k", stream([]byte("0123456789")), 10)))
	r, err := store.Open(t.Context(), blob.Files, "o/k")
	must(t, err)
	defer r.Close()
	if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %d bytes and error %v, want none and io.ErrUnexpectedEOF", n, err)
	}
}

func TestAReaderFailsAfterItsContextEndsAndAfterClose(t *testing.T) {
	t.Parallel()
	client, buckets := connect(t)
	store, data := New(client, buckets), content(t, 4*mib)
	must(t, failure(store.Create(t.Context(), blob.Files, "o/k", stream(data), 4*mib)))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := store.Open(ctx, blob.Files, "o/k")
	must(t, err)
	must(t, failure(io.ReadFull(r, make([]byte, 10))))
	cancel()
	expect.Err(t, "reading after the context ended", failure(io.Copy(io.Discard, r)), context.Canceled)
	if err := r.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("reading after Close: got error %v, want one other than EOF", err)
	}
}

// offline returns a store that can only sign.
func offline() *Store {
	return New(s3.New(s3.Options{
		Region:      "eu-south-1",
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "session"),
	}), Buckets{blob.Files: "ferry-files", blob.Backup: "ferry-backup"})
}

func TestASignedURLNeedsNoHeaders(t *testing.T) {
	t.Parallel()
	signed, err := offline().SignGet(t.Context(), blob.Backup, "o+1/k@2", blob.Signed{
		Expires:     time.Minute,
		ContentType: "text/plain",
	})
	must(t, err)
	u, err := url.Parse(signed)
	must(t, err)
	query := u.Query()
	for name, want := range map[string]string{
		"X-Amz-SignedHeaders": "host", "X-Amz-Expires": "60", "response-content-type": "text/plain",
		"X-Amz-Checksum-Mode": "", "response-content-disposition": "",
	} {
		if got := query.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if u.Scheme != "https" || u.Host != "ferry-backup.s3.eu-south-1.amazonaws.com" || u.Path != "/o+1/k@2" {
		t.Errorf("got the URL %s://%s%s", u.Scheme, u.Host, u.Path)
	}
}

func TestASignedURLExpiresWithinAWeek(t *testing.T) {
	t.Parallel()
	for expires, ok := range map[time.Duration]bool{
		-time.Second: false, 0: false, time.Second: true, 7 * 24 * time.Hour: true, 7*24*time.Hour + time.Second: false,
	} {
		if _, err := offline().SignGet(
			t.Context(),
			blob.Files,
			"o/k",
			blob.Signed{Expires: expires},
		); (err == nil) != ok {
			t.Errorf("expiring after %s: got error %v, want an error: %t", expires, err, !ok)
		}
	}
}

func TestTheSourceOfACopyIsEscaped(t *testing.T) {
	t.Parallel()
	if got, want := (location{"bucket", "o+1@x/k+2_-."}).escaped(), "bucket/o%2B1%40x/k%2B2_-."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
