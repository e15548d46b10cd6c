package apitest_test

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/boot/worker"
	"ferry/shared/client"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
)

// TestCallsAndUnitsOfEachRequest compares what each request of the journey asks of the stores
// and of other services, with everything that follows from it, with a line of
// testdata/calls.txt. infra/cost has the prices. The user of the last chapter has 100 files in
// each area, but whoever has none costs as many calls.
func TestCallsAndUnitsOfEachRequest(t *testing.T) {
	t.Parallel()
	inUse, empty, heard := open(t), open(t), open(t, apitest.Listening)
	lines := inUse.measure(200)
	fewer, more := empty.measure(0), heard.measure(200)
	for name, l := range lines {
		if l.runs[0] != fewer[name].runs[0] && !strings.HasPrefix(name, "page: the files") { // which shows the links of each
			t.Errorf("%s costs %s without files, and with them %s", name, fewer[name].runs[0], l.runs[0])
		}
		download := strings.Contains(name, "download") // the only event that needs a write of its own
		if more[name].runs[0] != l.runs[0] && !download {
			t.Errorf("%s costs %s with events, and without them %s", name, more[name].runs[0], l.runs[0])
		}
	}
	inUse.clientAndStore()
	idle := open(t)
	idle.sweeps()
	for _, name := range []string{"upload", "download by link"} {
		idle.write(name+", with events", more[name])
	}
	expect.Golden(
		t,
		"calls.txt",
		"operation | read units | write units | calls to the ports by each function\n"+inUse.text.String()+idle.text.String(),
	)
}

// measure takes the journey, and writes the line of each request. Before the last chapter it
// stores files, and moves half of them to the backup area.
func (s *stack) measure(files int) map[string]line {
	s.crowd = func() {
		for i := range files / 10 {
			s.AddUser(fmt.Sprint("user", i), password)
		}
		s.fill(files)
		for id := range files / 2 {
			s.ask(200, fmt.Sprintf("DELETE /v1/files/%d", id+1), bearer, "")
		}
	}
	lines := map[string]line{}
	s.run(func(take func()) {
		s.Clock.Advance(time.Second)
		if _, ok := s.step.do.(string); !ok {
			take()
			return
		}
		lines[s.step.name] = s.line(s.step.name, take)
	})
	return lines
}

// clientAndStore has what is not in the journey: large files.
func (s *stack) clientAndStore() {
	s.uploadParts("upload of 2 parts by `ferry up`")
	s.ask(200, "POST /v1/upload?file=film.mp4", bearer, strings.Repeat("x", redirectOver+1))
	s.line("download by a redirect", func() { s.ask(302, "GET $file", "User-Agent: curl/8", "") })
}

// sweeps counts sweeps without the walk over everything that each stack has once a month.
func (s *stack) sweeps() {
	s.AddUser("dora", password)
	day := func() { s.sweepFor(lambda.SweepEvent{}) }
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
	c, err := client.New(client.Options{
		URL:    server.URL,
		Bearer: func(context.Context, string) (string, error) { return s.vars["bearer"], nil },
	})
	check(s, err)
	source := client.Source{
		Name:    "film.mp4",
		Length:  2 * blob.MinPartSize,
		Content: bytes.NewReader(make([]byte, 2*blob.MinPartSize)),
	}
	s.line(name, func() {
		check(s, last(c.Put(s.Context(), source, client.PutOptions{PartSize: blob.MinPartSize, Connections: 1})))
		server.Close() // waits for the last request
	})
}

// redirectOver is the size of the largest file that a function sends itself.
const redirectOver = 1 << 20

// stack has the functions, on the ports of one machine with a meter in between.
type stack struct {
	*walk
	*meter
	handler http.Handler // of all functions behind the gateway, and of parts, which go to the store
	cloud   boottest.Cloud
	passed  map[table.Key]bool  // of the table's stream
	moved   []lambda.SweepEvent // what the function sweep was asked to move
	others  map[string]int      // calls in this run that apitest does not count
	runs    []string            // of functions, for this line
	text    strings.Builder     // all lines
}

// line is what a request costs, with what follows from it.
type line struct {
	reads, writes int64
	runs          []string
}

func open(t *testing.T, options ...apitest.Option) *stack {
	options = append(options, func(s *service.Settings, _ *local.ServiceOptions) { s.RedirectOver = redirectOver })
	s := &stack{walk: begin(apitest.Open(t, t.TempDir(), options...)), passed: map[table.Key]bool{}}
	p := s.Data.Ports
	s.meter = &meter{Table: p.Table, unmetered: s.Data.Table}
	p.Table, p.Blobs = s.meter, bucket{p.Blobs, s}
	p.CountWait = time.Minute              // as for a table that others use too
	p.Random = rand.NewChaCha8([32]byte{}) // as the shards of keys, and so the lists of a sweep, depend on it
	p.Mover = func(_ context.Context, _ *files.Service, owner string, id int64) error {
		s.others["invoke sweep"]++
		s.moved = append(s.moved, lambda.SweepEvent{Move: &lambda.Moved{Owner: owner, ID: id}})
		return nil
	}
	s.Data.Ports = p
	again, err := local.NewService(p, s.Service.Settings, local.ServiceOptions{
		From:      "Ferry <ferry@localhost>",
		ShowInbox: true,
	})
	check(t, err)
	s.Service, s.handler = again, again.Handler()
	s.send, s.deliver = s.answer, func() {} // all is sent at once
	return s
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

// fill stores files of dora.
func (s *stack) fill(files int) {
	s.ask(200, "POST /v1/auth/login", "Authorization: ${basic dora}", "")
	for range files {
		s.ask(200, "POST /v1/upload?file=report.pdf", bearer+"\nContent-Type: application/pdf", "hello")
	}
}

// ServeHTTP runs the function of a request, then sweep for the bytes that it must move.
func (s *stack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.invoke("request", func() error {
		s.handler.ServeHTTP(w, r)
		return nil
	})
	moved := s.moved
	s.moved = nil
	s.sweepFor(moved...)
}

// answer answers a request of the journey.
func (s *stack) answer(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	r.RemoteAddr = "192.0.2.1:1234"
	s.ServeHTTP(w, r)
	return w.Result()
}

func (s *stack) sweepFor(asked ...lambda.SweepEvent) {
	for _, e := range asked {
		s.invoke("sweep", func() error { return last(worker.SweeperHandler(s.worker())(s.Context(), e)) })
	}
}

// last drops what a call returns beside its error.
func last[T any](_ T, err error) error { return err }

func (s *stack) worker() *worker.Worker {
	return &worker.Worker{Service: s.Service.Service, Providers: s.cloud.Providers()}
}

// invoke notes the calls of a function.
func (s *stack) invoke(function string, do func() error) {
	s.cloud.Published, s.cloud.Mails, s.cloud.Texts, s.others = nil, nil, nil, map[string]int{}
	s.Calls.Reset()
	check(s, do())
	calls := s.Calls.Reset()
	maps.Copy(calls, s.others)
	calls["publish"], calls["mail"], calls["text"] = len(s.cloud.Published), len(s.cloud.Mails), len(s.cloud.Texts)
	maps.DeleteFunc(calls, func(_ string, n int) bool { return n == 0 })
	s.runs = append(s.runs, strings.Replace(fmt.Sprint(calls), "map", function, 1))
}

// line writes a line of an operation and everything that follows from it.
func (s *stack) line(name string, do func()) line {
	s.follow() // what was before does not belong to it
	s.reads.Store(0)
	s.writes.Store(0)
	s.runs = nil
	do()
	for s.follow() {
	}
	l := line{s.reads.Load(), s.writes.Load(), s.runs}
	s.write(name, l)
	return l
}

func (s *stack) write(name string, l line) {
	fmt.Fprintf(&s.text, "%s | %d | %d | %s\n", name, l.reads, l.writes, strings.Join(l.runs, " "))
}

// follow hands each new record of the table's stream to relay, alone, which is the most
// expensive way. It reports whether there was one.
func (s *stack) follow() bool {
	var records []events.DynamoDBEventRecord
	check(s, s.Data.Table.Scan(s.Context(), func(item table.Item) error {
		notice := strings.HasPrefix(item.Key.PK, notify.OutboxPrefix)
		if s.passed[item.Key] || !notice && !strings.HasPrefix(item.Key.PK, notify.EventPrefix) {
			return nil
		}
		s.passed[item.Key] = true
		var v struct{ Channel, Type, Body string }
		err, text := item.Decode(&v), events.NewStringAttribute
		records = append(records, events.DynamoDBEventRecord{EventName: "INSERT", Change: events.DynamoDBStreamRecord{
			Keys: map[string]events.DynamoDBAttributeValue{"pk": text(item.Key.PK), "sk": text(item.Key.SK)},
			NewImage: map[string]events.DynamoDBAttributeValue{
				"channel": text(v.Channel),
				"type":    text(v.Type),
				"body":    text(v.Body),
			},
		}})
		return err
	}))
	slices.SortFunc(records, func(a, b events.DynamoDBEventRecord) int { // their keys are random
		return cmp.Compare(a.Change.NewImage["channel"].String(), b.Change.NewImage["channel"].String())
	})
	for _, r := range records {
		event := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{r}}
		s.invoke("relay", func() error { return last(worker.RelayerHandler(s.worker())(s.Context(), event)) })
		for _, m := range s.cloud.Published[notify.NoticesTopic] {
			s.carry(m, r.Change.Keys["sk"].String())
		}
	}
	return len(records) > 0
}

// carry hands a message to email or sms, and SES's feedback on the mail to feedback.
func (s *stack) carry(m notify.TopicMessage, notice string) {
	sender := map[string]string{string(files.SMS): "sms"}[m.Value]
	record := worker.CourierRecord{SQSMessage: events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: m.Body}}
	event := worker.CourierEvent{Records: []worker.CourierRecord{record}}
	s.invoke(cmp.Or(sender, "email"), func() error {
		return last(worker.CourierHandler(s.worker())(s.Context(), event))
	})
	for _, mail := range s.cloud.Mails {
		text, err := json.Marshal(map[string]string{"text": mail.Text})
		check(s, err)
		s.learn(plain(s, text))
		told := fmt.Sprintf(`{"eventType":"Delivery","mail":{"tags":{"notice":[%q]}}}`, notice)
		event := fmt.Appendf(nil, `{"Records":[{"Sns":{"Message":%q}}]}`, told)
		s.invoke("feedback", func() error { return worker.FeedbackHandler(s.worker())(s.Context(), event) })
	}
}
