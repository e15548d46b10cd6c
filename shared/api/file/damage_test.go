package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/wire"
)

// replace gives an object other bytes, or removes it if there are none.
func (s sharer) replace(key string, content []byte) {
	s.Helper()
	err := s.Data.Disk.Delete(s.Context(), blob.Files, key)
	if content != nil && err == nil {
		_, err = s.Data.Disk.Create(s.Context(), blob.Files, key, bytes.NewReader(content), int64(len(content)))
	}
	apitest.Must(s.TB, err)
}

// TestDamagedFileIsNeverServedAsGood damages an object in the table, files that are
// verified before the first byte, and one that is verified while it is sent.
func TestDamagedFileIsNeverServedAsGood(t *testing.T) {
	t.Parallel()
	const cutOff = 0
	for name, size := range map[string]int{"in the table": 10, "a file": 40_000, "the largest verified first": 4 << 20, "larger": 4<<20 + 1} {
		whole := 500
		if size > 4<<20 {
			whole = cutOff
		}
		content := bytes.Repeat([]byte("x"), size)
		flipped := append(bytes.Clone(content[1:]), 'y')
		for _, k := range []struct {
			damage              string
			stored              []byte
			whole, head, ranged int // the status, or cutOff
		}{
			{"a flipped byte", flipped, whole, 200, 206},
			{"a truncated file", content[1:], 500, 500, 500},
			{"a longer file", append(bytes.Clone(content), 'x'), 500, 500, 500},
			{"a missing file", nil, 500, 500, 500},
		} {
			t.Run(name+", "+k.damage, func(t *testing.T) {
				t.Parallel()
				s := begin(t)
				s.InProcess("it damages what is stored")
				link := s.share("a", string(content))
				key := s.Objects(blob.Files)[0]
				s.replace(key, k.stored)
				s.wantStatus(k.whole, "GET", link)
				s.wantStatus(k.whole, "GET", link, "If-None-Match", `"another"`)
				s.wantStatus(k.whole, "GET", link, "Range", "bytes=1-2", "If-Range", `"another"`)
				s.wantStatus(k.ranged, "GET", link, "Range", "bytes=1-2")
				s.wantStatus(k.head, "HEAD", link)
				s.replace(key, content)
				s.wantStatus(200, "GET", link)
				s.wantDownloads("damaged answers and a good one", link, 1)
			})
		}
	}
}

// wantStatus checks the status of an answer, which is 0 if it was cut off, and that the
// log has an error if the answer is one.
func (s sharer) wantStatus(want int, method, link string, headers ...string) {
	s.Helper()
	logged := len(s.Log.String())
	req, err := http.NewRequestWithContext(s.Context(), method, link, nil)
	apitest.Must(s.TB, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req) // Send takes no answer that is cut off
	apitest.Must(s.TB, err)
	defer resp.Body.Close()
	status := resp.StatusCode
	if _, err := io.Copy(io.Discard, resp.Body); errors.Is(err, io.ErrUnexpectedEOF) {
		status = 0
	}
	apitest.Equal(s.TB, fmt.Sprintf("the status of %s %v", method, headers), status, want)
	if failed := want == 0 || want == 500; failed != strings.Contains(s.Log.String()[logged:], "level=ERROR") {
		s.Errorf("%s %v: the log says %s", method, headers, s.Log.String()[logged:])
	}
	if status == 500 {
		wantLost(s.TB, resp.Header)
	}
}

// wantLost checks that an answer tells what a person can do about bytes that are lost, and
// nothing of the file.
func wantLost(t testing.TB, h http.Header) {
	t.Helper()
	id := h.Get("X-Request-Id")
	const says = "the service has lost the bytes of this file; tell its operator the request id "
	if id == "" || h.Get("Ferry-Error") != says+id || h.Get("X-Amz-Checksum-Crc64nvme") != "" {
		t.Errorf("the headers are %v", h)
	}
}

func TestDownloadStatesItsChecksumAsS3Does(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for _, content := range []string{"", "0123456789", strings.Repeat("x", 100_000)} {
		link, want := s.share("a", content), wire.CRC64Text(crc64nvme.Checksum([]byte(content)))
		s.Send("GET "+link, "").WantHeaders("X-Amz-Checksum-Crc64nvme", want)
		s.Send("HEAD "+link, "").WantHeaders("X-Amz-Checksum-Crc64nvme", want)
		if content != "" {
			s.Send("GET "+link, "", "Range", "bytes=0-1").WantHeaders("X-Amz-Checksum-Crc64nvme", want)
		}
	}
}
