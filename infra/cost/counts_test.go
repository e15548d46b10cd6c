package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/boot/worker"
	"ferry/shared/client"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// TestTheCountedCallsAreUpToDate does each operation in this process, with a meter around
// the ports, and compares the counts with counts.json.
func TestTheCountedCallsAreUpToDate(t *testing.T) {
	t.Parallel()
	before, memory := open(t).counts, memoryOf(read(t))
	var now []*count
	inUse, empty, heard := newStack(t), newStack(t), newStack(t, func(s *api.Settings) { s.Events = true })
	inUse.fill(100)
	for range 100 {
		inUse.putAway()
	}
	for _, o := range operations() {
		now = append(now, inUse.count(o))
	}
	for _, o := range sweeps() {
		now = append(now, empty.count(o))
	}
	heard.fill(100)
	for _, o := range []operation{{upload, uploading(small, "")}, {download, downloading(small, "", 200)}} {
		o.name += ", with events"
		now = append(now, heard.count(o))
	}
	for i, c := range now {
		for name, r := range c.Runs {
			r.Memory = memory[name]
		}
		was := before[c.Operation]
		if was == nil {
			was = &count{}
		}
		err := was.differs(c)
		if err == nil {
			now[i] = was // keep the old bytes: the difference is within the slack
			continue
		}
		t.Errorf("the counts of %s have changed (set UPDATE_GOLDEN=1 to accept): %v", c.Operation, err)
		for name, r := range c.Runs {
			r.Own = unmeasured
			if w := was.Runs[name]; w != nil {
				r.Own = w.Own
			}
		}
	}
	if len(now) != len(before) {
		t.Errorf("%d operations are done, and %d were counted (set UPDATE_GOLDEN=1 to accept)", len(now), len(before))
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		text, err := json.MarshalIndent(now, "", "\t")
		check(t, err)
		check(t, os.WriteFile("counts.json", append(text, '\n'), 0o644))
	}
}

// unmeasured is the own time, in ms, of a function that nobody has measured: more than most take.
const unmeasured = 10

// slack is how much the bytes of logs and answers may differ: they contain times and
// random names, and one more word in a line is no reason to count again.
const slack = 0.2

// differs returns where another count of the same operation differs, ignoring the
// functions' own time.
func (c *count) differs(other *count) error {
	if !maps.Equal(c.Beside, other.Beside) {
		return fmt.Errorf("calls beside: %v and %v", c.Beside, other.Beside)
	}
	if len(c.Runs) != len(other.Runs) {
		return fmt.Errorf("%d functions run, and %d", len(c.Runs), len(other.Runs))
	}
	for name, r := range c.Runs {
		o := other.Runs[name]
		if o == nil || r.Events != o.Events || r.Memory != o.Memory || !maps.Equal(r.Calls, o.Calls) {
			return fmt.Errorf("%s: %+v and %+v", name, r, o)
		}
	}
	for u, n := range c.Units {
		o := other.Units[u]
		if exact := u != logBytes && u != outBytes; exact && o != n || math.Abs(o-n) > slack*n {
			return fmt.Errorf("%s: %v and %v", u, n, o)
		}
	}
	return nil
}

// The sizes of the files that are counted, in bytes.
const (
	small    = 100_000
	medium   = 1 << 20
	parts    = 64      // of a file of 1 GB, 16 MB each
	partSize = 5 << 20 // here they are the smallest that S3 takes, which changes no call
)

const (
	alice    = "alice"
	password = "a password of alice"
	formType = "application/x-www-form-urlencoded"
)

// operation is something that callers do. What prepare does is not counted, but what it
// returns is.
type operation struct {
	name    string
	prepare func(*stack) func()
}

func operations() []operation {
	return []operation{
		{"login (`POST /auth/login`)", func(s *stack) func() {
			return s.ask(200, "POST", "/auth/login", "", "Authorization", basic(s.another(auth.Active)))
		}},
		{"login with a wrong password", func(s *stack) func() {
			return s.ask(401, "POST", "/auth/login", "", "Authorization", "Basic YWxpY2U6d3Jvbmc=") // alice:wrong
		}},
		{"token (`POST /oauth2/token`)", func(s *stack) func() {
			body := url.Values{"grant_type": {"password"}, "username": {s.another(auth.Active)}, "password": {password}}
			return s.ask(200, "POST", "/oauth2/token", body.Encode(), "Content-Type", formType)
		}},
		{"end of a token (`POST /oauth2/revoke`)", func(s *stack) func() {
			return s.ask(200, "POST", "/oauth2/revoke", url.Values{"token": {s.login()}}.Encode(), "Content-Type", formType)
		}},
		{"first access (`POST /auth/first`)", func(s *stack) func() {
			return s.ask(200, "POST", "/auth/first", "", "Authorization", basic(s.another(auth.FirstAccess)))
		}},
		{"forgotten password, with its mail (`GET /auth/forget`)", func(s *stack) func() {
			return s.ask(200, "GET", "/auth/forget?u="+s.another(auth.Active), "")
		}},
		{"change of a forgotten password (`POST /auth/change`)", change},
		{upload, uploading(small, "")},
		{upload + " with an Idempotency-Key", uploading(small, "", "Idempotency-Key", "1")},
		{upload + " with one mail", uploading(small, "&m=carla@example.com&i=hello")},
		{upload + " with one text message", uploading(small, "&c=%2B12015550123&i=hello")},
		{"upload of 1 MB with one mail", uploading(medium, "&m=carla@example.com&i=hello")},
		{upload1GB, func(s *stack) func() { return s.uploadLarge }},
		{"session: begin (`POST /uploads`)", func(s *stack) func() { return s.ask(201, "POST", "/uploads", plan(parts), "Authorization", s.bearer) }},
		{"session: URLs of 100 parts", onSession(200, "POST", "/parts", allParts())},
		{"session: state", onSession(200, "GET", "", "")},
		{"session: end", onSession(204, "DELETE", "", "")},
		{"session: complete, of 2 parts", onSession(200, "POST", "/complete", "")},
		{"list of one open session", asking(200, "GET", "/uploads?limit=1")},
		{"list of 100 files", asking(200, "GET", "/download/list?limit=100")},
		{"list of 100 files in the backup area", asking(200, "GET", "/download/list/backup?limit=100")},
		{"record of a file with one recipient (`GET /files/{id}`)", func(s *stack) func() {
			return asking(200, "GET", fmt.Sprintf("/files/%d", s.put(small, "&m=carla@example.com")))(s)
		}},
		{download, downloading(small, "", 200)},
		{"download by link, 1 MB", downloading(medium, "", 200)},
		{downloadFar, downloading(large, "", 302)},
		{"download by link that its uploader hears of by mail", downloading(small, "&notify=1", 200)},
		{"download from the backup area, 100 KB", func(s *stack) func() {
			return s.ask(200, "GET", "/download/file/backup?z="+s.ports.Key.File(blob.Backup, alice, s.putAway()), "", "User-Agent", "curl/8")
		}},
		{"page of a link, for browsers", func(s *stack) func() { return s.ask(200, "GET", s.link(small, ""), "", "Accept", "text/html") }},
		{"delete, to the backup area", func(s *stack) func() { return asking(200, "DELETE", fmt.Sprintf("/files/%d", s.put(small, "")))(s) }},
		{"purge from the backup area", func(s *stack) func() {
			return asking(200, "DELETE", fmt.Sprintf("/files/%d?area=backup", s.putAway()))(s)
		}},
		{"restore", func(s *stack) func() { return asking(200, "POST", fmt.Sprintf("/files/%d/restore", s.putAway()))(s) }},
		{"account (`GET /me`)", asking(200, "GET", "/me")},
		{"page that ends mails to an address", stopping("GET")},
		{"end of mails to an address", stopping("POST")},
		{"`GET /health`", asking(200, "GET", "/health")},
		{"`GET /openapi.json`", asking(200, "GET", "/openapi.json")},
		{"an unknown address", asking(404, "GET", "/nothing")},
	}
}

// sweeps returns sweeps that follow each other in an otherwise empty stack.
func sweeps() []operation {
	after := func(days, files int) func(*stack) func() {
		return func(s *stack) func() {
			s.fill(files)
			s.sweep() // which walks, as it does once a month
			s.ahead = time.Duration(days) * 24 * time.Hour
			return s.sweep
		}
	}
	return []operation{{sweepEmpty, after(0, 0)}, {sweepStay, after(1, 100)}, {sweepMove, after(31, 0)}, {sweepPurge, after(200, 0)}}
}

func asking(status int, method, path string) func(*stack) func() {
	return func(s *stack) func() { return s.ask(status, method, path, "", "Authorization", s.bearer) }
}

func change(s *stack) func() {
	name := s.another(auth.Active)
	var answer struct{ LinkURL string }
	check(s.T, json.Unmarshal(s.do(200, "GET", "/auth/forget?u="+name, ""), &answer))
	pin := ""
	check(s.T, s.data.Table.Scan(s.Context(), func(item table.Item) error {
		var n notify.Notice
		if strings.HasPrefix(item.Key.PK, notify.OutboxPrefix) && item.Decode(&n) == nil && n.User == name {
			pin = s.ports.Key.PIN(n.Nonce)
		}
		return nil
	}))
	body := url.Values{"p": {pin}, "z": {"another password"}}.Encode()
	return s.ask(200, "POST", strings.TrimPrefix(answer.LinkURL, s.ports.PublicURL), body, "Content-Type", formType)
}

func uploading(size int, query string, headers ...string) func(*stack) func() {
	return func(s *stack) func() {
		return s.ask(200, "POST", "/upload?file=report.pdf"+query, strings.Repeat("\x00", size),
			append(headers, "Authorization", s.bearer, "Content-Type", "application/pdf")...)
	}
}

func plan(parts int) string {
	return fmt.Sprintf(`{"name":"film.mp4","length":%d,"partSize":%d}`, parts*partSize, partSize)
}

func onSession(status int, method, path, body string) func(*stack) func() {
	return func(s *stack) func() {
		var session struct{ ID string }
		check(s.T, json.Unmarshal(s.do(201, "POST", "/uploads", plan(100), "Authorization", s.bearer), &session))
		return s.ask(status, method, "/uploads/"+session.ID+path, body, "Authorization", s.bearer)
	}
}

// allParts asks for the URLs of 100 parts.
func allParts() string {
	numbers := "1"
	for n := range 99 {
		numbers += fmt.Sprintf(",%d", n+2)
	}
	return `{"numbers":[` + numbers + `]}`
}

// downloading opens the link of a file and follows a redirect.
func downloading(size int, query string, status int) func(*stack) func() {
	return func(s *stack) func() {
		path := s.link(size, query)
		return func() {
			s.do(status, "GET", path, "", "User-Agent", "curl/8")
			if status == http.StatusFound {
				s.beside("S3 GetObject", gets)
				s.add(outBytes, float64(size))
			}
		}
	}
}

func stopping(method string) func(*stack) func() {
	return func(s *stack) func() {
		link := auth.StopLink("", "en", s.ports.Key.Stop("ann@example.com"))
		return s.ask(200, method, link, "List-Unsubscribe=One-Click", "Content-Type", formType)
	}
}

// stack has the functions, on the ports of one machine with a meter in between.
type stack struct {
	*testing.T
	*meter
	data   *local.Data
	ports  *api.Ports
	mux    *http.ServeMux
	ahead  time.Duration // of the clock
	bearer string
	users  int
	passed map[table.Key]bool // of the table's stream
	moved  []lambda.Moved     // what the function sweep was asked to move
}

func newStack(t *testing.T, change ...func(*api.Settings)) *stack {
	s := &stack{T: t, meter: &meter{}, passed: map[table.Key]bool{}, mux: http.NewServeMux()}
	settings := api.Settings{PublicURL: "https://files.example.com/v1", RedirectOver: 4 << 20, MaxBody: 10 << 20}
	settings.Retention.KeepDays, settings.Retention.BackupDays = 30, 90
	settings.Notices.PerHour, settings.Notices.PerDay, settings.Notices.PerRecipient = 1000, 1000, 1000
	for _, c := range change {
		c(&settings)
	}
	var err error
	s.data, err = local.Open(t.TempDir(), settings, local.Options{
		NoSync: true, Hash: auth.Params{Memory: 64, Time: 1, Threads: 1},
		Now: func() time.Time { return time.Now().Add(s.ahead) }, Log: slog.New(slog.NewJSONHandler(s.meter, nil)),
	})
	check(t, err)
	t.Cleanup(func() { check(t, s.data.Close()) })
	bucket := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(bucket.Close)
	s.ports = s.data.Ports
	s.ports.CountWait = time.Minute // as for a table that others use too
	s.ports.Random = &sameRandom{from: rand.NewChaCha8([32]byte{})}
	s.ports.Table = meteredTable{s.data.Table, s.meter}
	blobs := meteredBlobs{s.data.Disk, s.meter, bucket.URL}
	s.ports.Blobs, s.ports.Parts = blobs, meteredParts{s.data.Disk, blobs}
	s.ports.Mover = func(_ context.Context, owner string, id int64) error {
		s.call("Lambda Invoke")
		s.moved = append(s.moved, lambda.Moved{Owner: owner, ID: id})
		return nil
	}
	for _, e := range local.Endpoints() {
		handle := s.function(e.Name, lambda.With(s.ports).Handler(e))
		for _, r := range e.Routes {
			s.mux.Handle(r.Method+" "+api.Prefix+r.Path, handle)
		}
		if len(e.Routes) == 0 {
			s.mux.Handle("/", handle)
		}
	}
	s.begin("")
	s.user(alice, auth.Active)
	s.bearer = "Bearer " + s.login()
	return s
}

// sameRandom gives the same bytes in each run, as the shards of keys, and so the lists of
// a sweep, depend on them.
type sameRandom struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func (r *sameRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(p)
}

// function returns a function behind the gateway.
func (s *stack) function(name string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check(s.T, err)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer := httptest.NewRecorder()
		check(s.T, s.as(name, func() error {
			h.ServeHTTP(answer, r)
			return nil
		}))
		for _, m := range s.moved {
			check(s.T, s.as("sweep", func() error {
				_, err := worker.SweeperHandler(worker.With(s.ports, s.cloud.Providers()))(s.Context(), lambda.SweepEvent{Move: &m})
				return err
			}))
		}
		s.moved = nil
		s.add(requests, units(len(body)+answer.Body.Len(), 512<<10))
		s.add(outBytes, float64(answer.Body.Len()+headerBytes))
		s.add(logBytes, accessLogBytes)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// count does an operation and everything that it causes.
func (s *stack) count(o operation) *count {
	do := o.prepare(s)
	s.fresh() // these records do not belong to the operation
	s.begin(o.name)
	do()
	for fresh := s.fresh(); len(fresh) > 0; fresh = s.fresh() {
		for _, r := range fresh {
			s.pass(r)
		}
	}
	done := s.meter.count
	s.begin("") // what comes next does not belong to the operation either
	return done
}

func (s *stack) ask(status int, method, path, body string, headers ...string) func() {
	return func() { s.do(status, method, path, body, headers...) }
}

func (s *stack) do(status int, method, path, body string, headers ...string) []byte {
	r := httptest.NewRequestWithContext(s.Context(), method, "https://gateway.example/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	if w.Code != status {
		s.Fatalf("%s %s: status %d (%s)", method, path, w.Code, w.Header().Get("Ferry-Error"))
	}
	return w.Body.Bytes()
}

func basic(name string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header.Get("Authorization")
}

func (s *stack) user(name string, state auth.UserState) {
	hash, err := s.ports.Hasher.Hash(s.Context(), password)
	check(s.T, err)
	u := auth.User{Name: name, State: state, Email: name + "@example.com", Password: hash}
	check(s.T, auth.NewUsers(s.ports.Table, s.ports.Now).Add(s.Context(), u))
}

// another adds a new user.
func (s *stack) another(state auth.UserState) string {
	s.users++
	name := fmt.Sprintf("user%d", s.users)
	s.user(name, state)
	return name
}

func (s *stack) login() string {
	var answer struct{ Bearer string }
	check(s.T, json.Unmarshal(s.do(200, "POST", "/auth/login", "", "Authorization", basic(alice)), &answer))
	return answer.Bearer
}

// put stores a file of alice and returns its id.
func (s *stack) put(size int, query string) (id int64) {
	var answer struct{ Files []struct{ ID int64 } }
	text := s.do(200, "POST", "/upload?file=report.pdf"+query, strings.Repeat("\x00", size), "Authorization", s.bearer, "Content-Type", "application/pdf")
	check(s.T, json.Unmarshal(text, &answer))
	return answer.Files[0].ID
}

func (s *stack) fill(files int) {
	for range files {
		s.put(small, "")
	}
}

// putAway stores a file in the backup area.
func (s *stack) putAway() (id int64) {
	id = s.put(small, "")
	s.do(200, "DELETE", fmt.Sprintf("/files/%d", id), "", "Authorization", s.bearer)
	return id
}

func (s *stack) link(size int, query string) string {
	return "/download/file?k=" + s.ports.Key.File(blob.Files, alice, s.put(size, query))
}

// zeros are the bytes of a large file.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// uploadLarge does what the client does with a large file.
func (s *stack) uploadLarge() {
	server := httptest.NewServer(s.mux)
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL, Bearer: func(context.Context, string) (string, error) { return strings.TrimPrefix(s.bearer, "Bearer "), nil }})
	check(s.T, err)
	source := client.Source{Name: "film.mp4", Length: parts * partSize, Content: zeros{}}
	_, err = c.Put(s.Context(), source, client.PutOptions{PartSize: partSize, Connections: 1})
	check(s.T, err)
	for range parts {
		s.beside("S3 UploadPart", puts)
	}
}

// fresh returns the records that pass the stream's filter, each once.
func (s *stack) fresh() (found []notify.StreamRecord) {
	check(s.T, s.data.Table.Scan(s.Context(), func(item table.Item) error {
		outbox := strings.HasPrefix(item.Key.PK, notify.OutboxPrefix)
		if s.passed[item.Key] || !outbox && !strings.HasPrefix(item.Key.PK, notify.EventPrefix) {
			return nil
		}
		s.passed[item.Key] = true
		var v struct{ Channel, Type, Body string }
		err := item.Decode(&v)
		found = append(found, notify.StreamRecord{Key: item.Key, Channel: v.Channel, Type: v.Type, Body: v.Body})
		return err
	}))
	return found
}

// pass hands a record of the stream alone to relay, which is the most expensive way, then
// a notice to email or sms, and SES's feedback to feedback.
func (s *stack) pass(r notify.StreamRecord) {
	image := map[string]events.DynamoDBAttributeValue{}
	for name, v := range map[string]string{"channel": r.Channel, "type": r.Type, "body": r.Body} {
		image[name] = events.NewStringAttribute(v)
	}
	keys := map[string]events.DynamoDBAttributeValue{"pk": events.NewStringAttribute(r.Key.PK), "sk": events.NewStringAttribute(r.Key.SK)}
	check(s.T, s.as("relay", func() error {
		again, err := worker.RelayerHandler(worker.With(s.ports, s.cloud.Providers()))(s.Context(), events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{{
			EventName: string(events.DynamoDBOperationTypeInsert), Change: events.DynamoDBStreamRecord{Keys: keys, NewImage: image},
		}}})
		return undone(err, len(again.BatchItemFailures))
	}))
	if !strings.HasPrefix(r.Key.PK, notify.OutboxPrefix) {
		return
	}
	m := notify.Pointer(r.Key, r.Channel)
	record := worker.CourierRecord{SNS: events.SNSEntity{Message: m.Body}} // a code comes straight from the topic
	if m.Value == r.Channel {
		record = worker.CourierRecord{SQSMessage: events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: m.Body}}
		for _, call := range []string{"SendMessage by SNS", "ReceiveMessage by Lambda", "DeleteMessage by Lambda"} {
			s.beside("SQS "+call, queueCalls)
		}
	}
	sender := map[string]string{string(notify.Mail): "email", string(notify.SMS): "sms"}[r.Channel]
	check(s.T, s.as(sender, func() error {
		e := worker.CourierEvent{Records: []worker.CourierRecord{record}}
		again, err := worker.CourierHandler(worker.With(s.ports, s.cloud.Providers()))(s.Context(), e)
		return undone(err, len(again.BatchItemFailures))
	}))
	if sender == "sms" {
		return
	}
	told := fmt.Sprintf(`{"eventType":"Delivery","mail":{"tags":{"notice":[%q]}}}`, r.Key.SK)
	event, err := json.Marshal(events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{Message: told}}}})
	check(s.T, err)
	s.beside("SNS Publish by SES", publishes)
	check(s.T, s.as("feedback", func() error {
		return worker.FeedbackHandler(worker.With(s.ports, s.cloud.Providers()))(s.Context(), event)
	}))
}

func undone(err error, n int) error {
	if err == nil && n > 0 {
		err = errors.New("a record or notice must be retried")
	}
	return err
}

func (s *stack) sweep() {
	check(s.T, s.as("sweep", func() error {
		r, err := worker.SweeperHandler(worker.With(s.ports, s.cloud.Providers()))(s.Context(), lambda.SweepEvent{})
		if err == nil && !r.Complete {
			err = errors.New("the sweep did not finish")
		}
		return err
	}))
}
