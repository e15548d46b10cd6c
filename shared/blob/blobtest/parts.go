package blobtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ferry/shared/blob"
)

// PartsStore is a store with sessions of parts.
type PartsStore interface {
	blob.Store
	blob.Parts
}

// Truncates says of a stand-in that it takes fewer bytes of a part than were
// signed and announced, unless they have a checksum.
type Truncates bool

// RunParts runs the suite of the port blob.Parts. A part goes through the store
// where it takes some, else by plain HTTP as the store's signed request says.
func RunParts(t *testing.T, open func(t *testing.T) PartsStore, truncates Truncates) {
	t.Helper()
	tests := map[string]func(*testing.T, parts){
		"parts in any order and at once become the object":          testAnyOrder,
		"an empty object has one empty part":                        testEmpty,
		"parts that have arrived are listed in pages":               testPages,
		"a part that is sent again replaces the first":              testReplace,
		"missing parts are named and can be sent then":              testMissing,
		"a part with another checksum is refused":                   testPartSum,
		"a whole with another checksum is refused and can be ended": testWholeSum,
		"to complete twice gives the same answer":                   testTwice,
		"two completes at once give the same answer":                testAtOnce,
		"an ended session takes nothing and is gone":                testAbort,
		"a session that is not known is told":                       testUnknown,
		"numbers and layouts out of range are refused":              testRange,
		"a part of another length is refused":                       testLength,
	}
	maps.Copy(tests, badPartsTests())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parts{T: t, PartsStore: open(t), key: "test-" + rand.Text() + "/1-" + rand.Text(), truncates: bool(truncates)}
			p.layout = blob.Layout{Length: 2*blob.MinPartSize + 1000, PartSize: blob.MinPartSize}
			p.data = content(t, int(p.layout.Length))
			test(t, p)
		})
	}
}

// parts is a store with an object that is to arrive in it.
type parts struct {
	*testing.T
	PartsStore
	key, upload string
	layout      blob.Layout
	data        []byte
	truncates   bool
}

func (p *parts) begin() {
	p.Helper()
	var err error
	if p.upload, err = p.BeginParts(p.Context(), blob.Files, p.key, p.layout); err != nil {
		p.Fatal(err)
	}
}

func (p *parts) part(number int) []byte {
	from := p.layout.Offset(number)
	return p.data[from : from+p.layout.Size(number)]
}

// send sends a part the way the store wants it.
func (p *parts) send(number int, data []byte, sum *uint64) error {
	p.Helper()
	signed, err := p.SignPart(p.Context(), blob.Files, p.key, p.upload, p.layout, number, sum, time.Minute)
	if errors.Is(err, blob.ErrUnsupported) {
		_, err := p.WritePart(p.Context(), blob.Files, p.key, p.upload, p.layout, number, bytes.NewReader(data), sum)
		return err
	}
	if err != nil {
		p.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.Context(), signed.Method, signed.URL, bytes.NewReader(data))
	if err != nil {
		p.Fatal(err)
	}
	for name, value := range signed.Header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		return fmt.Errorf("status %s: %s", resp.Status, text)
	}
	return nil
}

func (p *parts) sendAll() {
	p.Helper()
	for n := 1; n <= p.layout.Count(); n++ {
		if err := p.send(n, p.part(n), nil); err != nil {
			p.Fatalf("part %d: %v", n, err)
		}
	}
}

func (p *parts) complete(sum *uint64) (blob.Written, error) {
	return p.CompleteParts(p.Context(), blob.Files, p.key, p.upload, p.layout, sum)
}

func (p *parts) wantWhole() {
	p.Helper()
	sum := crc(p.data)
	got, err := p.complete(&sum)
	if want := (blob.Written{Size: p.layout.Length, CRC64NVME: sum}); got != want || err != nil {
		p.Fatalf("completing gives %+v and %v, want %+v", got, err, want)
	}
	r, err := p.Open(p.Context(), blob.Files, p.key)
	if err != nil {
		p.Fatal(err)
	}
	defer r.Close()
	if all, err := io.ReadAll(r); err != nil || !bytes.Equal(all, p.data) {
		p.Errorf("the object has %d bytes that are not the %d sent, or error %v", len(all), len(p.data), err)
	}
}

func (p *parts) wantNoObject() {
	p.Helper()
	r, err := p.Open(p.Context(), blob.Files, p.key)
	if err == nil {
		r.Close()
	}
	if !errors.Is(err, blob.ErrNotFound) {
		p.Errorf("opening the object gives %v, want ErrNotFound", err)
	}
}

func testAnyOrder(t *testing.T, p parts) {
	p.begin()
	p.wantNoObject()
	var wg sync.WaitGroup
	for n := p.layout.Count(); n > 0; n-- {
		wg.Go(func() {
			sum := crc(p.part(n))
			if err := p.send(n, p.part(n), &sum); err != nil {
				t.Errorf("part %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	p.wantNoObject()
	p.wantWhole()
	if err := p.AbortParts(t.Context(), blob.Files, p.key, p.upload); err != nil {
		t.Error(err)
	}
	if r, err := p.Open(t.Context(), blob.Files, p.key); err != nil {
		t.Errorf("the end of the session took the object away: %v", err)
	} else {
		r.Close()
	}
}

func testEmpty(t *testing.T, p parts) {
	p.layout, p.data = blob.Layout{PartSize: blob.MinPartSize}, nil
	p.begin()
	p.sendAll()
	p.wantWhole()
}

func testPages(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	first, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 2)
	if err != nil || len(first) != 2 || first[0].Number != 1 || first[1].Number != 2 || first[1].Size != p.layout.PartSize {
		t.Fatalf("the first page is %+v, %v", first, err)
	}
	if first[0].HasSum && first[0].Sum != crc(p.part(1)) {
		t.Errorf("part 1 has the sum %016x", first[0].Sum)
	}
	rest, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 2, 2)
	if err != nil || len(rest) != 1 || rest[0].Number != 3 || rest[0].Size != 1000 {
		t.Errorf("the second page is %+v, %v", rest, err)
	}
}

func testReplace(t *testing.T, p parts) {
	p.begin()
	if err := p.send(2, content(t, int(p.layout.PartSize)), nil); err != nil {
		t.Fatal(err)
	}
	p.sendAll()
	p.wantWhole()
}

func testMissing(t *testing.T, p parts) {
	p.begin()
	for _, want := range [][]int{{1, 2, 3}, {2, 3}, {3}} {
		_, err := p.complete(nil)
		var missing *blob.MissingError
		if !errors.As(err, &missing) || fmt.Sprint(missing.Numbers) != fmt.Sprint(want) {
			t.Fatalf("completing gives %v, want that %v are missing", err, want)
		}
		p.wantNoObject()
		if err := p.send(want[0], p.part(want[0]), nil); err != nil {
			t.Fatal(err)
		}
	}
	p.wantWhole()
}

func testPartSum(t *testing.T, p parts) {
	p.begin()
	wrong := crc(p.part(1)) + 1
	if err := p.send(1, p.part(1), &wrong); err == nil {
		t.Error("it was taken")
	}
	if there, err := p.ListParts(t.Context(), blob.Files, p.key, p.upload, 0, 10); err != nil || len(there) != 0 {
		t.Errorf("there are %+v, %v", there, err)
	}
	p.sendAll()
	p.wantWhole()
}

func testWholeSum(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	wrong := crc(p.data) ^ 1
	_, err := p.complete(&wrong)
	var sum *blob.SumError
	if !errors.As(err, &sum) || sum.Stated != wrong || sum.Got != crc(p.data) {
		t.Errorf("completing gives %v, want a *SumError that names both", err)
	}
	p.wantNoObject()
	p.wantWhole()
}

func testTwice(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	p.wantWhole()
	p.wantWhole()
	if err := p.Delete(t.Context(), blob.Files, p.key); err != nil {
		t.Fatal(err)
	}
	if got, err := p.complete(nil); !errors.Is(err, blob.ErrNoUpload) {
		t.Errorf("without its object completing gives %+v and %v, want ErrNoUpload", got, err)
	}
}

func testAtOnce(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := p.complete(nil); err != nil || got.CRC64NVME != crc(p.data) {
				t.Errorf("completing gives %+v and %v", got, err)
			}
		})
	}
	wg.Wait()
	p.wantWhole()
}

func testAbort(t *testing.T, p parts) {
	p.begin()
	p.sendAll()
	for range 2 {
		if err := p.AbortParts(t.Context(), blob.Files, p.key, p.upload); err != nil {
			t.Errorf("ending it: %v", err)
		}
	}
	p.wantEnded()
}

func testUnknown(_ *testing.T, p parts) {
	p.begin()
	ended := p.upload
	if err := p.AbortParts(p.Context(), blob.Files, p.key, ended); err != nil {
		p.Fatal(err)
	}
	p.upload = ended[:len(ended)-4] + "AAAA"
	p.wantEnded()
}

func (p *parts) wantEnded() {
	p.Helper()
	p.wantNoObject()
	if err := p.send(1, p.part(1), nil); err == nil {
		p.Error("a part was taken")
	}
	if got, err := p.ListParts(context.WithoutCancel(p.Context()), blob.Files, p.key, p.upload, 0, 10); !errors.Is(err, blob.ErrNoUpload) {
		p.Errorf("listing gives %+v and %v, want ErrNoUpload", got, err)
	}
	if got, err := p.complete(nil); !errors.Is(err, blob.ErrNoUpload) {
		p.Errorf("completing gives %+v and %v, want ErrNoUpload", got, err)
	}
}

func testRange(t *testing.T, p parts) {
	p.begin()
	for _, number := range []int{-1, 0, 4} {
		if _, err := p.SignPart(t.Context(), blob.Files, p.key, p.upload, p.layout, number, nil, time.Minute); err == nil || errors.Is(err, blob.ErrUnsupported) {
			t.Errorf("signing part %d gives %v", number, err)
		}
		if _, err := p.WritePart(t.Context(), blob.Files, p.key, p.upload, p.layout, number, strings.NewReader("x"), nil); err == nil || errors.Is(err, blob.ErrUnsupported) {
			t.Errorf("writing part %d gives %v", number, err)
		}
	}
	for _, l := range []blob.Layout{{Length: -1, PartSize: 1 << 20}, {Length: 10}, {Length: blob.MaxParts + 1, PartSize: 1}, {Length: 1, PartSize: blob.MaxPartSize + 1}} {
		if _, err := p.BeginParts(t.Context(), blob.Files, p.key, l); err == nil {
			t.Errorf("the layout %+v is taken", l)
		}
	}
}

func testLength(t *testing.T, p parts) {
	p.begin()
	for _, data := range [][]byte{p.part(1)[:100], append(bytes.Clone(p.part(1)), 'x'), nil} {
		if err := p.send(1, data, nil); err == nil && !p.truncates {
			t.Errorf("%d bytes of %d were taken", len(data), p.layout.PartSize)
		}
	}
	for n := 2; n <= p.layout.Count(); n++ {
		if err := p.send(n, p.part(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.complete(nil)
	var missing *blob.MissingError
	if !errors.As(err, &missing) {
		t.Errorf("completing gives %v, want a *MissingError", err)
	}
	p.wantNoObject()
	if err := p.send(1, p.part(1), nil); err != nil {
		t.Fatal(err)
	}
	p.wantWhole()
}
