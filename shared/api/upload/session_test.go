package upload_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/local"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/wire"
)

func TestFileArrivesInParts(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(t, 2*partSize+1000)
	s := c.plan(`,"type":"video/mp4"`, len(data))
	if s.Parts != 3 || s.PartSize != partSize || s.State != "open" {
		t.Fatalf("the session is %+v", s)
	}
	var wg sync.WaitGroup
	for _, p := range c.sign(s.ID, `{"numbers":[3,1]}`) {
		wg.Go(func() {
			from := int64(p.Number-1) * partSize
			resp := c.put(p, data[from:from+p.Size])
			sum := crc64nvme.Checksum(data[from : from+p.Size])
			if tag := resp.Header.Get("ETag"); resp.StatusCode != 200 || tag == "" || !c.InStack() && tag != fmt.Sprintf(`"%016x"`, sum) {
				t.Errorf("part %d: status %d, ETag %s", p.Number, resp.StatusCode, resp.Header.Get("ETag"))
			}
		})
	}
	wg.Wait()
	c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "missing", "2")
	if got := c.names(); len(got) != 0 {
		t.Errorf("before the file is whole, %q are listed", got)
	}
	var now session
	c.call("GET", "/uploads/"+s.ID, "", 200, &now)
	if len(now.Arrived) != 2 || now.Arrived[0].Number != 1 || now.Arrived[1].Number != 3 || now.Arrived[1].Size != 1000 {
		t.Errorf("the parts that have arrived are %+v", now.Arrived)
	}
	second := data[partSize : 2*partSize]
	sum := wire.CRC64Text(crc64nvme.Checksum(second))
	p := c.sign(s.ID, fmt.Sprintf(`{"numbers":[2],"crc64nvme":{"2":%q}}`, sum))[0]
	c.wantPut(p, second, 200)
	whole := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(crc64nvme.Checksum(data)))
	c.wantFile(c.complete(s.ID, whole), data)
	c.wantFile(c.complete(s.ID, ""), data) // a repeat gives the same
	c.call("GET", "/uploads/"+s.ID, "", 200, &now)
	var list struct{ Uploads []session }
	c.call("GET", "/uploads", "", 200, &list)
	if now.State != "done" || len(list.Uploads) != 0 {
		t.Errorf("the completed session is %s, the open ones are %+v", now.State, list.Uploads)
	}
	c.refused("DELETE", "/uploads/"+s.ID, "", 409)
	var f struct{ Type, CRC64NVME string }
	c.call("GET", "/files/1", "", 200, &f)
	if f.Type != "video/mp4" || f.CRC64NVME != wire.CRC64Text(crc64nvme.Checksum(data)) {
		t.Errorf("the file's record is %+v", f)
	}
}

func TestWrongSessionRequestIsExplained(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("gone", password, func(u *auth.User) { u.State = auth.Disabled })
	id, before := "/uploads/"+c.plan("", 2*partSize+10).ID, len(c.Items())
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		words              string
	}{
		"a body that is not JSON":    {"POST", "/uploads", "name=x", 400, "JSON"},
		"an empty body":              {"POST", "/uploads", "", 400, "empty"},
		"an unknown field":           {"POST", "/uploads", `{"name":"x","length":1,"size":2}`, 400, "size"},
		"a field of another type":    {"POST", "/uploads", `{"name":"x","length":"1"}`, 400, "length"},
		"two bodies":                 {"POST", "/uploads", `{"name":"x","length":1}{}`, 400, "more than one JSON value"},
		"no name":                    {"POST", "/uploads", `{"length":1}`, 400, "name"},
		"a name that is a folder":    {"POST", "/uploads", `{"name":"a/","length":1}`, 400, "name"},
		"a disabled user":            {"POST", "/uploads", `{"name":"x","length":1,"d":"gone"}`, 400, "parameter d"},
		"an unknown user":            {"POST", "/uploads", `{"name":"x","length":1,"d":"nobody"}`, 400, "parameter d"},
		"no address":                 {"POST", "/uploads", `{"name":"x","length":1,"m":"nowhere"}`, 400, " m "},
		"an address of another type": {"POST", "/uploads", `{"name":"x","length":1,"m":1}`, 400, `"m" cannot be a number`},
		"addresses of another type":  {"POST", "/uploads", `{"name":"x","length":1,"m":["a@example.com",1]}`, 400, `"m" cannot be a number`},
		"one bad address of two":     {"POST", "/uploads", `{"name":"x","length":1,"m":["a@example.com","b"]}`, 400, " m "},
		"no number":                  {"POST", "/uploads", `{"name":"x","length":1,"c":"12"}`, 400, " c "},
		"a malformed hash":           {"POST", "/uploads", `{"name":"x","length":1,"sha256":"12"}`, 400, "sha256"},
		"a part size too large":      {"POST", "/uploads", `{"name":"x","length":1,"partSize":5368709121}`, 400, "partSize"},
		"a type with a NUL":          {"POST", "/uploads", `{"name":"x","length":1,"type":"text/a\u0000b"}`, 400, "type"},
		"a type with a line end":     {"POST", "/uploads", `{"name":"x","length":1,"type":"text/a\rb"}`, 400, "type"},
		"a type beyond ASCII":        {"POST", "/uploads", `{"name":"x","length":1,"type":"text/caf\u00e9"}`, 400, "type"},
		"a length too large":         {"POST", "/uploads", fmt.Sprintf(`{"name":"x","length":%d}`, int64(files.MaxLength)+1), 400, "length"},
		"a length below 0":           {"POST", "/uploads", `{"name":"x","length":-1}`, 400, "length"},
		"a length of null":           {"POST", "/uploads", `{"name":"x","length":null}`, 400, "length"},
		"a part of a byte":           {"POST", "/uploads", `{"name":"x","length":1.5}`, 400, "length"},
		"a message to nobody":        {"POST", "/uploads", `{"name":"x","length":1,"i":"hello","c":""}`, 400, "parameter i needs a recipient: c or m"},
		"an unknown language":        {"POST", "/uploads", `{"name":"x","length":1,"lang":"xx"}`, 400, "parameter lang must be one of en, it"},
		"a body too large":           {"POST", "/uploads", `{"name":"` + strings.Repeat("x", 64<<10) + `","length":1}`, 413, ""},
		"numbers of another type":    {"POST", id + "/parts", `{"numbers":["1"]}`, 400, "numbers"},
		"101 numbers":                {"POST", id + "/parts", `{"numbers":[1` + strings.Repeat(",1", 100) + `]}`, 400, "1 to 100"},
		"no numbers":                 {"POST", id + "/parts", `{"numbers":[]}`, 400, "numbers"},
		"part 0":                     {"POST", id + "/parts", `{"numbers":[0]}`, 400, "1 to 3"},
		"a part after the last":      {"POST", id + "/parts", `{"numbers":[4]}`, 400, "1 to 3"},
		"a number twice":             {"POST", id + "/parts", `{"numbers":[1,1]}`, 400, "once"},
		"a malformed checksum":       {"POST", id + "/parts", `{"numbers":[1],"crc64nvme":{"1":"xx"}}`, 400, "crc64nvme"},
		"a checksum of another part": {"POST", id + "/parts", `{"numbers":[1],"crc64nvme":{"2":"AAAAAAAAAAA="}}`, 400, "crc64nvme"},
		"a checksum of part 01":      {"POST", id + "/parts", `{"numbers":[1],"crc64nvme":{"01":"AAAAAAAAAAA="}}`, 400, "crc64nvme"},
		"another length":             {"POST", id + "/parts", `{"numbers":[1],"length":7}`, 400, "length"},
		"a whole of another length":  {"POST", id + "/complete", `{"length":7}`, 400, "length"},
		"nothing has arrived":        {"POST", id + "/complete", "", 400, "missing, beginning with 1, 2, 3"},
		"an unknown session":         {"GET", "/uploads/1-unknown", "", 404, "no upload session"},
		"an invalid limit":           {"GET", "/uploads?limit=0", "", 400, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			c.TB = t
			c.refused(tc.method, tc.path, tc.body, tc.status, tc.words)
		})
	}
	c.TB = t
	if n := len(c.Items()); n != before {
		t.Errorf("there are %d items, there were %d", n, before)
	}
}

func TestWrongPartIsExplainedAndStaysMissing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.InProcess("parts go to the store, which has its own answers")
	data := content(t, 1000)
	s := c.plan("", len(data))
	wrong := wire.CRC64Text(crc64nvme.Checksum(data) + 1)
	good := c.sign(s.ID, `{"numbers":[1]}`)[0]
	summed := c.sign(s.ID, fmt.Sprintf(`{"numbers":[1],"crc64nvme":{"1":%q}}`, wrong))[0]
	alter := func(p part, from, to string) part {
		p.URL = strings.Replace(p.URL, from, to, 1)
		return p
	}
	for name, tc := range map[string]struct {
		part   part
		data   []byte
		status int
		words  []string
	}{
		"too short":        {good, data[:999], 400, []string{"1000 bytes"}},
		"too long":         {good, append(bytes.Clone(data), 1), 400, []string{"1000 bytes"}},
		"another checksum": {summed, data, 400, []string{fmt.Sprintf("%016x", crc64nvme.Checksum(data)), fmt.Sprintf("%016x", crc64nvme.Checksum(data)+1)}},
		"another number":   {alter(good, "/parts/1?", "/parts/2?"), data, 403, nil},
		"another session":  {alter(good, s.ID, "1-x"), data, 403, nil},
		"a later expiry":   {alter(good, "?e=", "?e=9"), data, 403, nil},
		"no signature":     {alter(good, "&s=", "&x="), data, 403, nil},
		"a missing header": {part{Method: "PUT", URL: summed.URL}, data, 403, nil},
		"an extra header":  {part{Method: "PUT", URL: good.URL, Headers: map[string]string{"X-Amz-Checksum-Crc64nvme": wrong}}, data, 403, nil},
	} {
		resp := c.put(tc.part, tc.data)
		if resp.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d (%s)", name, resp.StatusCode, tc.status, resp.Header.Get("Ferry-Error"))
		}
		for _, w := range tc.words {
			if !strings.Contains(resp.Header.Get("Ferry-Error"), w) {
				t.Errorf("%s: %q does not say %q", name, resp.Header.Get("Ferry-Error"), w)
			}
		}
		c.refused("POST", "/uploads/"+s.ID+"/complete", "", 400, "missing, beginning with 1")
	}
	c.Clock.Advance(16 * time.Minute)
	c.wantPut(good, data, 403)
}

func TestWrongChecksumOfTheWholeStoresNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(t, 1000)
	s := c.plan("", len(data))
	c.sendAll(s, data)
	c.refused("POST", "/uploads/"+s.ID+"/complete", `{"crc64nvme":"AAAAAAAAAAA="}`, 400,
		fmt.Sprintf("%016x", crc64nvme.Checksum(data)), "0000000000000000")
	c.wantFile(c.complete(s.ID, ""), data) // the session is unchanged

	sum := sha256.Sum256(data)
	s = c.plan(fmt.Sprintf(`,"sha256":%q`, hex.EncodeToString(sum[:])), len(data))
	c.sendAll(s, data)
	e := c.complete(s.ID, "")
	resp := c.Request("HEAD", strings.TrimPrefix(e.Files[0].LinkURL, c.Base), nil)
	if !strings.HasPrefix(resp.Header.Get("Repr-Digest"), "sha-256=:") {
		t.Errorf("the download's Repr-Digest is %q", resp.Header.Get("Repr-Digest"))
	}
}

func TestEndedSessionIsGone(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(t, 1000)
	s := c.plan("", len(data))
	p := c.sign(s.ID, `{"numbers":[1]}`)[0]
	c.call("DELETE", "/uploads/"+s.ID, "", 204, nil)
	c.notFound(s.ID)
	c.wantPut(p, data, 404)
	if left := c.Partitions("upload"); len(left) != 0 {
		t.Errorf("parts are left: %v", left)
	}
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
		var list struct{ Uploads []session }
		resp := c.call("GET", path, "", 200, &list)
		for _, s := range list.Uploads {
			got = append(got, s.Length)
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"+c.Base), ">")
		path = link
	}
	if fmt.Sprint(got) != "[5 4 3 2 1]" {
		t.Errorf("the listed sessions have %v bytes", got)
	}
}

// open lists the IDs of the sessions that the caller sees.
func (c caller) open() (ids []string) {
	c.Helper()
	var list struct{ Uploads []session }
	c.call("GET", "/uploads", "", 200, &list)
	for _, s := range list.Uploads {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestDestinationUserSeesAndEndsSessions(t *testing.T) {
	t.Parallel()
	c := begin(t)
	c.AddUser("eve", password, quota(10_000))
	eve := c.as("eve")
	own, s := c.plan("", 5), c.plan(`,"d":"eve"`, 9_000)
	var seen session
	eve.call("GET", "/uploads/"+s.ID, "", 200, &seen)
	if seen.From != "ann" || seen.D != "" || s.From != "" || s.D != "eve" {
		t.Errorf("the destination sees %+v, the uploader %+v", seen, s)
	}
	if got := eve.open(); !slices.Equal(got, []string{s.ID}) {
		t.Errorf("the destination sees the sessions %v", got)
	}
	eve.refused("POST", "/uploads/"+s.ID+"/complete", "", 404)
	eve.refused("POST", "/uploads/"+s.ID+"/parts", `{"numbers":[1]}`, 404)
	c.as("bob").notFound(s.ID)
	eve.refused("POST", "/uploads", `{"name":"x","length":2000}`, 413, "1000 bytes are left")
	eve.call("DELETE", "/uploads/"+s.ID, "", 204, nil)
	eve.plan("", 10_000)
	if got := c.open(); !slices.Equal(got, []string{own.ID}) {
		t.Errorf("the uploader sees the sessions %v", got)
	}
	c.refused("POST", "/uploads/"+s.ID+"/complete", "", 404)

	s = c.plan(`,"d":"bob"`, 4)
	c.sendAll(s, []byte("text"))
	if e := c.complete(s.ID, ""); len(e.Files) != 1 || c.get(e.Files[0].LinkURL) != "text" {
		t.Errorf("the answer lists %+v", e.Files)
	}
	if got := c.as("bob").names(); len(got) != 1 {
		t.Errorf("bob has %q", got)
	}
	if got := append(c.as("bob").open(), c.open()...); !slices.Equal(got, []string{own.ID}) {
		t.Errorf("after the completion there are the sessions %v", got)
	}
}

func TestRepeatedBeginReturnsTheFirstSession(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var first, again session
	body := `{"name":"x","length":7}`
	c.call("POST", "/uploads", body, 201, &first, "Idempotency-Key", "k-1")
	c.call("POST", "/uploads", body, 201, &again, "Idempotency-Key", "k-1")
	if first.ID != again.ID {
		t.Errorf("the repeat has session %s, the first %s", again.ID, first.ID)
	}
	c.call("POST", "/uploads", `{"name":"x","length":8}`, 409, nil, "Idempotency-Key", "k-1")

	c.sendAll(first, []byte("content"))
	c.complete(first.ID, "")
	c.call("POST", "/uploads", body, 201, &again, "Idempotency-Key", "k-1")
	c.call("DELETE", "/files/1", "", 200, nil)
	c.call("POST", "/uploads/"+first.ID+"/complete", "", 410, nil)
	resp := c.call("POST", "/uploads", body, 410, nil, "Idempotency-Key", "k-1")
	if text := resp.Header.Get("Ferry-Error"); !strings.Contains(text, "file 1 was deleted") {
		t.Error(text)
	}
}

// TestCrashBetweenObjectAndRecordLosesNothing completes the session again after a crash. The
// sweep keeps the object until then.
func TestCrashBetweenObjectAndRecordLosesNothing(t *testing.T) {
	t.Parallel()
	c := begin(t)
	data := content(t, 1000)
	s := c.plan("", len(data))
	c.sendAll(s, data)
	c.Calls.Before("table.Write", func() error { return io.ErrUnexpectedEOF })
	c.refused("POST", "/uploads/"+s.ID+"/complete", "", 500)
	c.Calls.Before("table.Write", nil)
	if len(c.Objects(blob.Files)) != 1 {
		t.Fatal("there is no object")
	}
	c.Clock.Advance(5 * time.Hour)
	if _, err := c.Service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = c.as("ann")
	c.wantFile(c.complete(s.ID, ""), data)
}

// stream sends data in a session without a length, and states its length with the last part.
func (c caller) stream(s session, data []byte) {
	c.Helper()
	for n := 1; n == 1 || len(data) > int(s.PartSize)*(n-1); n++ {
		part, body := data[int(s.PartSize)*(n-1):], fmt.Sprintf(`{"numbers":[%d]}`, n)
		if len(part) >= int(s.PartSize) {
			part = part[:s.PartSize]
		} else {
			body = fmt.Sprintf(`{"numbers":[%d],"length":%d}`, n, len(data))
		}
		c.wantPut(c.sign(s.ID, body)[0], part, 200)
	}
}

func TestLengthCanBeStatedAtTheEnd(t *testing.T) {
	t.Parallel()
	for what, length := range map[string]int{"empty": 0, "short": 1000, "one part": partSize, "three": 2*partSize + 1000} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := begin(t)
			c.AddUser("eve", password, quota(3*partSize))
			var s, usual session
			c.call("POST", "/uploads", `{"name":"x"}`, 201, &usual)
			c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","d":"eve","partSize":%d}`, partSize), 201, &s)
			if usual.PartSize != 64<<20 || usual.Parts != 0 || s.PartSize != partSize {
				t.Errorf("the sessions are %+v and %+v", usual, s)
			}
			data := content(t, length)
			c.stream(s, data)
			end := "/uploads/" + s.ID + "/complete"
			c.refused("POST", end, "", 400, "length is missing")
			c.refused("POST", end, fmt.Sprintf(`{"length":%d}`, length+1), 400, "missing")
			if length > partSize {
				c.refused("POST", end, fmt.Sprintf(`{"length":%d}`, partSize), 400, "more parts")
			}
			whole := fmt.Sprintf(`{"length":%d,"crc64nvme":%q}`, length, wire.CRC64Text(crc64nvme.Checksum(data)))
			c.wantFile(c.complete(s.ID, whole), data)
			c.wantFile(c.complete(s.ID, whole), data)
			if got := c.used("eve"); got != int64(length) {
				t.Errorf("%d bytes are used", got)
			}
		})
	}
}

// TestPartReplacedByAShorterLastOne sends the last part with the full size first.
func TestPartReplacedByAShorterLastOne(t *testing.T) {
	t.Parallel()
	c := begin(t)
	var s session
	c.call("POST", "/uploads", fmt.Sprintf(`{"name":"x","partSize":%d}`, partSize), 201, &s)
	c.stream(s, content(t, 2*partSize))
	data := content(t, partSize+7)
	c.stream(s, data)
	c.wantFile(c.complete(s.ID, fmt.Sprintf(`{"length":%d}`, len(data))), data)
}

func TestResentPartReplacesTheFirst(t *testing.T) {
	t.Parallel()
	c := begin(t)
	first, second := content(t, partSize+9), content(t, partSize+9)
	s := c.plan("", len(second))
	c.sendAll(s, first)
	for _, p := range c.sign(s.ID, `{"numbers":[1,2]}`) {
		from := int64(p.Number-1) * partSize
		c.wantPut(p, second[from:from+p.Size], 200)
	}
	whole := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(crc64nvme.Checksum(first)))
	c.refused("POST", "/uploads/"+s.ID+"/complete", whole, 400, fmt.Sprintf("%016x", crc64nvme.Checksum(second)))
	c.wantFile(c.complete(s.ID, ""), second)
}

// TestListedOriginsMaySendParts sends a browser's preflight and then the part.
func TestListedOriginsMaySendParts(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	c := begin(t, func(_ *api.Settings, o *local.ServiceOptions) { o.Origins = envelope.Origins{app} })
	path := strings.TrimPrefix(c.sign(c.plan("", 3).ID, `{"numbers":[1]}`)[0].URL, c.Base)
	for origin, want := range map[string]string{app: app, "https://evil.example.com": ""} {
		h := c.Request("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", "PUT").Header
		if got := h.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("a preflight from %s allows %q", origin, got)
		}
		resp := c.Request("PUT", path, strings.NewReader("abc"), "Origin", origin)
		exposed := strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "ETag")
		if ok := resp.StatusCode == 200 && resp.Header.Get("ETag") != ""; ok != (want != "") || exposed != ok {
			t.Errorf("a part from %s: status %d, %v", origin, resp.StatusCode, resp.Header)
		}
	}
}
