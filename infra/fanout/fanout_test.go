package fanout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/worker"
	"ferry/shared/files"
	"ferry/shared/notify"
)

// send uploads a file of which recipients are to hear, and returns the IDs of
// their notices.
func (s *stack) send(recipients ...notify.Notice) (ids []string) {
	s.Helper()
	for i := range recipients {
		recipients[i].Kind, recipients[i].Lang, recipients[i].Base = notify.Link, "en", s.Values["PublicUrl"]
	}
	up, err := file.Service(s.upload.Ports).Begin(s.Context(), "alice", auth.User{Name: "alice"}, 3, files.Sending{Recipients: recipients})
	check(s, err)
	check(s, up.Add(s.Context(), files.Part{Name: "abc", Body: strings.NewReader("abc"), Size: 3}))
	stored, err := up.Commit(s.Context())
	check(s, err)
	return stored[0].Recipients
}

func to(channel notify.Channel, address string) notify.Notice {
	return notify.Notice{Channel: channel, To: address}
}

// states are those of notices, by their channels.
func (s *stack) states(ids []string) map[notify.Channel]notify.Notice {
	s.Helper()
	all, err := notify.States(s.Context(), s.email.Ports.Table, ids)
	check(s, err)
	by := map[notify.Channel]notify.Notice{}
	for _, n := range all {
		by[n.Channel] = n
	}
	return by
}

// types are those of published events.
func kinds(bodies []string) (all []string) {
	for _, b := range bodies {
		var e struct{ SpecVersion, Type string }
		if json.Unmarshal([]byte(b), &e) == nil && e.SpecVersion == "1.0" {
			all = append(all, e.Type)
		}
	}
	slices.Sort(all)
	return all
}

func TestAnUploadReachesEachRecipientOnceHoweverOftenTheStreamTells(t *testing.T) {
	t.Parallel()
	s := begin(t, map[string]string{"SmsSending": "on"})
	s.verify()
	ids := s.send(to(notify.Mail, s.ann), to(notify.SMS, s.phone))
	s.relayAll(s.records())
	if n, failed := s.deliver("MailQueue", s.email, 1); n != 1 || failed != 0 {
		t.Errorf("the queue of mails had %d messages, of which %d failed", n, failed)
	}
	if n, failed := s.deliver("SmsQueue", s.sms, 1); n != 1 || failed != 0 {
		t.Errorf("the queue of text messages had %d messages, of which %d failed", n, failed)
	}
	for channel, n := range s.states(ids) {
		if n.State() != notify.Sent || n.Provider == "" {
			t.Errorf("%s is %s, as %q", channel, n.State(), n.Provider)
		}
	}
	records := s.records()
	s.relayAll(records[len(records)-2:]) // the events of both links
	if got := fmt.Sprint(kinds(s.look("EventsTopic"))); got != "[file.uploaded link.sent link.sent]" {
		t.Errorf("published were %s", got)
	}
	for range 3 { // the stream once more, in any order, and each message twice
		records = append(records, records[:3]...)
		rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		s.relayAll(records)
		s.deliver("MailQueue", s.email, 1)
		s.deliver("SmsQueue", s.sms, 1)
	}
	for _, address := range []string{s.ann, s.phone} {
		if texts := s.sent(address); len(texts) != 1 || !strings.Contains(texts[0], "https://files.example.com/v1/download/file") {
			t.Errorf("%s got %d messages: %v", address, len(texts), texts)
		}
	}
}

func TestWithoutTextMessagesTheSenderSeesThatTheyFail(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.verify()
	ids := s.send(to(notify.Mail, s.ann), to(notify.SMS, s.phone))
	s.relayAll(s.records())
	if n, failed := s.deliver("MailQueue", s.email, 1); n != 2 || failed != 0 {
		t.Errorf("the queue of mails had %d messages, of which %d failed", n, failed)
	}
	if n := len(s.receive("SmsQueue", 0)); n != 0 {
		t.Errorf("the queue that nobody reads has %d messages", n)
	}
	by := s.states(ids)
	if by[notify.Mail].State() != notify.Sent || by[notify.SMS].State() != notify.Failed || len(s.sent(s.phone)) != 0 {
		t.Errorf("the states are %+v", by)
	}
}

func (s *stack) depth(queue string, which types.QueueAttributeName) string {
	s.Helper()
	a, err := s.SQS.GetQueueAttributes(s.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(s.Values[queue]), AttributeNames: []types.QueueAttributeName{which}})
	check(s, err)
	return a.Attributes[string(which)]
}

func TestARetryIsTheSameMessageThatTheQueueHides(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	ids := s.send(to(notify.Mail, s.ann))
	s.relayAll(s.records())
	if n, failed := s.deliver("MailQueue", s.email, 1); n != 1 || failed != 1 { // the sender is not verified
		t.Fatalf("the queue had %d messages, of which %d failed", n, failed)
	}
	if n := s.states(ids)[notify.Mail]; n.State() != notify.Queued || n.Tries != 1 || n.LastError == "" {
		t.Errorf("the notice is %+v", n)
	}
	if hidden := s.depth("MailQueue", "ApproximateNumberOfMessagesNotVisible"); hidden != "1" {
		t.Errorf("%s messages are hidden", hidden)
	}
	s.verify()
	if n, failed := s.deliver("MailQueue", s.email, 10); n != 1 || failed != 0 { // it comes within a second, not after the 12 minutes of the queue
		t.Errorf("the queue had %d messages, of which %d failed", n, failed)
	}
	if n := s.states(ids)[notify.Mail]; n.State() != notify.Sent || n.Tries != 2 || len(s.sent(s.ann)) != 1 {
		t.Errorf("the notice is %+v", n)
	}
}

func TestAMessageThatIsNeverDoneWithEndsAmongTheDeadAndCanComeBack(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.verify()
	_, err := s.SQS.SetQueueAttributes(s.Context(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String(s.Values["MailQueue"]), Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, s.Values["MailDeadLetters.Arn"]), "VisibilityTimeout": "0",
	}})
	check(t, err)
	ids := s.send(to(notify.Mail, s.ann))
	s.relayAll(s.records())
	for range 3 { // as by a function that is killed
		s.receive("MailQueue", 1)
	}
	if n := s.depth("MailDeadLetters", "ApproximateNumberOfMessages"); n != "1" {
		t.Fatalf("%s messages are dead", n)
	}
	for _, m := range s.receive("MailDeadLetters", 0) { // the operator's redrive
		_, err := s.SQS.SendMessage(s.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(s.Values["MailQueue"]), MessageBody: m.Body})
		check(t, err)
		s.remove("MailDeadLetters", m)
	}
	s.deliver("MailQueue", s.email, 1)
	if n := s.states(ids)[notify.Mail]; n.State() != notify.Sent {
		t.Errorf("the notice is %+v", n)
	}
}

func TestWhatTheStreamLostTheSweepFinds(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.verify()
	s.send(to(notify.Mail, s.ann))
	s.upload.Ports.Topics = s.relay.Ports.Topics
	_, err := worker.SweeperHandler(s.upload)(t.Context())
	check(t, err)
	if n, _ := s.deliver("MailQueue", s.email, 0); n != 0 {
		t.Errorf("%d messages came at once", n)
	}
	s.ahead = 2 * time.Hour
	_, err = worker.SweeperHandler(s.upload)(t.Context())
	check(t, err)
	s.deliver("MailQueue", s.email, 1)
	if n := len(s.sent(s.ann)); n != 1 {
		t.Errorf("%d mails were sent", n)
	}
}

func TestABounceReachesTheSenderOfTheFile(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.verify()
	ids := s.send(to(notify.Mail, s.ann))
	s.relayAll(s.records())
	s.deliver("MailQueue", s.email, 1)
	var event struct {
		Records []struct{ Sns struct{ Message string } }
	}
	boottest.Load(t, "feedback").Decode(t, &event)
	message := strings.NewReplacer("carla@example.com", s.ann, "1759460400000-0a1b2c3d4e5f6071", ids[0]).Replace(event.Records[0].Sns.Message)
	for range 2 {
		_, err := s.SNS.Publish(s.Context(), &sns.PublishInput{TopicArn: aws.String(s.Values["FeedbackTopic"]), Message: &message})
		check(t, err)
	}
	if n := s.tell(); n != 2 {
		t.Errorf("%d events came", n)
	}
	if n := s.states(ids)[notify.Mail]; n.State() != notify.Failed || !strings.Contains(n.LastError, "user unknown") {
		t.Errorf("the notice is %+v", n)
	}
	if _, ok, err := notify.Suppressed(t.Context(), s.email.Ports.Table, s.ann); err != nil || !ok {
		t.Errorf("the address is suppressed: %v, %v", ok, err)
	}
	s.relayAll(s.records())
	if got := kinds(s.look("EventsTopic")); !slices.Contains(got, "link.failed") {
		t.Errorf("published were %v", got)
	}
}
