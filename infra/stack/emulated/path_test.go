package emulated

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
)

// call sends a request as alice, expects a status and returns the answer.
func (d *deployed) call(method, path, kind, body string, status int) []byte {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.Base+path, strings.NewReader(body))
	check(d, err)
	r.SetBasicAuth("alice", boottest.Password)
	r.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(r)
	check(d, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check(d, err)
	if resp.StatusCode != status {
		d.Fatalf("%s %s: status %d, want %d: %s", method, path, resp.StatusCode, status, text)
	}
	return text
}

// upload sends a file as alice.
func (d *deployed) upload(query url.Values, content string) {
	d.Helper()
	query.Set("file", "report.txt")
	d.call("PUT", "/upload?"+query.Encode(), "text/plain", content, 200)
}

// ask reads what the emulator has sent.
func (d *deployed) ask(path string, into any) {
	d.Helper()
	resp, err := http.Get(os.Getenv(AddressVariable) + path)
	check(d, err)
	defer resp.Body.Close()
	check(d, json.NewDecoder(resp.Body).Decode(into))
}

// mailed returns the texts of the mails to an address.
func (d *deployed) mailed(address string) (texts []string) {
	d.Helper()
	var all struct {
		Messages map[string][]struct { // by account
			To       []string
			BodyText string
		}
	}
	d.ask("/_ministack/ses/messages", &all)
	for _, messages := range all.Messages {
		for _, m := range messages {
			if slices.Contains(m.To, address) {
				texts = append(texts, m.BodyText)
			}
		}
	}
	return texts
}

// texted returns the text messages to a number.
func (d *deployed) texted(number string) (texts []string) {
	d.Helper()
	var all struct {
		Messages map[string][]struct{ Message string } `json:"sms_messages"`
	}
	d.ask("/_ministack/sns/sms-messages", &all)
	for _, m := range all.Messages[number] {
		texts = append(texts, m.Message)
	}
	return texts
}

// listen subscribes a queue to the stack's topic of events, and returns a function that
// reads the types of all events so far.
func (d *deployed) listen() func() []string {
	d.Helper()
	topic := d.Outputs["EventsTopicArn"]
	allowed := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},` +
		`"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"` + topic + `"}}}]}`
	made, err := d.queues().CreateQueue(d.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String(d.name + "-listener"), Attributes: map[string]string{"Policy": allowed},
	})
	check(d, err)
	_, err = sns.NewFromConfig(d.config).Subscribe(d.Context(), &sns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(d.attribute(
			*made.QueueUrl,
			types.QueueAttributeNameQueueArn,
		)),
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	check(d, err)
	kinds := map[string]string{} // by the events' IDs: one may come twice
	return func() []string {
		for _, m := range d.receive(*made.QueueUrl) {
			var e struct{ ID, Type string }
			check(d, json.Unmarshal([]byte(*m.Body), &e))
			kinds[e.ID] = e.Type
			d.remove(*made.QueueUrl, m)
		}
		return slices.Sorted(maps.Values(kinds))
	}
}

var link = regexp.MustCompile(`https?://[^\s"<>\\]+/download/file\?[^\s"<>\\]+`)

func links(t *testing.T, c *Cloud) {
	check(t, c.Verify(t.Context(), "ferry@path.example.com"))
	d := deploy(t, c, map[string]string{
		"SenderAddress": "ferry@path.example.com",
		"SmsSending":    "on",
		"Metrics":       "on",
		"Events":        "on",
	})
	d.metrics()
	if missing, ok := d.Outputs["MailMissing"]; ok {
		t.Errorf("with a sender, the output MailMissing says %s", missing)
	}
	events := d.listen()
	mail, phone := "carla@"+d.name+".example.com", d.phone()
	d.upload(url.Values{"m": {mail}, "c": {phone}, "i": {"here it is"}}, "the whole report")
	d.eventually("the mail", func() bool { return len(d.mailed(mail)) > 0 })
	d.eventually("the text message", func() bool { return len(d.texted(phone)) > 0 })
	d.eventually("the events", func() bool {
		return fmt.Sprint(events()) == "[file.uploaded link.sent link.sent]"
	})
	for channel, text := range map[string]string{"mail": d.mailed(mail)[0], "text message": d.texted(phone)[0]} {
		if err := fetches(link.FindString(text), "the whole report"); err != nil {
			t.Errorf("the link of the %s: %v", channel, err)
		}
	}
	d.eventually("the events of the downloads", func() bool {
		return fmt.Sprint(events()) == "[file.downloaded file.downloaded file.uploaded link.sent link.sent]"
	})
	for channel, n := range d.notices(4) {
		if n.State() != notify.Sent || n.Provider == "" {
			t.Errorf("%s is %s, as %q", channel, n.State(), n.Provider)
		}
	}
	for _, queue := range []string{"MailQueue", "SmsQueue"} {
		d.eventually("the end of the messages", func() bool {
			return d.depth(queue, "ApproximateNumberOfMessages") == "0" &&
				d.depth(queue, "ApproximateNumberOfMessagesNotVisible") == "0"
		})
	}
	if mails, texts := len(d.mailed(mail)), len(d.texted(phone)); mails != 1 || texts != 1 {
		t.Errorf("there are %d mails and %d text messages", mails, texts)
	}
}

// metrics fails unless the log has metrics.
func (d *deployed) metrics() {
	d.Helper()
	r, err := d.Invoke(d.Context(), "health", boottest.Load(d, "health").Event)
	check(d, err)
	log, err := base64.StdEncoding.DecodeString(r.Log)
	check(d, err)
	if !bytes.Contains(log, []byte(`"Requests":1,`)) || !bytes.Contains(log, []byte(`"Namespace":"Ferry"`)) {
		d.Errorf("there are no metrics in the log: %s", log)
	}
}

func (d *deployed) event(e any) []byte {
	d.Helper()
	text, err := json.Marshal(e)
	check(d, err)
	return text
}

// phone returns a number that no other stack sends to.
func (d *deployed) phone() string { return "+39333" + fmt.Sprintf("%07d", time.Now().UnixNano()%1e7) }

// notices returns the notices of a file of alice by their channels.
func (d *deployed) notices(id int64) map[files.Channel]notify.Notice {
	d.Helper()
	file, err := d.file(id)
	check(d, err)
	all, err := notify.States(d.Context(), d.ports.Table, file.Recipients)
	check(d, err)
	by := map[files.Channel]notify.Notice{}
	for _, n := range all {
		by[n.Channel] = n
	}
	return by
}

func (d *deployed) queues() *sqs.Client { return sqs.NewFromConfig(d.config) }

// depth returns how many messages a queue of the template has.
func (d *deployed) depth(queue string, which types.QueueAttributeName) string {
	d.Helper()
	return d.attribute(d.IDs[queue], which)
}

func (d *deployed) attribute(address string, name types.QueueAttributeName) string {
	d.Helper()
	got, err := d.queues().GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl:       &address,
		AttributeNames: []types.QueueAttributeName{name},
	})
	check(d, err)
	return got.Attributes[string(name)]
}

func (d *deployed) receive(address string) []types.Message {
	d.Helper()
	got, err := d.queues().ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{
		QueueUrl:            &address,
		MaxNumberOfMessages: 10,
	})
	check(d, err)
	return got.Messages
}

func (d *deployed) remove(address string, m types.Message) {
	d.Helper()
	_, err := d.queues().DeleteMessage(d.Context(), &sqs.DeleteMessageInput{
		QueueUrl:      &address,
		ReceiptHandle: m.ReceiptHandle,
	})
	check(d, err)
}

func bounce(t *testing.T, c *Cloud) {
	check(t, c.Verify(t.Context(), "ferry@bounce.example.com"))
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@bounce.example.com"})
	mail := "nobody@" + d.name + ".example.com"
	d.upload(url.Values{"m": {mail}}, "the whole report")
	state := func() string { return string(d.call("GET", "/files/4", "", "", 200)) }
	d.eventually("the mail", func() bool { return strings.Contains(state(), `"sent"`) })
	var event events.SNSEvent
	boottest.Load(t, "feedback").Decode(t, &event)
	text := event.Records[0].SNS.Message
	message := strings.NewReplacer("carla@example.com", mail, noticeID.FindString(text), d.notices(4)[files.Mail].ID).
		Replace(text)
	for range 2 {
		_, err := sns.NewFromConfig(d.config).Publish(t.Context(), &sns.PublishInput{
			TopicArn: aws.String(d.IDs["FeedbackTopic"]),
			Message:  &message,
		})
		check(t, err)
	}
	d.eventually("the bounce", func() bool { return strings.Contains(state(), "user unknown") })
	if n := d.notices(4)[files.Mail]; n.State() != notify.Failed {
		t.Errorf("the notice is %+v", n)
	}
	if _, ok, err := notify.Suppressed(t.Context(), d.ports.Table, mail); err != nil || !ok {
		t.Errorf("the address is suppressed: %v, %v", ok, err)
	}
}

var noticeID = regexp.MustCompile(`\d{13}-[0-9A-Za-z_-]{16}`)

// file reads the record of a file of alice.
func (d *deployed) file(id int64) (files.File, error) {
	d.Helper()
	alice, err := (&users.Service{Table: d.ports.Table, Now: time.Now}).Get(d.Context(), "alice")
	check(d, err)
	return d.ports.Files().Get(d.Context(), alice, blob.Files, id)
}

// retry starts with a sender that SES has not verified yet. The failed message is hidden
// by its queue and comes again within a second, not after the queue's 12 minutes.
func retry(t *testing.T, c *Cloud) {
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@retry.example.com"})
	mail := "carla@" + d.name + ".example.com"
	d.upload(url.Values{"m": {mail}}, "the whole report")
	d.eventually("a try that fails", func() bool { return d.notices(4)[files.Mail].LastError != "" })
	if n := d.notices(4)[files.Mail]; n.State() == notify.Sent || n.Tries == 0 {
		t.Errorf("the notice is %+v", n)
	}
	d.eventually("a hidden message", func() bool {
		return d.depth("MailQueue", "ApproximateNumberOfMessagesNotVisible") == "1"
	})
	check(t, c.Verify(t.Context(), "ferry@retry.example.com"))
	d.eventually("the mail", func() bool { return d.notices(4)[files.Mail].State() == notify.Sent })
	if n, mails := d.notices(4)[files.Mail], len(d.mailed(mail)); n.Tries < 2 || mails != 1 {
		t.Errorf("there are %d mails after %d tries", mails, n.Tries)
	}
}

// deadLetters lets a function take messages and never finish.
func deadLetters(t *testing.T, c *Cloud) {
	check(t, c.Verify(t.Context(), "ferry@dead.example.com"))
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@dead.example.com"})
	queue, dead, mail := d.IDs["MailQueue"], d.IDs["MailDeadLetters"], "carla@"+d.name+".example.com"
	d.pause("email", true)
	var policy struct {
		Dead string `json:"deadLetterTargetArn"`
	}
	check(t, json.Unmarshal([]byte(d.depth("MailQueue", "RedrivePolicy")), &policy))
	_, err := d.queues().SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &queue,
		Attributes: map[string]string{
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`,
				policy.Dead), "VisibilityTimeout": "0",
		},
	})
	check(t, err)
	d.upload(url.Values{"m": {mail}}, "the whole report")
	d.eventually("the dead letter", func() bool {
		d.receive(queue)
		return d.depth("MailDeadLetters", "ApproximateNumberOfMessages") == "1"
	})
	for _, m := range d.receive(dead) { // the operator's redrive
		_, err := d.queues().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: m.Body})
		check(t, err)
		d.remove(dead, m)
	}
	d.pause("email", false)
	d.eventually("the mail", func() bool {
		return d.notices(4)[files.Mail].State() == notify.Sent && len(d.mailed(mail)) == 1
	})
}

func sweep(t *testing.T, c *Cloud) {
	d := deploy(t, c, map[string]string{"SweepSchedule": "rate(1 minute)"})
	d.uploadAgo(31*24*time.Hour, files.Sending{}) // a file is kept for 30 days
	objects := func() int {
		all, err := d.ports.Blobs.List(t.Context(), blob.Files, "", 10)
		check(t, err)
		return len(all)
	}
	if n := objects(); n != 3 {
		t.Fatalf("there are %d objects before the sweep, want 3", n)
	}
	d.eventually("the sweep", func() bool { return objects() == 2 })
}

func moves(t *testing.T, c *Cloud) {
	d := deploy(t, c, nil)
	for _, step := range []struct {
		method, path string
		to           blob.Area
	}{{
		method: "DELETE",
		path:   "/files/1",
		to:     blob.Backup,
	}, {method: "POST", path: "/files/1/restore", to: blob.Files}} {
		d.call(step.method, step.path, "", "", 200)
		d.eventually("the bytes in the "+string(step.to)+" area", func() bool {
			var f files.File
			check(t, d.ports.Table.Get(t.Context(), files.Key(step.to, "alice", 1), &f))
			there, err := d.ports.Blobs.List(t.Context(), step.to, "", 10)
			check(t, err)
			return len(f.From) == 0 && slices.ContainsFunc(there, func(o blob.Object) bool { return o.Key == f.Blob })
		})
	}
}

// uploadAgo stores a file of alice with a clock that is set back.
func (d *deployed) uploadAgo(ago time.Duration, sending files.Sending) {
	d.Helper()
	then := service.New(d.ports.Ports, d.ports.Settings)
	then.Now = func() time.Time { return d.ports.Now().Add(-ago) }
	old := files.Part{Name: "old", Body: strings.NewReader("old"), Size: 3}
	check(d, boottest.Store(d.Context(), then.Files(), files.By{User: "alice"}, sending, old))
}

// lostByStream lets the stream deliver nothing.
func lostByStream(t *testing.T, c *Cloud) {
	check(t, c.Verify(t.Context(), "ferry@lost.example.com"))
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@lost.example.com"})
	d.pause("relay", true)
	mail := files.Message{Channel: files.Mail, To: "carla@" + d.name + ".example.com", Lang: "en", Base: d.Base}
	for _, ago := range []time.Duration{0, 2 * time.Hour} {
		d.uploadAgo(ago, files.Sending{Recipients: []files.Message{mail}})
	}
	d.invoke("sweep", boottest.Load(t, "sweep").Event)
	d.eventually("the older mail", func() bool { return d.notices(5)[files.Mail].State() == notify.Sent })
	if n := d.notices(4)[files.Mail]; n.State() != notify.Queued || len(d.mailed(mail.To)) != 1 {
		t.Errorf("the newer notice, which the stream may still deliver, is %+v", n)
	}
}

func deletion(t *testing.T, c *Cloud) {
	d := deploy(t, c, nil)
	_, err := cloudformation.NewFromConfig(d.config).
		DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &d.name})
	check(t, err)
	d.eventually("the end of the API's functions", func() bool {
		_, err := d.Invoke(t.Context(), "health", boottest.Load(t, "health").Event)
		return err != nil
	})
	if f, err := d.file(1); err != nil || f.Name != "Übersicht 1.png" {
		t.Errorf("the file is %+v, %v", f, err)
	}
	table := d.Environment["FERRY_TABLE"]
	_, err = dynamodb.NewFromConfig(d.config).DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
	if err == nil || !strings.Contains(err.Error(), "protected") {
		t.Errorf("the table can be deleted: %v", err)
	}
}
