package lambda_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/minio/crc64nvme"

	"ferry/shared/api/file"
	"ferry/shared/api/upload"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/notify"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// gateway sends the function of upload sessions what the API gateway would.
type gateway struct {
	*testing.T
	f      *lambda.Function
	handle lambda.EventHandler
}

func openGateway(t *testing.T) gateway {
	t.Helper()
	f := opened(t)
	return gateway{t, f, lambda.Gateway(f.Handler(upload.Sessions()), f.Ports)}
}

// event is alice's request. Headers are pairs.
func event(t *testing.T, method, path, body string, headers ...string) events.APIGatewayProxyRequest {
	t.Helper()
	var e events.APIGatewayProxyRequest
	boottest.Load(t, "uploads").Decode(t, &e)
	path, query, _ := strings.Cut(path, "?")
	e.HTTPMethod, e.Path, e.Body = method, "/v1"+path, body
	e.MultiValueHeaders["Content-Length"] = []string{strconv.Itoa(len(body))}
	for i := 0; i+1 < len(headers); i += 2 {
		e.MultiValueHeaders[headers[i]] = []string{headers[i+1]}
	}
	values, err := url.ParseQuery(query)
	check(t, err)
	e.MultiValueQueryStringParameters = values
	return e
}

func (g gateway) ask(method, path, body string, headers ...string) events.APIGatewayProxyResponse {
	g.Helper()
	r, err := g.handle(g.Context(), event(g.T, method, path, body, headers...))
	if err != nil {
		g.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// decode checks the status of an answer and decodes its body, if into is not nil.
func decode(t *testing.T, r events.APIGatewayProxyResponse, status int, into any) {
	t.Helper()
	text := []byte(r.Body)
	if r.IsBase64Encoded {
		var err error
		if text, err = base64.StdEncoding.DecodeString(r.Body); err != nil {
			t.Fatal(err)
		}
	}
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %v %s", r.StatusCode, status, r.MultiValueHeaders["Ferry-Error"], text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// must sends a request that must get this status, and decodes the answer.
func (g gateway) must(status int, into any, method, path, body string, headers ...string) {
	g.Helper()
	decode(g.T, g.ask(method, path, body, headers...), status, into)
}

// refused checks that a request is refused and that the reason has these words.
func (g gateway) refused(status int, method, path, body string, words ...string) {
	g.Helper()
	r := g.ask(method, path, body)
	reason := fmt.Sprint(r.MultiValueHeaders["Ferry-Error"])
	for _, w := range words {
		if r.StatusCode != status || !strings.Contains(reason, w) {
			g.Errorf("%s %s: status %d, want %d, and %s should say %q", method, path, r.StatusCode, status, reason, w)
		}
	}
}

type session struct {
	ID, Name, State string
	Parts           int
	PartSize        int64
	Arrived         []struct {
		Number    int
		Size      int64
		CRC64NVME string
	}
}

type part struct {
	Number  int
	Method  string
	URL     string
	Headers map[string]string
}

func (g gateway) sign(id, body string) []part {
	g.Helper()
	var signed struct{ Parts []part }
	g.must(200, &signed, "POST", "/uploads/"+id+"/parts", body)
	return signed.Parts
}

// send sends a part by plain HTTP, with only the headers that were signed.
func (g gateway) send(p part, data []byte) *http.Response {
	g.Helper()
	r, err := http.NewRequestWithContext(g.Context(), p.Method, p.URL, bytes.NewReader(data))
	if err != nil {
		g.Fatal(err)
	}
	for name, value := range p.Headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		g.Fatal(err)
	}
	return resp
}

func (g gateway) sendAll(s session, data []byte) {
	g.Helper()
	for n := 1; n <= s.Parts; n++ {
		b := data[int64(n-1)*s.PartSize : min(int64(n)*s.PartSize, int64(len(data)))]
		p := g.sign(s.ID, fmt.Sprintf(`{"numbers":[%d],"crc64nvme":{"%d":%q}}`, n, n, wire.CRC64Text(crc64nvme.Checksum(b))))[0]
		if resp := g.send(p, b); resp.StatusCode != 200 || resp.Header.Get("ETag") == "" {
			g.Fatalf("part %d: %s", n, resp.Status)
		}
	}
}

type answer struct {
	Files []struct {
		ID      int64
		Name    string
		Length  int64
		LinkURL string
	}
}

func random(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// partition returns the items of the table whose keys begin with prefix.
func (g gateway) partition(prefix string) (found []table.Item) {
	g.Helper()
	err := g.f.Ports.Table.Scan(g.Context(), func(i table.Item) error {
		if strings.HasPrefix(i.Key.PK, prefix) {
			found = append(found, i)
		}
		return nil
	})
	if err != nil {
		g.Fatal(err)
	}
	return found
}

// TestAWholeSessionOnAWS begins, sends, resumes, completes and lists a session whose
// item has all possible fields.
func TestAWholeSessionOnAWS(t *testing.T) {
	t.Parallel()
	g := openGateway(t)
	data := random(t, 2*blob.MinPartSize+1000)
	hash := sha256.Sum256(data)
	plan := fmt.Sprintf(`{"name":"Übersicht.mp4","type":"video/mp4","length":%d,"partSize":%d,"sha256":"%x","m":"carla@example.com","c":"+393401234567","i":"look"}`,
		len(data), blob.MinPartSize, hash)
	var s, again session
	g.must(201, &s, "POST", "/uploads", plan, "Idempotency-Key", "k")
	g.must(201, &again, "POST", "/uploads", plan, "Idempotency-Key", "k")
	if s.ID != again.ID || s.Parts != 3 || s.State != "open" {
		t.Fatalf("the session is %+v, and with the same key %+v", s, again)
	}
	of := func(number int) []byte {
		return data[(number-1)*blob.MinPartSize : min(number*blob.MinPartSize, len(data))]
	}
	signed := g.sign(s.ID, `{"numbers":[3,1]}`)
	for _, p := range signed {
		if resp := g.send(p, of(p.Number)); resp.StatusCode != 200 || resp.Header.Get("ETag") == "" {
			t.Fatalf("part %d: %s", p.Number, resp.Status)
		}
	}
	g.must(200, &again, "GET", "/uploads/"+s.ID, "")
	if len(again.Arrived) != 2 || again.Arrived[0].Number != 1 || again.Arrived[1].Number != 3 || again.Arrived[1].Size != 1000 ||
		again.Arrived[1].CRC64NVME != wire.CRC64Text(crc64nvme.Checksum(of(3))) {
		t.Errorf("what has arrived is %+v", again.Arrived)
	}
	g.refused(400, "POST", "/uploads/"+s.ID+"/complete", "", "parts are missing", "2")
	wrong := g.sign(s.ID, `{"numbers":[2],"crc64nvme":{"2":"AAAAAAAAAAA="}}`)[0]
	if resp := g.send(wrong, of(2)); resp.StatusCode != 400 {
		t.Errorf("a part with another checksum: %s", resp.Status)
	}
	sum := wire.CRC64Text(crc64nvme.Checksum(of(2)))
	p := g.sign(s.ID, fmt.Sprintf(`{"numbers":[2],"crc64nvme":{"2":%q}}`, sum))[0]
	if want := map[string]string{"X-Amz-Checksum-Crc64nvme": sum}; !maps.Equal(p.Headers, want) {
		t.Errorf("the headers are %v, want %v", p.Headers, want)
	}
	if resp := g.send(p, of(2)); resp.StatusCode != 200 {
		t.Fatalf("part 2: %s", resp.Status)
	}
	whole := crc64nvme.Checksum(data)
	g.refused(400, "POST", "/uploads/"+s.ID+"/complete", `{"crc64nvme":"AAAAAAAAAAA="}`, fmt.Sprintf("%016x", whole), "0000000000000000")
	var list struct{ Uploads []session }
	g.must(200, &list, "GET", "/uploads", "")
	if len(list.Uploads) != 1 || list.Uploads[0].ID != s.ID || list.Uploads[0].Name != "Übersicht.mp4" {
		t.Errorf("the open sessions are %+v", list.Uploads)
	}

	var first, second answer
	g.must(200, &first, "POST", "/uploads/"+s.ID+"/complete", fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(whole)))
	g.must(200, &second, "POST", "/uploads/"+s.ID+"/complete", "")
	if len(first.Files) != 3 || first.Files[0].Length != int64(len(data)) || !slices.Equal(first.Files, second.Files) {
		t.Errorf("completing gives %+v, and then %+v", first, second)
	}
	g.must(200, &again, "GET", "/uploads/"+s.ID, "")
	g.must(200, &list, "GET", "/uploads", "")
	if again.State != "done" || len(list.Uploads) != 0 {
		t.Errorf("afterwards the session is %s, and the open sessions are %+v", again.State, list.Uploads)
	}
	g.refused(409, "DELETE", "/uploads/"+s.ID, "", "complete")
	if resp := g.send(signed[0], of(3)); resp.StatusCode != 404 { // a small one, which is read before it is refused
		t.Errorf("a part of a session that is complete: %s", resp.Status)
	}
	g.stored(first.Files[0].ID, data, hash[:])
}

// stored checks the record, the bytes and the notices of the session's file.
func (g gateway) stored(id int64, data, hash []byte) {
	g.Helper()
	f, err := file.Service(g.f.Ports).Get(g.Context(), auth.User{Name: "alice"}, blob.Files, id)
	if err != nil {
		g.Fatal(err)
	}
	if want := fmt.Sprintf("%016x", crc64nvme.Checksum(data)); f.Name != "Übersicht.mp4" || f.Type != "video/mp4" || f.CRC64 != want || !bytes.Equal(f.SHA256, hash) {
		g.Errorf("the record is %+v", f)
	}
	r, err := g.f.Ports.Blobs.Open(g.Context(), blob.Files, f.Blob)
	if err != nil {
		g.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		g.Errorf("%d bytes are stored, %v", len(got), err)
	}
	var to []string
	for _, item := range g.partition("outbox#") {
		var n notify.Notice
		if err := item.Decode(&n); err != nil || n.File != id || n.Name != f.Name || n.Message != "look" {
			g.Errorf("a notice is %+v, %v", n, err)
		}
		to = append(to, n.To)
	}
	if slices.Sort(to); !slices.Equal(to, []string{"+393401234567", "carla@example.com"}) {
		g.Errorf("there are notices to %v", to)
	}
}

func TestCompletingTwiceAtOnceMakesOneFileOnAWS(t *testing.T) {
	t.Parallel()
	g := openGateway(t)
	data := random(t, 1000)
	var s session
	g.must(201, &s, "POST", "/uploads", fmt.Sprintf(`{"name":"film.mp4","length":%d,"m":"carla@example.com"}`, len(data)))
	g.sendAll(s, data)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if r := g.ask("POST", "/uploads/"+s.ID+"/complete", ""); r.StatusCode != 200 {
				t.Errorf("status %d: %v", r.StatusCode, r.MultiValueHeaders["Ferry-Error"])
			}
		})
	}
	wg.Wait()
	page, err := file.Service(g.f.Ports).List(t.Context(), auth.User{Name: "alice"}, blob.Files, 0, 10)
	if err != nil || len(page.Files) != 3 {
		t.Errorf("alice has %d files, want the 2 she had and 1, %v", len(page.Files), err)
	}
	if n := len(g.partition("outbox#")); n != 1 {
		t.Errorf("there are %d notices, want 1", n)
	}
}

func TestAnAbortedSessionLeavesNothingOnAWS(t *testing.T) {
	t.Parallel()
	g := openGateway(t)
	store := auth.NewUsers(g.f.Ports.Table, g.f.Ports.Now)
	check(t, store.Add(t.Context(), auth.User{Name: "dave", State: auth.Active, Quota: 1000}))
	var s session
	g.must(201, &s, "POST", "/uploads", `{"name":"x","length":1000,"d":"dave"}`)
	g.refused(413, "POST", "/uploads", `{"name":"x","length":1,"d":"dave"}`, "no room")
	p := g.sign(s.ID, `{"numbers":[1]}`)[0]
	if resp := g.send(p, random(t, 1000)); resp.StatusCode != 200 {
		t.Fatalf("the part: %s", resp.Status)
	}
	g.must(204, nil, "DELETE", "/uploads/"+s.ID, "")
	g.refused(404, "DELETE", "/uploads/"+s.ID, "", "no upload session")
	g.refused(404, "POST", "/uploads/"+s.ID+"/complete", "", "no upload session")
	if resp := g.send(p, random(t, 1000)); resp.StatusCode != 404 {
		t.Errorf("a part of it: %s", resp.Status)
	}
	left := slices.Concat(g.partition("upload"), g.partition("reserved#"))
	dave, err := store.Get(t.Context(), "dave")
	if err != nil || dave.Used != 0 || len(left) != 0 {
		t.Errorf("dave uses %d bytes, %v, and these items are left: %v", dave.Used, err, left)
	}
}

func TestSessionsAreListedInPagesOnAWS(t *testing.T) {
	t.Parallel()
	g := openGateway(t)
	for n := range 3 {
		g.must(201, nil, "POST", "/uploads", fmt.Sprintf(`{"name":"%d","length":1}`, n))
	}
	var names []string
	for path := "/uploads?limit=1"; path != ""; {
		r := g.ask("GET", path, "")
		var list struct{ Uploads []session }
		if err := json.Unmarshal([]byte(r.Body), &list); err != nil || len(list.Uploads) != 1 {
			t.Fatalf("%s: %s, %v", path, r.Body, err)
		}
		names = append(names, list.Uploads[0].Name)
		path = ""
		if link := r.MultiValueHeaders["Link"]; len(link) > 0 {
			_, next, _ := strings.Cut(link[0], "/v1")
			path, _, _ = strings.Cut(next, ">")
		}
	}
	if !slices.Equal(names, []string{"2", "1", "0"}) {
		t.Errorf("the list is %v", names)
	}
}
