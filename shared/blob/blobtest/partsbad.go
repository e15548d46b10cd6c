package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
)

// badPartsTests are of callers that do what they should not.
func badPartsTests() map[string]func(*testing.T, parts) {
	return map[string]func(*testing.T, parts){
		"of several writers of one part one wins, whole":            testManyWriters,
		"a part that is cut off is missing or as it was before":     testCutOff,
		"a part is replaced by one of other bytes until the end":    testReplaceLate,
		"a completed session takes nothing more":                    testAfterComplete,
		"a completed session keeps to its checksum":                 testRepeatSum,
		"a complete and an end at once leave the object or nothing": testCompleteAndAbort,
		"a signed request takes nothing but what it says":           testSignedIsBinding,
		"bad keys and areas are errors of every method":             testBadPlaces,
		"a context that has ended fails every method":               testContext,
		"pages of parts have bounds":                                testPageBounds,
	}
}

func testManyWriters(t *testing.T, p parts) {
	p.begin()
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = content(t, int(p.layout.PartSize))
	}
	var mu sync.Mutex
	wins := 0
	together(len(contents), func(i int) {
		sum := crc(contents[i])
		err := p.send(2, contents[i], &sum)
		if err != nil && !errors.Is(err, blob.ErrSuperseded) {
			t.Errorf("writer %d ends with %v, want success or ErrSuperseded", i, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			wins++
		}
	})
	if wins == 0 {
		t.Fatal("none wins")
	}
	for _, n := range []int{1, 3} {
		if err := p.send(n, p.part(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := p.complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	won := slices.IndexFunc(contents, func(c []byte) bool {
		copy(p.part(2), c)
		return crc(p.data) == got.CRC64NVME
	})
	if won < 0 {
		t.Fatal("the checksum is of none of the writers' bytes")
	}
	p.wantContent()
}

// wantContent checks the object's bytes.
func (p *parts) wantContent() {
	p.Helper()
	suite{T: p.T, Store: p.PartsStore}.wantContent(blob.Files, p.key, p.data)
}

// cutReader ends too soon, with an error.
type cutReader struct{ data io.Reader }

func (r cutReader) Read(b []byte) (int, error) {
	n, err := r.data.Read(b)
	if err == io.EOF {
		err = errors.New("line cut")
	}
	return n, err
}

// sendCut sends a part of which only the first bytes go out.
func (p *parts) sendCut(number int, data []byte, first int, sum *uint64) error {
	p.Helper()
	r := cutReader{bytes.NewReader(data[:first])}
	signed, err := p.SignPart(p.Context(), blob.Files, p.key, p.upload, p.layout, number, sum, time.Minute)
	if errors.Is(err, blob.ErrUnsupported) {
		_, err := p.WritePart(p.Context(), blob.Files, p.key, p.upload, p.layout, number, r, sum)
		return err
	}
	if err != nil {
		p.Fatal(err)
	}
	_, err = p.do(signed, r, p.layout.Size(number))
	return err
}

// do sends a request as it was signed.
func (p *parts) do(signed blob.SignedPart, body io.Reader, size int64) (status int, err error) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), signed.Method, signed.URL, body)
	if err != nil {
		p.Fatal(err)
	}
	req.ContentLength = size
	for name, value := range signed.Header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func testCutOff(t *testing.T, p parts) {
	p.begin()
	other := content(t, int(p.layout.PartSize))
	sum := crc(other)
	sums := []*uint64{&sum}
	if !p.truncates {
		sums = append(sums, nil)
	}
	for _, sum := range sums {
		for _, first := range []int{0, 1000, 3 << 20} {
			if err := p.sendCut(1, other, first, sum); err == nil {
				t.Errorf("a part that was cut off after %d bytes is taken", first)
			}
		}
	}
	if there, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10); err != nil || len(there) != 0 {
		t.Errorf("there are %+v, %v", there, err)
	}
	p.sendAll()
	for _, sum := range sums {
		if err := p.sendCut(1, other, 3<<20, sum); err == nil {
			t.Error("a part that was cut off is taken in the place of another")
		}
	}
	_, err := p.complete(nil)
	if _, ok := errors.AsType[*blob.MissingError](err); ok {
		p.wantNoObject()
		if err := p.send(1, p.part(1), nil); err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	p.wantWhole()
}

func testReplaceLate(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	before, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3} {
		copy(p.part(n), content(t, len(p.part(n))))
		sum := crc(p.part(n))
		if err := p.send(n, p.part(n), &sum); err != nil {
			t.Fatal(err)
		}
	}
	after, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10)
	if err != nil || len(after) != len(before) {
		t.Fatalf("there are %+v, %v; before there were %+v", after, err, before)
	}
	for i, want := range []bool{false, true, false} {
		if same := after[i] == before[i]; same != want {
			t.Errorf("part %d: before %+v, after %+v", i+1, before[i], after[i])
		}
	}
	p.wantWhole()
}

func testAfterComplete(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	p.wantWhole()
	if err := p.send(1, content(t, int(p.layout.PartSize)), nil); err == nil {
		t.Error("a part is taken")
	}
	if there, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("listing gives %+v and %v, want ErrNoUpload", there, err)
	}
	p.wantWhole()
}

func testRepeatSum(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	p.wantWhole()
	wrong := crc(p.data) ^ 1
	_, err := p.complete(&wrong)
	if sum, ok := errors.AsType[*blob.SumError](err); !ok || sum.Stated != wrong || sum.Got != crc(p.data) {
		t.Errorf("completing again with another checksum gives %v, want a *SumError that names both", err)
	}
	p.wantWhole()
}

func testCompleteAndAbort(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	var complete, abort error
	together(2, func(i int) {
		if i == 0 {
			_, complete = p.complete(nil)
		} else {
			abort = p.AbortParts(t.Context(), blob.Files, p.key, p.upload)
		}
	})
	switch {
	case abort != nil && complete != nil:
		t.Errorf("both fail: %v and %v", complete, abort)
	case complete == nil:
		p.wantContent()
	case !errors.Is(complete, blob.ErrNoUpload):
		t.Logf("completing gives %v", complete) // a store may see the session go under its hands
		fallthrough
	default:
		p.wantNoObject()
	}
}

func testSignedIsBinding(t *testing.T, p parts) {
	p.begin()
	sum := crc(p.part(2))
	signed, err := p.SignPart(t.Context(), blob.Files, p.key, p.upload, p.layout, 2, &sum, time.Minute)
	if errors.Is(err, blob.ErrUnsupported) {
		t.Skip("this store signs no requests")
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, other := p.part(2), content(t, int(p.layout.PartSize))
	bare, elsewhere := signed, signed
	bare.Header = nil
	u, err := url.Parse(signed.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("partNumber", "1")
	u.RawQuery = query.Encode()
	elsewhere.URL = u.String()
	for name, tc := range map[string]struct {
		signed blob.SignedPart
		data   []byte
	}{
		"other bytes":         {signed, other},
		"no checksum":         {bare, whole},
		"another part":        {elsewhere, whole},
		"fewer bytes":         {signed, whole[:1000]},
		"more bytes":          {signed, append(bytes.Clone(whole), 'x')},
		"another method":      {blob.SignedPart{Method: http.MethodPost, URL: signed.URL, Header: signed.Header}, whole},
		"no bytes of its own": {signed, nil},
	} {
		if status, err := p.do(tc.signed, bytes.NewReader(tc.data), int64(len(tc.data))); err == nil && status/100 != 4 {
			t.Errorf("%s: status %d, want one of 4xx", name, status)
		}
	}
	if there, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10); err != nil || len(there) != 0 {
		t.Errorf("there are %+v, %v", there, err)
	}
	if status, err := p.do(signed, bytes.NewReader(whole), int64(len(whole))); err != nil || status != http.StatusOK {
		t.Errorf("the request as it was signed: %d, %v", status, err)
	}
	for _, expires := range []time.Duration{0, -time.Minute, 8 * 24 * time.Hour} {
		if _, err := p.SignPart(t.Context(), blob.Files, p.key, p.upload, p.layout, 2, nil, expires); err == nil {
			t.Errorf("a request that expires after %s is signed", expires)
		}
	}
}

// callAllParts calls every method and returns their errors.
func (p *parts) callAllParts(ctx context.Context, area blob.Area, key string) map[string]error {
	_, begin := p.BeginParts(ctx, area, key, p.layout)
	_, write := p.WritePart(ctx, area, key, p.upload, p.layout, 1, bytes.NewReader(p.part(1)), nil)
	_, list := p.ListParts(ctx, area, key, p.upload, 0, 10)
	_, complete := p.CompleteParts(ctx, area, key, p.upload, p.layout, nil)
	return map[string]error{
		"beginning": begin, "writing": write, "listing": list, "completing": complete,
		"ending": p.AbortParts(ctx, area, key, p.upload),
	}
}

func testBadPlaces(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	type place struct {
		area blob.Area
		key  string
	}
	for _, at := range []place{{"", p.key}, {"other", p.key}, {"../files", p.key}, {blob.Files, ""}, {blob.Files, "x"}, {blob.Files, "../x"}, {blob.Files, p.key + "/x"}} {
		for name, err := range p.callAllParts(t.Context(), at.area, at.key) {
			if err == nil || errors.Is(err, blob.ErrUnsupported) || errors.Is(err, blob.ErrNoUpload) {
				t.Errorf("%s in %q %q gives %v", name, at.area, at.key, err)
			}
		}
		if _, err := p.SignPart(t.Context(), at.area, at.key, p.upload, p.layout, 1, nil, time.Minute); err == nil || errors.Is(err, blob.ErrUnsupported) {
			t.Errorf("signing in %q %q gives %v", at.area, at.key, err)
		}
	}
	p.wantWhole()
}

func testContext(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range p.callAllParts(ctx, blob.Files, p.key) {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, blob.ErrUnsupported) {
			t.Errorf("%s gives %v, want context.Canceled", name, err)
		}
	}
	p.wantWhole()
}

func testPageBounds(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	for _, page := range [][2]int{{0, 0}, {0, -1}, {0, blob.MaxList + 1}, {-1, 10}} {
		if got, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, page[0], page[1]); err == nil {
			t.Errorf("%d parts after %d give %+v", page[1], page[0], got)
		}
	}
	for _, after := range []int{3, blob.MaxParts, blob.MaxParts + 1} {
		if got, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, after, blob.MaxList); err != nil || len(got) != 0 {
			t.Errorf("after part %d come %+v, %v", after, got, err)
		}
	}
	if all, err := blob.AllParts(t.Context(), p, blob.Files, p.key, p.upload); err != nil || len(all) != 3 {
		t.Errorf("all parts are %+v, %v", all, err)
	}
}
