package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/worker"
	"ferry/shared/notify"
)

func relayer(t *testing.T, c *boottest.Cloud) *worker.Worker {
	return worker.With(&api.Ports{Log: boottest.Log(t)}, c.Providers())
}

func TestRecordsOfTheStreamReachTheirTopics(t *testing.T) {
	t.Parallel()
	fixture := boottest.Load(t, "relay")
	var cloud boottest.Cloud
	answer, err := lambda.NewHandler(worker.RelayerHandler(relayer(t, &cloud))).Invoke(t.Context(), fixture.Event)
	apitest.Must(t, err)
	apitest.Must(t, fixture.Expect.Check(answer))
	notice, event := cloud.Published[notify.NoticesTopic], cloud.Published[notify.EventsTopic]
	if len(notice) != 1 || notice[0].Value != "mail" || strings.Contains(notice[0].Body, "carla") {
		t.Errorf("for the notice, %v was published", notice)
	}
	if len(event) != 1 || event[0].Value != "file.uploaded" || !json.Valid([]byte(event[0].Body)) {
		t.Errorf("for the event, %v was published", event)
	}
}

func TestRecordsThatATopicDidNotAcceptComeAgain(t *testing.T) {
	t.Parallel()
	var e events.DynamoDBEvent
	boottest.Load(t, "relay").Decode(t, &e)
	cloud := boottest.Cloud{TopicsErr: errors.New("no topic")}
	answer, err := worker.RelayerHandler(relayer(t, &cloud))(t.Context(), e)
	if err != nil || len(answer.BatchItemFailures) != 2 || answer.BatchItemFailures[0].ItemIdentifier != e.Records[0].Change.SequenceNumber {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
}

// TestAnEventThatItsTopicRefusesForGoodIsGivenUp: a notice comes again, because its
// message cannot be the reason for the refusal.
func TestAnEventThatItsTopicRefusesForGoodIsGivenUp(t *testing.T) {
	t.Parallel()
	var e events.DynamoDBEvent
	boottest.Load(t, "relay").Decode(t, &e)
	cloud := boottest.Cloud{TopicsErr: fmt.Errorf("%w: too long", notify.ErrRefused)}
	w := relayer(t, &cloud)
	var log strings.Builder
	w.Function.Ports.Log = slog.New(slog.NewTextHandler(&log, nil))
	answer, err := worker.RelayerHandler(w)(t.Context(), e)
	if err != nil || len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != e.Records[0].Change.SequenceNumber {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	if said := log.String(); strings.Count(said, "level=ERROR") != 2 || strings.Count(said, "given up") != 1 || !strings.Contains(said, "too long") || !strings.Contains(said, "event#") {
		t.Errorf("the log says %s", said)
	}
}

func TestOnlyNewItemsArePassedOn(t *testing.T) {
	t.Parallel()
	var e events.DynamoDBEvent
	boottest.Load(t, "relay").Decode(t, &e)
	for i, change := range []string{"MODIFY", "REMOVE"} {
		e.Records[i].EventName = change
	}
	var cloud boottest.Cloud
	answer, err := worker.RelayerHandler(relayer(t, &cloud))(t.Context(), e)
	if err != nil || len(answer.BatchItemFailures) != 0 || cloud.Published != nil {
		t.Errorf("the answer is %+v, %v, and %v was published", answer, err, cloud.Published)
	}
}
