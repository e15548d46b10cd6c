package upload_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

func TestFileArrivesInParts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(2*partSize + 1000)
	s := c.plan(`,"type":"video/mp4"`, len(data))
	if s.Parts != 3 || s.PartSize != partSize || s.State != "open" {
		t.Fatalf("the session is %+v", s)
	}
	var wg sync.WaitGroup
	for _, p := range apitest.Read[struct{ Parts []part }](c.Ask("POST "+s.path("/parts"), `{"numbers":[3,1]}`).
		Want(200)).Parts {
		wg.Go(func() {
			from := int64(p.Number-1) * partSize
			piece := data[from : from+p.Size]
			tag := c.put(p, piece).Want(200).Header.Get("ETag")
			if tag == "" || !c.InStack() && tag != `"`+hexOf(piece)+`"` {
				t.Errorf("part %d: ETag %s", p.Number, tag)
			}
		})
	}
	wg.Wait()
	c.complete(s, "").Want(400, "missing", "2")
	expect.Equal(t, "files before this one is whole", len(c.names()), 0)
	if now := c.shown(s); len(now.Arrived) != 2 ||
		now.Arrived[0].Number != 1 ||
		now.Arrived[1].Number != 3 ||
		now.Arrived[1].Size != 1000 {
		t.Errorf("the parts that have arrived are %+v", now.Arrived)
	}
	second := data[partSize : 2*partSize]
	c.put(c.sign(s, 2, fmt.Sprintf(`,"crc64nvme":{"2":%q}`, crc(second))), second).Want(200)
	c.completes(s, fmt.Sprintf(`{"crc64nvme":%q}`, crc(data)), data)
	c.completes(s, "", data) // a repeat gives the same
	expect.Equal(t, "the state", c.shown(s).State, "done")
	expect.Equal(t, "open sessions", len(c.open()), 0)
	c.Ask("DELETE "+s.path(""), "").Want(409)
	f := apitest.Read[struct{ Type, CRC64NVME string }](c.Ask("GET /files/1", "").Want(200))
	expect.Equal(t, "the file's record", f, struct{ Type, CRC64NVME string }{"video/mp4", crc(data)})
}

// crc returns a checksum as requests have it, and hexOf as errors show it.
func crc(data string) string   { return wire.CRC64Text(crc64nvme.Checksum([]byte(data))) }
func hexOf(data string) string { return fmt.Sprintf("%016x", crc64nvme.Checksum([]byte(data))) }

func TestWrongSessionRequestIsExplained(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", apitest.Password, func(u *users.User) { u.State = users.Disabled })
	path, before := c.plan("", 2*partSize+10).path, len(c.Items())
	for body, says := range map[string]string{
		"name=x": "JSON", "": "empty", `{"name":"x","length":1}{}`: "more than one JSON value",
		`{"length":1}`: "name", `{"name":"a/","length":1}`: "name",
		fmt.Sprintf(`{"name":"x","length":%d}`, blob.S3Limits().MaxLength()+1): "length",
		`{"name":"x","length":"1"}`:  "length",
		`{"name":"x","length":-1}`:   "length",
		`{"name":"x","length":null}`: "length",
	} {
		c.Ask("POST /uploads", body).Want(400, says)
	}
	for field, says := range map[string]string{
		`"size":2`: "size", `"d":"gone"`: "parameter d", `"d":"nobody"`: "parameter d",
		`"m":"nowhere"`: " m ", `"m":["a@example.com","b"]`: " m ", `"c":"12"`: " c ",
		`"m":1`: `"m" cannot be a number`, `"m":["a@example.com",1]`: `"m" cannot be a number`,
		`"i":"hello","c":""`: "parameter i needs a recipient: c or m", `"lang":"xx"`: "parameter lang must be one of en, it",
		`"sha256":"12"`: "sha256", `"partSize":5368709121`: "partSize",
		`"type":"text/a\u0000b"`: "type", `"type":"text/a\rb"`: "type", `"type":"text/caf\u00e9"`: "type",
	} {
		c.Ask("POST /uploads", `{"name":"x","length":1,`+field+`}`).Want(400, says)
	}
	for body, says := range map[string]string{
		`{"numbers":[1` + strings.Repeat(",1", 100) + `]}`: "1 to 100", `{"numbers":[]}`: "1 to 100",
		`{"numbers":[0]}`: "1 to 3", `{"numbers":[4]}`: "1 to 3", `{"numbers":[1,1]}`: "once",
		`{"numbers":[1],"crc64nvme":{"1":"xx"}}`: "8 bytes", `{"numbers":[1],"length":7}`: "length",
		`{"numbers":[1],"crc64nvme":{"2":"AAAAAAAAAAA="}}`:  "not in numbers",
		`{"numbers":[1],"crc64nvme":{"01":"AAAAAAAAAAA="}}`: "not in numbers",
	} {
		c.Ask("POST "+path("/parts"), body).Want(400, says)
	}
	c.Ask("POST /uploads", `{"name":"`+strings.Repeat("x", 64<<10)+`","length":1}`).Want(413)
	c.Ask("POST "+path("/complete"), `{"length":7}`).Want(400, "length")
	c.Ask("POST "+path("/complete"), "").Want(400, "missing, beginning with 1, 2, 3")
	c.Ask("GET /uploads/1-unknown", "").Want(404, "no upload session")
	c.Ask("GET /uploads?limit=0", "").Want(400, "limit")
	expect.Equal(t, "items", len(c.Items()), before)
}

func TestWrongPartIsExplainedAndStaysMissing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("parts go to the store, which has its own answers")
	data, other := content(1000), content(1000)
	s := c.plan("", len(data))
	good, summed := c.sign(s, 1), c.sign(s, 1, fmt.Sprintf(`,"crc64nvme":{"1":%q}`, crc(other)))
	alter := func(p part, from, to string) part {
		p.URL = strings.Replace(p.URL, from, to, 1)
		return p
	}
	for _, tc := range map[string]struct {
		part   part
		data   string
		status int
		words  []string
	}{
		"too short":        {part: good, data: data[:999], status: 400, words: []string{"1000 bytes"}},
		"too long":         {part: good, data: data + "x", status: 400, words: []string{"1000 bytes"}},
		"another checksum": {part: summed, data: data, status: 400, words: []string{hexOf(data), hexOf(other)}},
		"another number":   {part: alter(good, "/parts/1?", "/parts/2?"), data: data, status: 403},
		"another session":  {part: alter(good, s.ID, "1-x"), data: data, status: 403},
		"a later expiry":   {part: alter(good, "?e=", "?e=9"), data: data, status: 403},
		"no signature":     {part: alter(good, "&s=", "&x="), data: data, status: 403},
		"a missing header": {part: part{Method: "PUT", URL: summed.URL}, data: data, status: 403},
		"an extra header": {
			part: part{
				Method:  "PUT",
				URL:     good.URL,
				Headers: map[string]string{"X-Amz-Checksum-Crc64nvme": crc(other)},
			},
			data:   data,
			status: 403,
		},
	} {
		c.put(tc.part, tc.data).Want(tc.status, tc.words...)
		c.complete(s, "").Want(400, "missing, beginning with 1")
	}
	c.Clock.Advance(16 * time.Minute)
	c.put(good, data).Want(403)
}

func TestWrongChecksumOfTheWholeStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(1000)
	s := c.sent("", data)
	c.complete(s, `{"crc64nvme":"AAAAAAAAAAA="}`).Want(400, hexOf(data), "0000000000000000")
	c.completes(s, "", data) // the session is unchanged

	s = c.sent(fmt.Sprintf(`,"sha256":"%x"`, sha256.Sum256([]byte(data))), data)
	link := c.complete(s, "").Want(200).File().LinkURL
	c.Send("HEAD "+link, "").WantHeaders("Repr-Digest", digestOf(data))
}

func TestEndedSessionIsGone(t *testing.T) {
	t.Parallel()
	c := begin(t)
	s := c.plan("", 5)
	p := c.sign(s, 1)
	c.Ask("DELETE "+s.path(""), "").Want(204)
	c.notFound(s.ID)
	c.put(p, "hello").Want(404)
	c.wantCounts(map[string]int{"upload": 0})
}

func TestSessionsAreListedInPagesNewestFirst(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for n := range 5 {
		c.plan("", n+1)
		c.Clock.Advance(time.Second)
	}
	var got []int64
	for path := "/uploads?limit=2"; path != ""; {
		a := c.Ask("GET "+path, "").Want(200)
		for _, s := range apitest.Read[struct{ Uploads []session }](a).Uploads {
			got = append(got, s.Length)
		}
		path, _, _ = strings.Cut(strings.TrimPrefix(a.Header.Get("Link"), "<"), ">")
	}
	expect.Equal(t, "the lengths", got, []int64{5, 4, 3, 2, 1})
}

func TestDestinationUserSeesAndEndsSessions(t *testing.T) {
	t.Parallel()
	c, eve := beginForEve(t, 10_000)
	own, s := c.plan("", 5), c.plan(`,"d":"eve"`, 9_000)
	if seen := eve.shown(s); seen.From != "ann" || seen.D != "" || s.From != "" || s.D != "eve" {
		t.Errorf("the destination sees %+v, the uploader %+v", seen, s)
	}
	expect.Equal(t, "what the destination sees", eve.open(), []string{s.ID})
	eve.complete(s, "").Want(404)
	eve.Ask("POST "+s.path("/parts"), `{"numbers":[1]}`).Want(404)
	c.as("bob").notFound(s.ID)
	eve.Ask("POST /uploads", `{"name":"x","length":2000}`).Want(413, "1000 bytes are left")
	eve.Ask("DELETE "+s.path(""), "").Want(204)
	eve.plan("", 10_000)
	expect.Equal(t, "what the uploader sees", c.open(), []string{own.ID})
	c.complete(s, "").Want(404)

	c.completes(c.sent(`,"d":"bob"`, "text"), "", "text")
	expect.Equal(t, "bob's files", len(c.as("bob").names()), 1)
	expect.Equal(t, "sessions after the completion", append(c.as("bob").open(), c.open()...), []string{own.ID})
}

func TestRepeatedBeginReturnsTheFirstSession(t *testing.T) {
	t.Parallel()
	c := begin(t)
	const body = `{"name":"x","length":7}`
	first := c.begins(body, "Idempotency-Key", "k-1")
	expect.Equal(t, "the repeat", c.begins(body, "Idempotency-Key", "k-1").ID, first.ID)
	c.Ask("POST /uploads", `{"name":"x","length":8}`, "Idempotency-Key", "k-1").Want(409)
	c.sendAll(first, "content")
	c.complete(first, "").Want(200)
	c.begins(body, "Idempotency-Key", "k-1")
	c.Ask("DELETE /files/1", "").Want(200)
	c.complete(first, "").Want(410)
	c.Ask("POST /uploads", body, "Idempotency-Key", "k-1").Want(410, "file 1 has been deleted")
}

// TestCrashBetweenObjectAndRecordLosesNothing completes the session again after a crash. The
// sweep keeps the object until then.
func TestCrashBetweenObjectAndRecordLosesNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	s := c.sent("", "content")
	c.Calls.Before("table.Write", func() error { return io.ErrUnexpectedEOF })
	c.complete(s, "").Want(500)
	c.Calls.Before("table.Write", nil)
	expect.Equal(t, "objects", len(c.Objects(blob.Files)), 1)
	c.Clock.Advance(5 * time.Hour)
	_, err := c.Service.Sweep(t.Context())
	expect.NoErr(t, err)
	c.as("ann").completes(s, "", "content")
}

// stream sends data in a session without a length, and states its length with the last part.
func (c caller) stream(s session, data string) {
	c.Helper()
	for n := 1; n == 1 || len(data) > int(s.PartSize)*(n-1); n++ {
		part, length := data[int(s.PartSize)*(n-1):], fmt.Sprintf(`,"length":%d`, len(data))
		if len(part) >= int(s.PartSize) {
			part, length = part[:s.PartSize], ""
		}
		c.put(c.sign(s, n, length), part).Want(200)
	}
}

func TestLengthCanBeStatedAtTheEnd(t *testing.T) {
	t.Parallel()
	for what, length := range map[string]int{
		"empty":    0,
		"short":    1000,
		"one part": partSize,
		"three":    2*partSize + 1000,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, _ := beginForEve(t, 3*partSize)
			usual, s := c.begins(`{"name":"x"}`), c.begins(fmt.Sprintf(`{"name":"x","d":"eve","partSize":%d}`,
				partSize))
			if usual.PartSize != 64<<20 || usual.Parts != 0 || s.PartSize != partSize {
				t.Errorf("the sessions are %+v and %+v", usual, s)
			}
			data := content(length)
			c.stream(s, data)
			c.complete(s, "").Want(400, "length is missing")
			c.complete(s, fmt.Sprintf(`{"length":%d}`, length+1)).Want(400, "missing")
			if length > partSize {
				c.complete(s, fmt.Sprintf(`{"length":%d}`, partSize)).Want(400, "more parts")
			}
			for range 2 {
				c.completes(s, fmt.Sprintf(`{"length":%d,"crc64nvme":%q}`, length, crc(data)), data)
			}
			c.wantUsed("eve", int64(length))
		})
	}
}

// TestPartReplacedByAShorterLastOne sends the last part with the full size first.
func TestPartReplacedByAShorterLastOne(t *testing.T) {
	t.Parallel()
	c := begin(t)
	s := c.begins(fmt.Sprintf(`{"name":"x","partSize":%d}`, partSize))
	c.stream(s, content(2*partSize))
	data := content(partSize + 7)
	c.stream(s, data)
	c.completes(s, fmt.Sprintf(`{"length":%d}`, len(data)), data)
}

// TestListedOriginsMaySendParts sends a browser's preflight and then the part.
func TestListedOriginsMaySendParts(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	c := begin(t, func(_ *service.Settings, o *local.ServiceOptions) { o.Origins = envelope.Origins{app} })
	url := c.sign(c.plan("", 3), 1).URL
	for origin, want := range map[string]string{app: app, "https://evil.example.com": ""} {
		c.Send("OPTIONS "+url, "", "Origin", origin, "Access-Control-Request-Method", "PUT").
			WantHeaders("Access-Control-Allow-Origin", want)
		a := c.Send("PUT "+url, "abc", "Origin", origin)
		exposed := strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "ETag")
		if ok := a.Code == 200 && a.Header.Get("ETag") != ""; ok != (want != "") || exposed != ok {
			t.Errorf("a part from %s: status %d, %v", origin, a.Code, a.Header)
		}
	}
}
