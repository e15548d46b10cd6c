// Command cost counts the calls to AWS that an upload with one mail makes, by
// running the functions' own handlers on ports that count, and tells what AWS
// charges for them. What is free each month is not taken off.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"ferry/shared/auth"
	"ferry/shared/boot/courier"
	"ferry/shared/boot/feedback"
	"ferry/shared/boot/function"
	"ferry/shared/boot/local"
	"ferry/shared/boot/relayer"
	"ferry/shared/endpoint"
	"ferry/shared/endpoint/upload"
	"ferry/shared/relay"
	"ferry/shared/table"
	"ferry/shared/users"
)

func main() {
	if err := measure(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "ferry-cost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := count(ctx, dir)
	if err != nil {
		return err
	}
	report(b)
	return nil
}

// way is the way of an upload through the functions.
type way struct {
	*bill
	*cloud
	ports *endpoint.Ports
	raw   table.Table // not counted
	token string
	seen  map[table.Key]bool // by the stream
}

// count does 101 uploads, so that the area has the hundred files that an answer
// shows, and counts the last, with its mail.
func count(ctx context.Context, dir string) (*bill, error) {
	settings := endpoint.Settings{PublicURL: "https://files.example.com/v1", Events: true}
	data, err := local.Open(dir, settings, local.Options{NoSync: true, Hash: auth.Params{Memory: 64, Time: 1, Threads: 1}})
	if err != nil {
		return nil, err
	}
	defer data.Close()
	w := &way{ports: data.Ports, raw: data.Ports.Table, seen: map[table.Key]bool{}}
	w.ports.MailFrom = "Ferry <ferry@example.com>"
	if err := w.login(ctx); err != nil {
		return nil, err
	}
	for range 101 {
		w.begin(data)
		if err := w.upload(ctx); err != nil {
			return nil, err
		}
	}
	return w.bill, nil
}

// begin counts from zero.
func (w *way) begin(data *local.Data) {
	w.bill = newBill()
	w.cloud = &cloud{w.bill, map[relay.Topic][]relay.Message{}}
	w.ports.Table, w.ports.Blobs = countedTable{w.raw, w.bill}, countedBlobs{data.Disk, w.bill}
	w.ports.Topics, w.ports.Queue, w.ports.Mail = w.cloud, w.cloud, w.cloud
}

func (w *way) login(ctx context.Context) error {
	hash, err := w.ports.Hasher.Hash(ctx, "a password of alice")
	if err != nil {
		return err
	}
	alice := users.User{Name: "alice", State: users.Active, Password: hash, Email: "alice@example.com"}
	if err := users.NewStore(w.raw, w.ports.Now).Add(ctx, alice); err != nil {
		return err
	}
	_, token, err := w.ports.Auth().Login(ctx, "alice", "a password of alice", "203.0.113.7")
	w.token = token
	return err
}

// invoked counts an event of a function.
func (w *way) invoked(name string) {
	r := runs()[name]
	w.bill.add(invocations, 1, "")
	w.bill.add(gbSeconds, r.gb*r.seconds, "")
}

// upload is one upload, its mail, and what SES tells of that.
func (w *way) upload(ctx context.Context) error {
	f := function.With(w.ports)
	r := httptest.NewRequestWithContext(ctx, "POST", "https://gateway/v1/upload?file=report.pdf&m=carla@example.com&i=hello", strings.NewReader(strings.Repeat("x", 100_000)))
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", "application/pdf")
	answer := httptest.NewRecorder()
	f.Handler(upload.Endpoint()).ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		return fmt.Errorf("the upload: %s", answer.Body)
	}
	w.bill.add(requests, 1, "")
	w.invoked("upload")
	if err := w.relay(ctx, f); err != nil {
		return err
	}
	id, err := w.email(ctx, f)
	if err != nil {
		return err
	}
	if err := w.relay(ctx, f); err != nil { // of the event that the link was sent
		return err
	}
	told := fmt.Sprintf(`{"eventType":"Delivery","mail":{"tags":{"notice":[%q]}}}`, id)
	event, err := json.Marshal(events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{Message: told}}}})
	if err != nil {
		return err
	}
	w.bill.add(publishes, 1, "")
	w.invoked("feedback")
	return feedback.Handler(f)(ctx, event)
}

// relay brings what is new in the table.
func (w *way) relay(ctx context.Context, f *function.Function) error {
	var e events.DynamoDBEvent
	err := w.raw.Scan(ctx, func(item table.Item) error {
		var v struct{ Channel, Type, Body string }
		outbox := strings.HasPrefix(item.Key.PK, relay.OutboxPrefix)
		if w.seen[item.Key] || !outbox && !strings.HasPrefix(item.Key.PK, relay.EventPrefix) {
			return nil
		}
		w.seen[item.Key] = true
		if err := item.Decode(&v); err != nil {
			return err
		}
		text := func(values ...string) map[string]events.DynamoDBAttributeValue {
			m := map[string]events.DynamoDBAttributeValue{}
			for i := 0; i < len(values); i += 2 {
				m[values[i]] = events.NewStringAttribute(values[i+1])
			}
			return m
		}
		e.Records = append(e.Records, events.DynamoDBEventRecord{EventName: "INSERT", Change: events.DynamoDBStreamRecord{
			Keys: text("pk", item.Key.PK, "sk", item.Key.SK), NewImage: text("channel", v.Channel, "type", v.Type, "body", v.Body),
		}})
		return nil
	})
	if err != nil || len(e.Records) == 0 {
		return err
	}
	w.invoked("relay")
	_, err = relayer.Handler(f)(ctx, e)
	return err
}

// email brings the queue's message: it was sent to the queue, is received and
// then removed, each with a request of its own.
func (w *way) email(ctx context.Context, f *function.Function) (id string, err error) {
	body := w.published[relay.Notices][0].Body
	w.bill.add(queueCalls, 3, "")
	w.invoked("email")
	answer, err := courier.Handler(f)(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", Body: body}}})
	if err != nil || len(answer.BatchItemFailures) > 0 {
		return "", fmt.Errorf("the mail: %+v, %w", answer, err)
	}
	key, err := relay.Key(body)
	return key.SK, err
}

func report(b *bill) {
	const uploads = 1000
	fmt.Printf("\nAWS's charges for %d uploads of 100 KB with one mail each, in an area of 100 files or more,\nus-east-1, list prices as of %s, free tier not taken off:\n\n", uploads, pricesDate)
	fmt.Printf("| | units | USD per unit | USD |\n|---|---|---|---|\n")
	total := 0.0
	for _, p := range prices() {
		usd := b.units[p.unit] * uploads / p.per * p.usd
		total += usd
		fmt.Printf("| [%s](%s) | %.0f | %.3g | %.5f |\n", p.unit, p.source, b.units[p.unit]*uploads, p.usd/p.per, usd)
	}
	fmt.Printf("| together | | | %.4f |\n\nCalls of one upload:", total)
	for _, name := range slices.Sorted(maps.Keys(b.calls)) {
		fmt.Printf(" %s %d;", name, b.calls[name])
	}
	fmt.Println(" and what AWS calls itself.")
}
