package s3

import (
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

// session is an upload in two parts.
type session struct {
	*testing.T
	store  *Store
	layout blob.Layout
	data   []byte
	upload blob.Upload
}

func begin(t *testing.T, store *Store) session {
	t.Helper()
	l := blob.Layout{Length: 5*mib + 10, PartSize: 5 * mib}
	id, err := store.Begin(t.Context(), blob.Files, "o/k", l)
	must(t, err)
	return session{t, store, l, content(t, int(l.Length)), store.Upload(blob.Files, "o/k", id, l)}
}

func (s session) part(number int) []byte {
	from := s.layout.Offset(number)
	return s.data[from : from+s.layout.Size(number)]
}

func (s session) sign(number int, sum *uint64) blob.SignedPart {
	s.Helper()
	signed, err := s.upload.Sign(s.Context(), number, sum, time.Minute)
	must(s, err)
	return signed
}

func (s session) send(number int) {
	s.Helper()
	sum := crc64nvme.Checksum(s.part(number))
	resp, text, err := request(s.Context(), s.sign(number, &sum), s.part(number))
	if must(s, err); resp.StatusCode != http.StatusOK {
		s.Fatalf("part %d: %s, %s", number, resp.Status, text)
	}
}

func (s session) complete() (blob.Written, error) { return s.upload.Complete(s.Context(), nil) }

func (s session) want() blob.Written {
	return blob.Written{Size: s.layout.Length, CRC64NVME: crc64nvme.Checksum(s.data)}
}

func TestEachMethodOfPartsMakesTheStatedCalls(t *testing.T) {
	t.Parallel()
	counted := counter()
	client, buckets := connect(t, counted.note)
	store := New(client, buckets)
	counted.take()
	var s session
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{name: "beginning", do: func() error { s = begin(t, store); return nil }, want: "CreateMultipartUpload:1"},
		{name: "signing and sending", do: func() error { s.send(1); s.send(2); return nil }},
		{name: "listing", do: func() error { return failure(s.upload.List(t.Context())) }, want: "ListParts:1"},
		{
			name: "completing",
			do:   func() error { return failure(s.complete()) },
			want: "CompleteMultipartUpload:1 ListParts:1",
		},
		{name: "completing again", do: func() error { return failure(s.complete()) }, want: "HeadObject:1 ListParts:1"},
		{name: "ending", do: func() error { return s.upload.Abort(t.Context()) }, want: "AbortMultipartUpload:1"},
	} {
		must(t, step.do())
		if got := counted.take(); got != step.want {
			t.Errorf("%s made the calls %s, want %s", step.name, got, step.want)
		}
	}
	wantContent(t, store, blob.Files, "o/k", s.data)
}

func TestCompleteSucceedsAlthoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	var lose atomic.Int64
	client, buckets := connect(t, lossy(&lose).use)
	s := begin(t, New(client, buckets))
	s.send(1)
	s.send(2)
	lose.Store(1)
	if got, err := s.complete(); got != s.want() || err != nil {
		t.Errorf("completing gives %+v and %v, want %+v", got, err, s.want())
	}
	if lose.Load() > 0 {
		t.Error("no answer was lost")
	}
	wantContent(t, s.store, blob.Files, "o/k", s.data)
}

// TestCompleteSendsSizeAndChecksum so that S3 compares them with its own.
func TestCompleteSendsSizeAndChecksum(t *testing.T) {
	t.Parallel()
	var sent atomic.Value
	watching := &spoiler{before: func(req *http.Request) {
		if req.Method == http.MethodPost && req.URL.Query().Has("uploadId") {
			sent.Store(req.Header.Clone())
		}
	}}
	client, buckets := connect(t, watching.use)
	s := begin(t, New(client, buckets))
	s.send(1)
	s.send(2)
	must(t, failure(s.complete()))
	header, _ := sent.Load().(http.Header)
	for name, want := range map[string]string{
		"X-Amz-Checksum-Crc64nvme": wire.CRC64Text(s.want().CRC64NVME),
		"X-Amz-Checksum-Type":      string(types.ChecksumTypeFullObject),
		"X-Amz-Mp-Object-Size":     "5242890",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestASignedPartNeedsOnlyItsHeaders(t *testing.T) {
	t.Parallel()
	store := offline()
	l := blob.Layout{Length: 5*mib + 10, PartSize: 5 * mib}
	s := session{t, store, l, nil, store.Upload(blob.Files, "o/k", "UPLOAD", l)}
	sum := uint64(0xae8b14860a799888)
	signed := s.sign(2, &sum)
	if want := map[string]string{"X-Amz-Checksum-Crc64nvme": "rosUhgp5mIg="}; signed.Method != http.MethodPut ||
		!maps.Equal(signed.Header, want) {
		t.Errorf("%s with %v, want PUT with %v", signed.Method, signed.Header, want)
	}
	for _, part := range []string{
		"https://ferry-files.s3.eu-south-1.amazonaws.com/o/k?",
		"X-Amz-SignedHeaders=content-length%3Bhost%3Bx-amz-checksum-crc64nvme&",
		"X-Amz-Expires=60&", "partNumber=2&", "uploadId=UPLOAD&",
	} {
		if !strings.Contains(signed.URL, part) {
			t.Errorf("%s does not have %s", signed.URL, part)
		}
	}
	if bare := s.sign(1, nil); len(bare.Header) != 0 || strings.Contains(strings.ToLower(bare.URL), "checksum") {
		t.Errorf("without a checksum: got %s with %v, want none in either", bare.URL, bare.Header)
	}
	if _, err := s.upload.Sign(t.Context(), 1, nil, 8*24*time.Hour); err == nil {
		t.Error("a request for more than a week is signed")
	}
	expect.Err(t, "writing a part", failure(s.upload.Write(t.Context(), 1, nil, nil)), blob.ErrUnsupported)
}
