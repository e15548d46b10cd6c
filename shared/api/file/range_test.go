package file_test

import (
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/boot/expect"
)

// content returns a text larger than a small file; its bytes depend on their position.
func content() string {
	var b strings.Builder
	for b.Len() < 40_000 {
		b.WriteString(strings.Repeat(string(rune('a'+b.Len()%26)), 7))
	}
	return b.String()
}

// TestRangesAndConditionsAreHonored has the status, and between which positions the bytes are.
func TestRangesAndConditionsAreHonored(t *testing.T) {
	t.Parallel()
	const table = `
		206 | 0 3      | the first bytes                              | Range: bytes=0-2
		206 | 3 7      | the middle                                   | Range: bytes=3-6
		206 | 4 END    | the rest                                     | Range: bytes=4-
		206 | LAST END | the last bytes                               | Range: bytes=-3
		206 | 5 END    | more than the file has                       | Range: bytes=5-999999
		206 | 0 END    | everything as a range                        | Range: bytes=0-
		206 | 1 3      | a range if the file is the same              | Range: bytes=1-2 | If-Range: ETAG
		206 | 1 3      | a range if the file is not newer             | Range: bytes=1-2 | If-Range: MODIFIED
		200 | 0 END    | everything because the file differs          | Range: bytes=1-2 | If-Range: "another"
		200 | 0 END    | everything because the file is newer         | Range: bytes=1-2 | If-Range: Mon, 02 Jan 2006 15:04:05 GMT
		200 | 0 END    | everything unless it is another file         | If-None-Match: "another"
		200 | 0 END    | everything if it was modified                | If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT
		200 | 0 END    | everything if it is the same                 | If-Match: ETAG
		200 | 0 END    | everything unless it is one of two others    | If-None-Match: "another", "third"
		200 | 0 END    | everything for a range in another unit       | Range: lines=1-2
		416 | 0 0      | an error for a range beyond the end          | Range: bytes=999999-
		416 | 0 0      | an error for the last 0 bytes                | Range: bytes=-0
		416 | 0 0      | an error for the last 0 bytes, twice         | Range: bytes=-00 ,TAB- 0
		206 | 1 3      | one range beside the last 0 bytes            | Range: bytes=-0, 1-2
		416 | 0 0      | an error for a backward range                | Range: bytes=5-2
		304 | 0 0      | nothing because it is the same               | If-None-Match: ETAG
		304 | 0 0      | nothing because it is weakly the same        | If-None-Match: W/ETAG
		304 | 0 0      | nothing because it is one of two             | If-None-Match: "another", ETAG
		304 | 0 0      | nothing because any file matches             | If-None-Match: *
		304 | 0 0      | nothing because it was not modified          | If-Modified-Since: MODIFIED
		304 | 0 0      | nothing instead of a range                   | If-None-Match: ETAG | Range: bytes=0-1
		412 | 0 0      | an error because it is not the expected file | If-Match: "another"`
	for size, all := range map[string]string{"a small file": "0123456789", "a larger file": content()} {
		s := begin(t)
		link := s.share("a.txt", all)
		full := s.Send("GET "+link, "").Want(200)
		etag, modified := full.Header.Get("ETag"), full.Header.Get("Last-Modified")
		if full.Text != all || len(etag) < 10 || strings.HasPrefix(etag, "W/") || modified == "" {
			t.Fatalf("%s: the ETag is %q, Last-Modified %q", size, etag, modified)
		}
		known := strings.NewReplacer(
			"ETAG",
			etag,
			"MODIFIED",
			modified,
			"TAB",
			"\t",
			"LAST",
			strconv.Itoa(len(all)-3),
			"END",
			strconv.Itoa(len(all)),
		)
		for _, cells := range rowsOf(known.Replace(table)) {
			var status, from, to int
			fmt.Sscan(cells[0]+" "+cells[1], &status, &from, &to)
			a := s.Send("GET "+link, "", headersOf(cells[3:])...).Want(status)
			if status < 300 && a.Text != all[from:to] || status == 304 && a.Text != "" {
				t.Errorf("%s, %s: the %d bytes are not those from %d to %d", size, cells[2], len(a.Text), from, to)
			}
			if status < 400 {
				a.WantHeaders("ETag", etag)
			}
			if status == 416 {
				a.WantHeaders("Content-Range", fmt.Sprint("bytes */", len(all)), "Ferry-Error",
					fmt.Sprintf("the range cannot be read, or lies outside the file, which has %d bytes", len(all)))
			}
		}
	}
}

// TestARangeOfNothing: the last bytes of an empty file are there, but no 206 can say so.
func TestARangeOfNothing(t *testing.T) {
	t.Parallel()
	s := begin(t)
	links := map[string]string{
		"a file": s.share(
			"empty",
			"",
		), "an entry": s.bundle("", pack(t, "a", "", "b", "x")).Want(200).File().LinkURL + "&entry=a",
	}
	for what, link := range links {
		for asked, want := range map[string]int{
			"bytes=-5": 200, "bytes=-1,-2": 200, "bytes=5-,-5": 200, "bytes=0-": 200, "bytes=0-4": 200, "lines=5-": 200,
			"bytes=5-": 416, "bytes=1-2": 416, "bytes=-0": 416, "bytes=5-2": 416, "bytes=x": 416,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				a := s.Send(method+" "+link, "", "Range", asked)
				stated := map[int]string{200: "", 416: "bytes */0"}[want]
				if a.Code != want || a.Header.Get("Content-Range") != stated || want == 200 && a.Text != "" {
					t.Errorf("%s, %s %s: status %d, %v", what, method, asked, a.Code, a.Header)
				}
			}
		}
	}
}

func TestSeveralRangesAreSentTogether(t *testing.T) {
	t.Parallel()
	s := begin(t)
	a := s.Send("GET "+s.share("a.txt", "0123456789", "Content-Type", "text/plain"), "", "Range", "bytes=0-1,4-5,-1").
		Want(206)
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind != "multipart/byteranges" || err != nil {
		t.Fatalf("the type is %q, %v", kind, err)
	}
	want := "--B\r\nContent-Range: bytes 0-1/10\r\nContent-Type: text/plain\r\n\r\n01\r\n" +
		"--B\r\nContent-Range: bytes 4-5/10\r\nContent-Type: text/plain\r\n\r\n45\r\n" +
		"--B\r\nContent-Range: bytes 9-9/10\r\nContent-Type: text/plain\r\n\r\n9\r\n--B--\r\n"
	expect.Equal(t, "the parts", strings.ReplaceAll(a.Text, params["boundary"], "B"), want)
}

func TestHEADHasTheHeadersOfGET(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for name, text := range map[string]string{"empty": "", "small": "0123456789", "large": content()} {
		link := s.share(name, text, "Content-Type", "text/plain")
		for _, headers := range [][]string{
			nil,
			{"Accept", "text/html", "Sec-Fetch-Mode", "navigate"},
			{"Accept", "application/json"},
			{"Range", "bytes=1-2"},
			{"If-None-Match", "*"},
		} {
			get := s.Send("GET "+link, "", headers...)
			head := s.Send("HEAD "+link, "", headers...).Want(get.Code)
			for field := range get.Header {
				if field == "X-Request-Id" || field == "Date" {
					continue
				}
				if field == "Content-Length" && !strings.HasPrefix(get.Header.Get("Content-Type"), "text/plain") {
					continue // an envelope says how long it took, and with a page the length may be left out
				}
				head.WantHeaders(field, get.Header.Get(field))
			}
			expect.Equal(t, "the body of HEAD", head.Text, "")
		}
	}
}

func FuzzARangeGetsItsBytes(f *testing.F) {
	s := begin(f)
	s.InProcess("it calls the handler")
	const all = "0123456789abcdefghijklmnopqrstuvwxyz"
	link := s.share("a.txt", all)
	for _, r := range []string{
		"bytes=0-", "bytes=-0", "bytes= - 0", "bytes=- \r\r\r0", "bytes=-00, 3-4", "bytes=-36", "bytes=-99",
		"bytes=36-", "bytes=35-35", "bytes=2-1", "bytes=1-2,4-5", "lines=1-2", "bytes=", "bytes=-",
		"bytes=99999999999999999999-",
	} {
		f.Add(r)
	}
	handler := s.HTTP.Config.Handler
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest("GET", link, nil)
		r.Header.Set("Range", header)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		got, stated := w.Body.String(), w.Header().Get("Content-Range")
		if most := file.RangeBytes(header, int64(len(all))); w.Code < 300 && int64(len(got)) > most {
			t.Errorf("%q gets %d bytes, more than %d", header, len(got), most)
		}
		switch w.Code {
		case http.StatusOK:
			if got != all || stated != "" {
				t.Errorf("%q gets %q, %q", header, stated, got)
			}
		case http.StatusPartialContent:
			var first, last int
			_, err := fmt.Sscanf(stated, "bytes %d-%d/36", &first, &last)
			one := err == nil &&
				stated == fmt.Sprintf("bytes %d-%d/36", first, last) &&
				first <= last &&
				last < len(all) &&
				got == all[first:last+1]
			several := stated == "" && strings.HasPrefix(w.Header().Get("Content-Type"), "multipart/byteranges")
			if !one && !several {
				t.Errorf("%q gets %q, %q", header, stated, got)
			}
		case http.StatusRequestedRangeNotSatisfiable:
			expect.Equal(t, header, stated, "bytes */36")
		default:
			t.Errorf("%q gets %d", header, w.Code)
		}
	})
}
