package file

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// partHeader is roughly how many bytes each part of an answer with several ranges adds to its
// content.
const partHeader = 256

// inBytes corrects where http.ServeContent departs from RFC 9110 (section 14): a range in a unit
// other than bytes must be ignored, not refused; a range that begins at the file's end, such as its
// last 0 bytes, must be refused; and a 206 cannot carry part of an empty file. atEnd reports
// whether one of the ranges includes the file's last byte.
func inBytes(r *http.Request, length int64) (mended *http.Request, atEnd bool) {
	set, bytes := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if set == "" {
		return r, false
	}
	r = r.Clone(r.Context())
	spans := spansOf(set, length)
	if !bytes || length == 0 && len(spans) > 0 {
		r.Header.Del("Range")
		return r, false
	}
	var texts []string
	for _, one := range spans {
		texts = append(texts, fmt.Sprintf("%d-%d", one.from, one.to-1))
		atEnd = atEnd || one.to == length
	}
	if texts == nil {
		texts = []string{"-"} // which is refused
	}
	r.Header.Set("Range", "bytes="+strings.Join(texts, ","))
	return r, atEnd
}

// span is a range of a file; the byte at to is not part of it.
type span struct{ from, to int64 }

// spansOf reads a set of byte ranges, and returns those that a file of this length can satisfy;
// none if the set is malformed. An empty file satisfies a range that begins at 0, because that is
// how clients ask for the whole of any file.
func spansOf(set string, length int64) (all []span) {
	for one := range strings.SplitSeq(set, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(one), "-")
		if first == "" && !isRange {
			continue
		}
		s, ok := spanOf(strings.TrimSpace(first), strings.TrimSpace(last), length)
		if !ok || !isRange {
			return nil
		}
		if s.from < max(length, 1) {
			all = append(all, s)
		}
	}
	return all
}

// spanOf reads the range between two positions, either of which may be left out. The range may be
// outside the file.
func spanOf(first, last string, length int64) (s span, ok bool) {
	if first == "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if n == 0 {
			return span{length + 1, length}, err == nil
		}
		return span{max(0, length-int64(n)), length}, err == nil
	}
	from, err := strconv.ParseUint(first, 10, 63)
	if last == "" {
		return span{int64(from), length}, err == nil
	}
	to, wrong := strconv.ParseUint(last, 10, 63)
	return span{int64(from), min(int64(to), length-1) + 1}, err == nil &&
		wrong == nil &&
		from <= to
}

// rangeBytes returns the most bytes that a GET for ranges of a file can get.
func rangeBytes(asked string, length int64) int64 {
	set, bytes := strings.CutPrefix(asked, "bytes=")
	spans := spansOf(set, length)
	switch {
	case !bytes || len(spans) == 0:
		return length
	case len(spans) > 1:
		return length + int64(len(spans))*partHeader
	}
	return spans[0].to - spans[0].from
}
