package cloud_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/infra/cloud"
	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/fixture"
	"ferry/shared/files"

	"ferry/shared/auth"
)

// patience is how long a test waits for what comes by itself.
const patience = 2 * time.Minute

// eventually waits until something is so, and tells what is not.
func (d *deployed) eventually(what string, is func() bool) {
	d.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			d.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// call sends a request as alice and returns the answer of this status.
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
	resp, err := http.Get(d.Endpoint + path)
	check(d, err)
	defer resp.Body.Close()
	check(d, json.NewDecoder(resp.Body).Decode(into))
}

// mailed are the texts of the mails to an address.
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

// texted are the text messages to a number.
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

// listen subscribes a queue to the stack's topic of events, and returns what
// takes the types of those that came.
func (d *deployed) listen() func() []string {
	d.Helper()
	queues := sqs.NewFromConfig(d.config)
	made, err := queues.CreateQueue(d.Context(), &sqs.CreateQueueInput{QueueName: aws.String(d.name + "-listener"), Attributes: map[string]string{
		"Policy": fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, d.Outputs["EventsTopicArn"]),
	}})
	check(d, err)
	arn, err := queues.GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	check(d, err)
	_, err = sns.NewFromConfig(d.config).Subscribe(d.Context(), &sns.SubscribeInput{
		TopicArn: aws.String(d.Outputs["EventsTopicArn"]), Protocol: aws.String("sqs"), Endpoint: aws.String(arn.Attributes["QueueArn"]), Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	check(d, err)
	var kinds []string
	return func() []string {
		got, err := queues.ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10})
		check(d, err)
		for _, m := range got.Messages {
			var e struct{ SpecVersion, Type string }
			check(d, json.Unmarshal([]byte(*m.Body), &e))
			kinds = append(kinds, e.Type)
			_, err := queues.DeleteMessage(d.Context(), &sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: m.ReceiptHandle})
			check(d, err)
		}
		slices.Sort(kinds)
		return kinds
	}
}

var link = regexp.MustCompile(`https?://[^\s"<>\\]+/download/file\?[^\s"<>\\]+`)

func links(t *testing.T, c *cloud.Cloud) {
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@path.example.com", "SmsSending": "on"})
	if missing, ok := d.Outputs["MailMissing"]; ok {
		t.Errorf("with a sender, mail is said to lack %s", missing)
	}
	events := d.listen()
	mail, phone := "carla@"+d.name+".example.com", "+39333"+fmt.Sprintf("%07d", time.Now().UnixNano()%1e7)
	d.upload(url.Values{"m": {mail}, "c": {phone}, "i": {"here it is"}}, "the whole report")
	d.eventually("the mail", func() bool { return len(d.mailed(mail)) > 0 })
	d.eventually("the text message", func() bool { return len(d.texted(phone)) > 0 })
	d.eventually("the events", func() bool {
		return fmt.Sprint(events()) == "[file.uploaded link.sent link.sent]"
	})
	for channel, text := range map[string]string{"mail": d.mailed(mail)[0], "text message": d.texted(phone)[0]} {
		address := link.FindString(text)
		resp, err := http.Get(address)
		check(t, err)
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "the whole report" {
			t.Errorf("the link %q of the %s gives %q, %v", address, channel, got, err)
		}
	}
	d.eventually("the events of the downloads", func() bool {
		return fmt.Sprint(events()) == "[file.downloaded file.downloaded file.uploaded link.sent link.sent]"
	})
	if mails, texts := len(d.mailed(mail)), len(d.texted(phone)); mails != 1 || texts != 1 {
		t.Errorf("there are %d mails and %d text messages", mails, texts)
	}
}

func bounce(t *testing.T, c *cloud.Cloud) {
	d := deploy(t, c, map[string]string{"SenderAddress": "ferry@bounce.example.com"})
	mail := "nobody@" + d.name + ".example.com"
	d.upload(url.Values{"m": {mail}}, "the whole report")
	state := func() string { return string(d.call("GET", "/files/4", "", "", 200)) }
	d.eventually("the mail", func() bool { return strings.Contains(state(), `"sent"`) })
	file, err := d.file(4)
	check(t, err)
	var event struct {
		Records []struct{ Sns struct{ Message string } }
	}
	boottest.Load(t, "feedback").Decode(t, &event)
	id := noticeID.FindString(event.Records[0].Sns.Message)
	message := strings.NewReplacer("carla@example.com", mail, id, file.Recipients[0]).Replace(event.Records[0].Sns.Message)
	_, err = sns.NewFromConfig(d.config).Publish(t.Context(), &sns.PublishInput{TopicArn: aws.String(d.IDs["FeedbackTopic"]), Message: &message})
	check(t, err)
	d.eventually("the bounce", func() bool { return strings.Contains(state(), "user unknown") })
}

var noticeID = regexp.MustCompile(`\d{13}-[0-9A-Za-z_-]{16}`)

// file reads a file of alice as it is in the table.
func (d *deployed) file(id int64) (files.File, error) {
	d.Helper()
	alice, err := auth.NewUsers(d.ports.Table, time.Now).Get(d.Context(), "alice")
	check(d, err)
	return file.Service(d.ports).Get(d.Context(), alice, blob.Files, id)
}

func sweep(t *testing.T, c *cloud.Cloud) {
	d := deploy(t, c, map[string]string{"SweepSchedule": "rate(1 minute)"})
	now := d.ports.Now
	d.ports.Now = func() time.Time { return now().AddDate(0, 0, -31) } // a file is kept for 30 days
	up, err := file.Service(d.ports).Begin(t.Context(), "alice", auth.User{Name: "alice"}, 3, files.Sending{})
	check(t, err)
	check(t, up.Add(t.Context(), files.Part{Name: "old", Body: strings.NewReader("old"), Size: 3}))
	_, err = up.Commit(t.Context())
	check(t, err)
	d.ports.Now = now
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

func noSender(t *testing.T, c *cloud.Cloud) {
	d := deploy(t, c, nil)
	if !strings.Contains(d.Outputs["MailMissing"], "SenderAddress") {
		t.Errorf("the output says %q", d.Outputs["MailMissing"])
	}
	d.upload(url.Values{"m": {"carla@example.com"}}, "the whole report")
	if state := string(d.call("GET", "/files/4", "", "", 200)); !strings.Contains(state, `"queued"`) {
		t.Errorf("the file is %s", state)
	}
}

func deletion(t *testing.T, c *cloud.Cloud) {
	d := deploy(t, c, nil)
	_, err := cloudformation.NewFromConfig(d.config).DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: &d.name})
	check(t, err)
	d.eventually("the end of the API's functions", func() bool {
		_, err := d.Invoke(t.Context(), "Health", boottest.Load(t, "health").Event)
		return err != nil
	})
	if f, err := d.file(1); err != nil || f.Name != "Übersicht 1.png" {
		t.Errorf("the file is %+v, %v", f, err)
	}
}

// fixtures sends each function its event of events/, under the role that the
// template gives it, and compares the answer: a call that the role does not
// allow makes it another one.
func fixtures(t *testing.T, c *cloud.Cloud) {
	names, err := fixture.Names(root)
	check(t, err)
	if len(names) == 0 {
		t.Fatal("there are no events")
	}
	for _, name := range names {
		if name == "linkkey" { // answers to an address of AWS; the deployment has called it
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := fixture.Load(root, name)
			check(t, err)
			d := deploy(t, c, map[string]string{"PublicUrl": "", "SenderAddress": "ferry@fixtures.example.com", "SmsSending": "on"}) // the fixtures' links have the gateway's own address
			check(t, f.Notices(t.Context(), d.ports))
			check(t, d.sent(t.Context(), "")) // the stream brings them to email and sms by itself
			got, err := d.Invoke(t.Context(), d.id(f.Function), f.Event)
			check(t, err)
			if got.Failed != "" {
				t.Fatalf("%s: %s", got.Failed, got.Payload)
			}
			var answer bytes.Buffer
			check(t, json.Compact(&answer, got.Payload)) // the emulator writes JSON anew
			check(t, f.Expect.Check(answer.Bytes()))
		})
	}
}

// id is the template's name of a function.
func (d *deployed) id(function string) string {
	d.Helper()
	for id := range d.IDs {
		if strings.ToLower(id) == function {
			return id
		}
	}
	d.Fatalf("the stack has no function %s", function)
	return ""
}
