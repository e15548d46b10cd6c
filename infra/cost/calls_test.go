// Package cost pins what each operation asks of the stores and of other services, as that
// is what AWS charges for: the page beside it has the prices. It has nothing but tests.
package cost

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/boot/worker"
	"ferry/shared/client"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// TestCallsAndUnitsOfEachOperation compares each operation, with everything that follows
// from it, with a line of testdata/calls.txt. An endpoint needs no line there.
func TestCallsAndUnitsOfEachOperation(t *testing.T) {
	t.Parallel()
	inUse, idle, heard := open(t), open(t), open(t, apitest.Listening)
	inUse.requests()
	idle.sweeps()
	heard.fill(100)
	file := heard.do(200, "upload, with events", "POST", "/upload?file=report.pdf", content).Files[0]
	heard.do(200, "download, with events", "GET", file.LinkURL, "")
	apitest.Golden(t, "calls.txt", "operation | read units | write units | calls to the ports by each function\n"+
		inUse.text.String()+idle.text.String()+heard.text.String())
}

var content = strings.Repeat("x", 100_000)

const password = "a password of everyone"

// requests is the list of operations. Uploads are answered with a list of 100 files.
func (s *stack) requests() {
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	as := func(name, password string) []string { return []string{"Authorization", apitest.Basic(name, password)} }
	s.AddUser("bob", password)
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	s.fill(200)
	for id := range 100 {
		s.ask(200, "DELETE", fmt.Sprint("/files/", id+1), "")
	}

	bearer := s.do(200, "login", "POST", "/auth/login", "", as("bob", password)...).Bearer
	s.do(401, "login with a wrong password", "POST", "/auth/login", "", as("alice", "wrong")...)
	s.do(200, "token", "POST", "/oauth2/token", "grant_type=password&username=bob&password="+strings.ReplaceAll(password, " ", "+"), form...)
	s.do(200, "end of a token", "POST", "/oauth2/revoke", "token="+bearer, form...)
	s.do(200, "first access", "POST", "/auth/first", "", as("new", password)...)
	change := s.do(200, "forgotten password, with its mail", "GET", "/auth/forget?u=bob", "").LinkURL
	pin := regexp.MustCompile(`\b\d{8}\b`).FindString(s.mailed)
	s.do(200, "change of a forgotten password", "POST", change+"&p="+pin+"&z=another+password", "")

	file := s.do(200, "upload", "POST", "/upload?file=report.pdf", content).Files[0]
	s.do(200, "upload with an Idempotency-Key", "POST", "/upload?file=report.pdf", content, "Idempotency-Key", "1")
	sent := s.do(200, "upload with one mail", "POST", "/upload?file=report.pdf&m=carla@example.com&i=hello", content).Files[0]
	s.do(200, "upload with one text message", "POST", "/upload?file=report.pdf&c=%2B12015550123&i=hello", content)
	receipt := s.do(200, "upload with a receipt", "POST", "/upload?file=report.pdf&notify=1", content).Files[0]
	large := s.ask(200, "POST", "/upload?file=film.mp4", strings.Repeat("x", redirectOver+1)).Files[0]

	s.uploadParts("upload of 2 parts by `ferry up`")
	session := "/uploads/" + s.do(201, "session: begin", "POST", "/uploads", `{"name":"film.mp4","length":600000000}`).ID
	s.do(200, "session: URLs of 3 parts", "POST", session+"/parts", `{"numbers":[1,2,3]}`)
	s.do(200, "session: state", "GET", session, "")
	s.do(200, "list of one open session", "GET", "/uploads", "")
	s.do(204, "session: end", "DELETE", session, "")

	s.do(200, "list of 100 files", "GET", "/download/list?limit=100", "")
	kept := s.do(200, "list of 100 files in the backup area", "GET", "/download/list/backup?limit=100", "").Files[0]
	s.do(200, "record of a file with one recipient", "GET", fmt.Sprint("/files/", sent.ID), "")
	s.do(200, "download by link", "GET", file.LinkURL, "")
	s.do(302, "download by a redirect", "GET", large.LinkURL, "")
	s.do(200, "first download, with its receipt", "GET", receipt.LinkURL, "")
	s.do(200, "download from the backup area", "GET", kept.LinkURL, "")
	s.do(200, "page of a link, for browsers", "GET", sent.LinkURL, "", "Accept", "text/html")
	s.do(200, "delete, to the backup area", "DELETE", fmt.Sprint("/files/", file.ID), "")
	s.do(200, "restore", "POST", fmt.Sprintf("/files/%d/restore", file.ID), "")
	s.do(200, "purge from the backup area", "DELETE", fmt.Sprintf("/files/%d?area=backup", kept.ID), "")

	stop := auth.StopLink("", "en", s.Data.Ports.Key.Stop("ann@example.com"))
	s.do(200, "account", "GET", "/me", "")
	s.do(200, "page that ends mails to an address", "GET", stop, "")
	s.do(200, "end of mails to an address", "POST", stop, "")
	s.do(200, "health", "GET", "/health", "")
	s.do(200, "description of the interface", "GET", "/openapi.json", "")
	s.do(404, "an unknown address", "GET", "/nothing", "")
}

// sweeps counts sweeps without the walk over everything that each stack has once a month.
func (s *stack) sweeps() {
	day := func() { s.sweep(lambda.SweepEvent{}) }
	day()
	s.line("sweep of an empty stack", day)
	s.fill(100)
	for _, next := range []struct {
		name string
		days time.Duration
	}{
		{"sweep of 100 files that stay", 1}, {"sweep that moves 100 files to the backup area", 30}, {"sweep that removes 100 files for good", 170},
	} {
		day()
		s.Clock.Advance(next.days * 24 * time.Hour)
		s.line(next.name, day)
	}
}

// uploadParts does what the client does with a large file. The parts go to the server of
// apitest, as they go to S3, past the functions.
func (s *stack) uploadParts(name string) {
	server := httptest.NewServer(s)
	c, err := client.New(client.Options{URL: server.URL, Bearer: func(context.Context, string) (string, error) { return s.bearer, nil }})
	s.check(err)
	source := client.Source{Name: "film.mp4", Length: 2 * blob.MinPartSize, Content: bytes.NewReader(make([]byte, 2*blob.MinPartSize))}
	s.line(name, func() {
		s.check(last(c.Put(s.Context(), source, client.PutOptions{PartSize: blob.MinPartSize, Connections: 1})))
		server.Close() // waits for the last request
	})
}

// redirectOver is the size of the largest file that a function sends itself.
const redirectOver = 1 << 20

// stack has the functions, on the ports of one machine with a meter in between.
type stack struct {
	*apitest.Server
	*meter
	handler http.Handler // of all functions behind the gateway
	cloud   boottest.Cloud
	bearer  string
	mailed  string              // text of the last mail
	passed  map[table.Key]bool  // of the table's stream
	moved   []lambda.SweepEvent // what the function sweep was asked to move
	others  map[string]int      // calls in this run that apitest does not count
	runs    []string            // of functions, for this line
	text    strings.Builder     // all lines
}

func open(t *testing.T, options ...apitest.Option) *stack {
	options = append(options, func(s *api.Settings, _ *local.ServiceOptions) { s.RedirectOver = redirectOver })
	s := &stack{Server: apitest.Open(t, t.TempDir(), options...), passed: map[table.Key]bool{}}
	p := s.Data.Ports.Clone()
	s.Data.Ports = p
	s.meter = &meter{Table: p.Table, unmetered: s.Data.Table}
	p.Table, p.Blobs = s.meter, bucket{p.Blobs, s}
	p.CountWait = time.Minute              // as for a table that others use too
	p.Random = rand.NewChaCha8([32]byte{}) // as the shards of keys, and so the lists of a sweep, depend on it
	p.Mover = func(_ context.Context, owner string, id int64) error {
		s.others["invoke sweep"]++
		s.moved = append(s.moved, lambda.SweepEvent{Move: &lambda.Moved{Owner: owner, ID: id}})
		return nil
	}
	s.handler = local.Handler(p)
	s.AddUser("alice", password)
	s.bearer = s.Login("alice", password)
	return s
}

func (s *stack) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// bucket can do what the disk cannot: describe an object, and sign an address.
type bucket struct {
	blob.Store
	*stack
}

func (b bucket) Describe(ctx context.Context, area blob.Area, key string) (blob.Written, error) {
	b.others["blob.Describe"]++
	return blob.Measure(ctx, b.Data.Disk, area, key, false, func(int64) {})
}

func (b bucket) SignGet(context.Context, blob.Area, string, blob.Signed) (string, error) {
	return "https://bucket.example/object", nil
}

// do writes the line of a request.
func (s *stack) do(status int, name, method, path, body string, headers ...string) (a answer) {
	s.Helper()
	s.line(name, func() { a = s.ask(status, method, path, body, headers...) })
	return a
}

// answer is the envelope, or a session.
type answer struct {
	apitest.Envelope
	ID string
}

// ask sends a request to a path, or to a link.
func (s *stack) ask(status int, method, path, body string, headers ...string) (a answer) {
	r := httptest.NewRequestWithContext(s.Context(), method, s.Base+strings.TrimPrefix(path, s.Base), strings.NewReader(body))
	usual := []string{"Authorization", "Bearer " + s.bearer, "Content-Type", "application/pdf", "User-Agent", "curl/8"}
	for pair := range slices.Chunk(append(usual, headers...), 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != status {
		s.Fatalf("%s %s: status %d (%s)", method, path, w.Code, w.Header().Get("Ferry-Error"))
	}
	_ = json.Unmarshal(w.Body.Bytes(), &a) // a page is no JSON, and no answer is needed of it
	return a
}

func (s *stack) fill(files int) {
	for range files {
		s.ask(200, "POST", "/upload?file=report.pdf", content)
	}
}

// ServeHTTP runs the function of a request, then sweep for the bytes that it must move.
func (s *stack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.run("request", func() error {
		s.handler.ServeHTTP(w, r)
		return nil
	})
	moved := s.moved
	s.moved = nil
	s.sweep(moved...)
}

func (s *stack) sweep(asked ...lambda.SweepEvent) {
	for _, e := range asked {
		s.run("sweep", func() error { return last(worker.SweeperHandler(s.worker())(s.Context(), e)) })
	}
}

// last drops what a call returns beside its error.
func last[T any](_ T, err error) error { return err }

func (s *stack) worker() *worker.Worker { return worker.With(s.Data.Ports, s.cloud.Providers()) }

// run notes the calls of a function.
func (s *stack) run(function string, do func() error) {
	s.cloud.Published, s.cloud.Mails, s.cloud.Texts, s.others = nil, nil, nil, map[string]int{}
	s.Calls.Reset()
	s.check(do())
	calls := s.Calls.Reset()
	maps.Copy(calls, s.others)
	calls["publish"], calls["mail"], calls["text"] = len(s.cloud.Published), len(s.cloud.Mails), len(s.cloud.Texts)
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	s.runs = append(s.runs, strings.Replace(fmt.Sprint(calls), "map", function, 1))
}

// line writes a line of an operation and everything that follows from it.
func (s *stack) line(name string, do func()) {
	s.follow() // what was before does not belong to it
	s.reads.Store(0)
	s.writes.Store(0)
	s.runs = nil
	do()
	for s.follow() {
	}
	fmt.Fprintf(&s.text, "%s | %d | %d | %s\n", name, s.reads.Load(), s.writes.Load(), strings.Join(s.runs, " "))
}

// follow hands each new record of the table's stream to relay, alone, which is the most
// expensive way. It reports whether there was one.
func (s *stack) follow() bool {
	var records []events.DynamoDBEventRecord
	s.check(s.Data.Table.Scan(s.Context(), func(item table.Item) error {
		notice := strings.HasPrefix(item.Key.PK, notify.OutboxPrefix)
		if s.passed[item.Key] || !notice && !strings.HasPrefix(item.Key.PK, notify.EventPrefix) {
			return nil
		}
		s.passed[item.Key] = true
		var v struct{ Channel, Type, Body string }
		err, text := item.Decode(&v), events.NewStringAttribute
		records = append(records, events.DynamoDBEventRecord{EventName: "INSERT", Change: events.DynamoDBStreamRecord{
			Keys:     map[string]events.DynamoDBAttributeValue{"pk": text(item.Key.PK), "sk": text(item.Key.SK)},
			NewImage: map[string]events.DynamoDBAttributeValue{"channel": text(v.Channel), "type": text(v.Type), "body": text(v.Body)},
		}})
		return err
	}))
	for _, r := range records {
		event := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{r}}
		s.run("relay", func() error { return last(worker.RelayerHandler(s.worker())(s.Context(), event)) })
		for _, m := range s.cloud.Published[notify.NoticesTopic] {
			s.send(m, r.Change.Keys["sk"].String())
		}
	}
	return len(records) > 0
}

// send hands a message to email or sms, and SES's feedback on the mail to feedback.
func (s *stack) send(m notify.TopicMessage, notice string) {
	sender := map[string]string{string(notify.SMS): "sms"}[m.Value]
	record := worker.CourierRecord{SQSMessage: events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: m.Body}}
	event := worker.CourierEvent{Records: []worker.CourierRecord{record}}
	s.run(cmp.Or(sender, "email"), func() error { return last(worker.CourierHandler(s.worker())(s.Context(), event)) })
	for _, mail := range s.cloud.Mails {
		s.mailed = mail.Text
		told := fmt.Sprintf(`{"eventType":"Delivery","mail":{"tags":{"notice":[%q]}}}`, notice)
		event := fmt.Appendf(nil, `{"Records":[{"Sns":{"Message":%q}}]}`, told)
		s.run("feedback", func() error { return worker.FeedbackHandler(s.worker())(s.Context(), event) })
	}
}
