package fanout

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/notify"
)

// records reads the whole stream of the table, as Lambda shows it to a function
// with the filter of the template.
func (s *stack) records() (all []events.DynamoDBEventRecord) {
	s.Helper()
	list, err := s.streams.ListStreams(s.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String(s.name)})
	check(s, err)
	d, err := s.streams.DescribeStream(s.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: list.Streams[0].StreamArn})
	check(s, err)
	for _, shard := range d.StreamDescription.Shards {
		it, err := s.streams.GetShardIterator(s.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: list.Streams[0].StreamArn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		check(s, err)
		for next := it.ShardIterator; next != nil; {
			page, err := s.streams.GetRecords(s.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			check(s, err)
			for _, r := range page.Records {
				if e := record(r); passes(e) {
					all = append(all, e)
				}
			}
			if next = page.NextShardIterator; len(page.Records) == 0 {
				break
			}
		}
	}
	return all
}

// passes is the filter of the template, to which infra/stack holds its words.
func passes(r events.DynamoDBEventRecord) bool {
	pk := r.Change.Keys["pk"].String()
	return r.EventName == "INSERT" && (strings.HasPrefix(pk, notify.OutboxPrefix) || strings.HasPrefix(pk, notify.EventPrefix))
}

func record(r streamtypes.Record) events.DynamoDBEventRecord {
	return events.DynamoDBEventRecord{
		EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventSource: "aws:dynamodb",
		Change: events.DynamoDBStreamRecord{
			Keys: attributes(r.Dynamodb.Keys), NewImage: attributes(r.Dynamodb.NewImage),
			SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber), StreamViewType: string(r.Dynamodb.StreamViewType),
		},
	}
}

func attributes(all map[string]streamtypes.AttributeValue) map[string]events.DynamoDBAttributeValue {
	out := map[string]events.DynamoDBAttributeValue{}
	for name, v := range all {
		switch v := v.(type) {
		case *streamtypes.AttributeValueMemberS:
			out[name] = events.NewStringAttribute(v.Value)
		case *streamtypes.AttributeValueMemberN:
			out[name] = events.NewNumberAttribute(v.Value)
		case *streamtypes.AttributeValueMemberBOOL:
			out[name] = events.NewBooleanAttribute(v.Value)
		}
	}
	return out
}

// relayAll brings records to the function by batches of 100.
func (s *stack) relayAll(records []events.DynamoDBEventRecord) {
	s.Helper()
	for batch := range slices.Chunk(records, 100) {
		answer, err := worker.RelayerHandler(s.relay)(s.Context(), events.DynamoDBEvent{Records: batch})
		if err != nil || len(answer.BatchItemFailures) > 0 {
			s.Fatalf("relaying: %+v, %v", answer, err)
		}
	}
}

// receive takes up to 10 messages, and waits for so many seconds for the first.
func (s *stack) receive(queue string, seconds int32) []types.Message {
	s.Helper()
	out, err := s.SQS.ReceiveMessage(s.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(s.Values[queue]), MaxNumberOfMessages: 10, WaitTimeSeconds: seconds,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"},
	})
	check(s, err)
	return out.Messages
}

func (s *stack) remove(queue string, m types.Message) {
	s.Helper()
	_, err := s.SQS.DeleteMessage(s.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(s.Values[queue]), ReceiptHandle: m.ReceiptHandle})
	check(s, err)
}

// deliver brings what is in a queue to its function, as Lambda does: what the
// function does not name as failed is removed. It returns how many messages
// there were, and how many failed.
func (s *stack) deliver(queue string, f *lambda.Function, seconds int32) (count, failed int) {
	s.Helper()
	for {
		messages := s.receive(queue, seconds)
		if len(messages) == 0 {
			return count, failed
		}
		var e events.SQSEvent
		for _, m := range messages {
			e.Records = append(e.Records, events.SQSMessage{
				MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes, EventSource: "aws:sqs",
			})
		}
		answer, err := worker.CourierHandler(f)(s.Context(), e)
		check(s, err)
		again := map[string]bool{}
		for _, m := range answer.BatchItemFailures {
			again[m.ItemIdentifier] = true
		}
		for _, m := range messages {
			if !again[*m.MessageId] {
				s.remove(queue, m)
			}
		}
		count, failed, seconds = count+len(messages), failed+len(again), 0
	}
}

// look takes what was published on a topic.
func (s *stack) look(topic string) (bodies []string) {
	s.Helper()
	for {
		messages := s.receive(topic+"Look", 0)
		if len(messages) == 0 {
			return bodies
		}
		for _, m := range messages {
			var wrapped struct{ Message string }
			check(s, json.Unmarshal([]byte(*m.Body), &wrapped))
			bodies = append(bodies, wrapped.Message)
			s.remove(topic+"Look", m)
		}
	}
}

// tell brings what was published on the topic of feedback to its function.
func (s *stack) tell() (count int) {
	s.Helper()
	for _, body := range s.look("FeedbackTopic") {
		event, err := json.Marshal(events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{Type: "Notification", Message: body}}}})
		check(s, err)
		check(s, worker.FeedbackHandler(s.feedback)(s.Context(), event))
		count++
	}
	return count
}

// sent is what the stand-ins of SES and SNS have sent to an address or number.
func (s *stack) sent(to string) (texts []string) {
	s.Helper()
	resp, err := http.Get(os.Getenv("AWS_ENDPOINT_URL_SNS") + "/moto-api/data.json")
	check(s, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check(s, err)
	var all struct {
		SES struct {
			Message []struct {
				Body         string
				Destinations struct{ ToAddresses []string }
			}
		}
		SNS struct {
			SMS []struct {
				PhoneNumber string `json:"phone_number"`
				Message     string
			}
		}
	}
	check(s, json.Unmarshal(text, &all))
	for _, m := range all.SES.Message {
		if slices.Contains(m.Destinations.ToAddresses, to) {
			texts = append(texts, m.Body)
		}
	}
	for _, m := range all.SNS.SMS {
		if m.PhoneNumber == to {
			texts = append(texts, m.Message)
		}
	}
	return texts
}
