package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing/iotest"
	"time"

	"ferry/shared/blob"
)

// whole is the object of three parts that most cases send.
func whole() data { return data{2*blob.MinPartSize + 1000, 1} }

// session is the upload of the object files/p.
type session struct {
	id      string
	upload  blob.Upload
	layout  blob.Layout
	content []byte
}

func (s *session) part(number int) []byte {
	from := s.layout.Offset(number)
	return s.content[from : from+s.layout.Size(number)]
}

func partsCases() []testCase {
	object, none := objects{"files/p": whole()}, objects{}
	missing := func(numbers ...int) error { return &blob.MissingError{Numbers: numbers} }
	sum := crc(whole().bytes())
	wrong := sum ^ 1
	wrongSum := &blob.SumError{Got: sum, Stated: wrong}
	begun, sent := begin(whole()), inTurn(begin(whole()), sendAll)
	completed := inTurn(sent, complete)
	return []testCase{
		{
			"parts sent at once, in any order, become the object",
			nil,
			inTurn(begun, sendAtOnce, complete),
			nil,
			object,
		},
		{
			"an empty object has one empty part",
			nil,
			inTurn(begin(data{}), send(1), complete),
			nil,
			objects{"files/p": {}},
		},
		{"there is no object until its parts are completed", nil, sent, nil, none},
		{"the error names missing parts, which can still be sent", nil,
			inTurn(
				begun, fails(
					complete,
					missing(1, 2, 3),
				), send(1), fails(complete, missing(2, 3)), send(2),
				fails(complete, missing(3)), send(3), complete,
			), nil, object},
		{"a part with a wrong checksum is refused and can be sent again", nil,
			inTurn(
				begun,
				fails(sendWithWrongSum, errAny),
				wantParts(0),
				sendAll,
				complete,
			), nil, object},
		{"a part of a wrong length is refused and can be sent again", nil,
			inTurn(
				begun,
				sendWrongLengths,
				send(2),
				send(3),
				fails(complete, missing(1)),
				send(1),
				complete,
			), nil, object},
		{"parts can be completed with the right checksum after a wrong one", nil,
			inTurn(sent, fails(completeAs(&wrong), wrongSum), completeAs(&sum)), nil, object},
		{
			"completing again still checks the checksum",
			nil,
			inTurn(completed, completeAs(&wrong)),
			wrongSum,
			object,
		},
		{"completing many times at once returns the same answer", nil,
			inTurn(sent, completeAtOnce, complete, completeAs(&sum)), nil, object},
		{"completing again after the object was deleted is ErrNoUpload", nil,
			inTurn(completed, remove("files/p"), complete), blob.ErrNoUpload, none},
		{
			"aborting a completed session leaves the object",
			nil,
			inTurn(completed, abort),
			nil,
			object,
		},
		{"a completed session accepts nothing more", nil,
			inTurn(
				completed,
				fails(sendOther(1), errAny),
				fails(wantParts(3), blob.ErrNoUpload),
				complete,
			), nil, object},
		{
			"an aborted session is gone and accepts nothing",
			nil,
			inTurn(sent, abort, abort, isGone),
			nil,
			none,
		},
		{
			"parts that have arrived are listed", nil, inTurn(sent, listParts, complete), nil,
			object,
		},
		{
			"a replaced part is listed as another one",
			nil,
			inTurn(sent, replaceLate, complete),
			nil,
			object,
		},
		{
			"one of several writers of a part wins, whole",
			nil,
			inTurn(begun, manyWriters),
			nil,
			nil,
		},
		{
			"a part that is cut off is missing or unchanged",
			nil,
			inTurn(begun, cutOff, complete),
			nil,
			object,
		},
		{
			"completing and aborting at once leaves the object or nothing",
			nil,
			inTurn(sent, completeAndAbort),
			nil,
			nil,
		},
		{
			"numbers, layouts and pages out of range are errors",
			nil,
			inTurn(begun, outOfRange),
			nil,
			none,
		},
	}
}

func begin(d data) action {
	return func(s *state) error {
		area, key := s.at("files/p")
		layout := blob.Layout{Length: int64(d.size), PartSize: blob.MinPartSize}
		id, err := s.Begin(s.Context(), area, key, layout)
		s.session = session{id, s.Upload(area, key, id, layout), layout, d.bytes()}
		return err
	}
}

// sendBytes sends a part the way the store wants it. announced is the length that
// the request states.
func (s *state) sendBytes(number int, r io.Reader, announced int64, sum *uint64) error {
	signed, err := s.upload.Sign(s.Context(), number, sum, time.Minute)
	if errors.Is(err, blob.ErrUnsupported) {
		_, err := s.upload.Write(s.Context(), number, r, sum)
		return err
	}
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(s.Context(), signed.Method, signed.URL, r)
	if err != nil {
		return err
	}
	if req.ContentLength = announced; announced == 0 {
		req.Body = http.NoBody
	}
	for name, value := range signed.Header {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", res.StatusCode)
	}
	return err
}

func (s *state) send(number int, content []byte, sum *uint64) error {
	return s.sendBytes(number, bytes.NewReader(content), int64(len(content)), sum)
}

func send(number int) action {
	return func(s *state) error { return s.send(number, s.part(number), nil) }
}

// other returns other bytes of the length that most parts have.
func other(tag int) []byte { return data{blob.MinPartSize, tag}.bytes() }

func sendOther(number int) action {
	return func(s *state) error { return s.send(number, other(2), nil) }
}

func sendAll(s *state) error {
	for n := 1; n <= s.layout.Count(); n++ {
		s.must(send(n)(s))
	}
	return nil
}

func sendAtOnce(s *state) error {
	together(3, func(i int) {
		sum := crc(s.part(3 - i))
		s.wantErr("a part", s.send(3-i, s.part(3-i), &sum), nil)
	})
	return nil
}

func sendWithWrongSum(s *state) error {
	wrong := crc(s.part(1)) + 1
	return s.send(1, s.part(1), &wrong)
}

func sendWrongLengths(s *state) error {
	part := s.part(1)
	for _, content := range [][]byte{part[:100], append(bytes.Clone(part), 'x'), nil} {
		if err := s.send(1, content, nil); err == nil && !s.flaws.Truncates {
			s.Errorf("%d bytes of %d were accepted", len(content), len(part))
		}
	}
	return nil
}

func complete(s *state) error { return completeAs(nil)(s) }

// completeAs states a checksum and checks the answer.
func completeAs(sum *uint64) action {
	return func(s *state) error {
		got, err := s.upload.Complete(s.Context(), sum)
		want := blob.Written{Size: s.layout.Length, CRC64NVME: crc(s.content)}
		if err == nil && got != want {
			s.Errorf("completing returned %+v, want %+v", got, want)
		}
		return err
	}
}

func completeAtOnce(s *state) error {
	together(4, func(int) { s.wantErr("completing", complete(s), nil) })
	return nil
}

func abort(s *state) error { return s.upload.Abort(s.Context()) }

func isGone(s *state) error {
	return inTurn(
		fails(send(1), errAny),
		fails(wantParts(0), blob.ErrNoUpload),
		fails(complete, blob.ErrNoUpload),
	)(s)
}

func wantParts(n int) action {
	return func(s *state) error {
		there, err := s.upload.List(s.Context())
		if err == nil && len(there) != n {
			s.Errorf("there are %+v, want %d", there, n)
		}
		return err
	}
}

func listParts(s *state) error {
	there, err := s.upload.List(s.Context())
	if len(there) != 3 {
		s.Errorf("there are %+v", there)
	}
	for i, p := range there {
		part := s.part(p.Number)
		if p.Number != 1+i || p.Size != int64(len(part)) || p.HasSum && p.Sum != crc(part) {
			s.Errorf("part %d is %+v", 1+i, p)
		}
	}
	return err
}

// replaceLate sends other bytes for two parts, and then the right ones again.
func replaceLate(s *state) error {
	before, err := s.upload.List(s.Context())
	s.must(err)
	for _, n := range []int{1, 3} {
		s.must(s.send(n, other(2)[:len(s.part(n))], nil))
	}
	after, err := s.upload.List(s.Context())
	s.must(err)
	for i, same := range []bool{false, true, false} {
		if len(after) != 3 || (after[i] == before[i]) != same {
			s.Fatalf("before there are %+v, after %+v", before, after)
		}
	}
	return inTurn(send(1), send(3))(s)
}

// manyWriters checks the bytes itself, as any of the writers may win.
func manyWriters(s *state) error {
	var errs [4]error
	together(4, func(i int) {
		sum := crc(other(i))
		if errs[i] = s.send(2, other(i), &sum); errs[i] != nil {
			s.wantErr("a writer", errs[i], blob.ErrSuperseded)
		}
	})
	if !slices.Contains(errs[:], nil) {
		s.Fatal("no writer wins")
	}
	s.must(inTurn(send(1), send(3))(s))
	got, err := s.upload.Complete(s.Context(), nil)
	s.must(err)
	content, err := io.ReadAll(s.reader("files/p"))
	won := slices.IndexFunc([]int{0, 1, 2, 3}, func(i int) bool {
		copy(s.part(2), other(i))
		return bytes.Equal(content, s.content)
	})
	if won < 0 || err != nil {
		s.Errorf("the object is of the writer %d, or error %v", won, err)
	}
	if got.CRC64NVME != crc(content) && !s.flaws.MixesSums {
		s.Errorf("the object of the writer %d has the checksum of another", won)
	}
	return remove("files/p")(s)
}

// cutOff sends only the first bytes of a part, before and after all of it has
// arrived.
func cutOff(s *state) error {
	var sum *uint64
	if s.flaws.Truncates {
		sum = new(crc(other(2)))
	}
	for _, there := range []int{0, 3} {
		for _, first := range []int{0, 1000, 3 * mib} {
			r := io.MultiReader(bytes.NewReader(other(2)[:first]), iotest.ErrReader(errCut))
			s.wantErr(
				"a part that is cut off",
				s.sendBytes(1, r, blob.MinPartSize, sum),
				errAny,
			)
		}
		if there == 0 {
			s.must(wantParts(0)(s))
			s.must(sendAll(s))
		}
	}
	if _, ok := errors.AsType[*blob.MissingError](complete(s)); ok {
		s.must(send(1)(s))
	}
	return nil
}

func completeAndAbort(s *state) error {
	var errs [2]error
	together(2, func(i int) { errs[i] = []action{complete, abort}[i](s) })
	if errs[0] == nil {
		s.want = objects{"files/p": whole()}
	} else if errs[1] != nil {
		s.Errorf("both fail: %v", errs)
	}
	return nil
}

// outOfRange shows that a store calls blob's checks, whose rules are tested beside them.
func outOfRange(s *state) error {
	area, key := s.at("files/p")
	_, begin := s.Begin(s.Context(), area, key, blob.Layout{Length: -2, PartSize: mib})
	_, sign := s.upload.Sign(s.Context(), 4, nil, time.Minute)
	_, write := s.upload.Write(s.Context(), 4, strings.NewReader("x"), nil)
	_, list := s.List(s.Context(), area, "", blob.MaxList+1)
	for method, err := range map[string]error{"Begin": begin, "Sign": sign, "Write": write, "List": list} {
		s.wantErr(method, err, errInvalid)
	}
	return nil
}
