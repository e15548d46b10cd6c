package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/notify"
)

// TestNoBucketAbortsAnUploadThatIsStillOpen compares the buckets' rule for unfinished
// uploads with how long a session lives and is remembered.
func TestNoBucketAbortsAnUploadThatIsStillOpen(t *testing.T) {
	t.Parallel()
	if blob.PartsLife <= files.SessionLife {
		t.Errorf("the store keeps parts for %s and a session is open for %s", blob.PartsLife, files.SessionLife)
	}
	tpl := read(t)
	for _, bucket := range tpl.ofType("AWS::S3::Bucket") {
		rules := list(at(tpl.Resources[bucket], "Properties", "LifecycleConfiguration", "Rules"))
		days, _ := at(rules[0], "AbortIncompleteMultipartUpload", "DaysAfterInitiation").(int)
		if life := time.Duration(days) * 24 * time.Hour; life <= blob.PartsLife {
			t.Errorf("%s ends an upload after %s, and a session is remembered for %s", bucket, life, blob.PartsLife)
		}
	}
}

func TestTheStreamBringsOnlyWhatIsRelayed(t *testing.T) {
	t.Parallel()
	filters := at(read(t).functions()["relay"].events("DynamoDB")[0], "FilterCriteria", "Filters")
	const pattern = `{"eventName":["INSERT"],"dynamodb":{"Keys":{"pk":{"S":[{"prefix":%q},{"prefix":%q}]}}}}`
	if got, want := show(filters), fmt.Sprintf("[map[Pattern:"+pattern+"]]",
		notify.OutboxPrefix, notify.EventPrefix); got != want {
		t.Errorf("the filters are %s, want %s", got, want)
	}
}

// TestEachChannelHasOneWay checks the filters with and without text messages.
func TestEachChannelHasOneWay(t *testing.T) {
	t.Parallel()
	for sms, queue := range map[string]string{"on": "SmsQueue", "off": "MailQueue"} {
		d, got := made(t, "SenderAddress=ferry@example.com", "SmsSending="+sms), map[string]string{}
		for _, id := range d.ofType("AWS::SNS::Subscription") {
			for _, channel := range list(at(d.Resources[id], "Properties", "FilterPolicy", notify.ChannelAttribute)) {
				got[show(channel)] += named(at(d.Resources[id], "Properties", "Endpoint"))
			}
		}
		if want := map[string]string{"mail": "MailQueue", "sms": queue, "code": "Email"}; !maps.Equal(got, want) {
			t.Errorf("with SmsSending=%s the channels go to %v, want %v", sms, got, want)
		}
	}
}

// TestEachAlarmHasAPageInTheRunbook compares infra/runbook with the alarms. Those of
// functions, which are named after them, share one page.
func TestEachAlarmHasAPageInTheRunbook(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	pages := []string{"README.md"}
	for _, id := range tpl.ofType("AWS::CloudWatch::Alarm") {
		if at(tpl.Resources[strings.TrimSuffix(id, "Alarm")], "Type") == "AWS::Serverless::Function" {
			id = "FunctionAlarm"
		}
		pages = append(pages, id+".md")
	}
	same(t, "infra/runbook/", entries(t, "infra/runbook", ""), pages)
}

// TestAnIdleStackCostsOnlyItsStorage allows only types of resources that cost nothing
// while unused; what has a monthly price must be optional.
func TestAnIdleStackCostsOnlyItsStorage(t *testing.T) {
	t.Parallel()
	free := strings.Fields(`
		AWS::ApiGatewayV2::Api AWS::ApiGatewayV2::Stage AWS::ApiGatewayV2::ApiMapping
		AWS::ApiGatewayV2::DomainName AWS::Lambda::Function AWS::Lambda::Permission
		AWS::Lambda::EventSourceMapping AWS::Lambda::EventInvokeConfig AWS::Lambda::Version AWS::Lambda::Alias
		AWS::IAM::Role AWS::IAM::Policy AWS::Logs::LogGroup AWS::Logs::SubscriptionFilter AWS::Events::Rule
		Custom::LinkKey Custom::Digest AWS::DynamoDB::Table AWS::S3::Bucket AWS::S3::BucketPolicy
		AWS::SNS::Topic AWS::SNS::TopicPolicy AWS::SNS::Subscription AWS::SQS::Queue AWS::SQS::QueuePolicy
		AWS::SES::ConfigurationSet AWS::SES::ConfigurationSetEventDestination AWS::SES::EmailIdentity
		AWS::CodeDeploy::Application AWS::CodeDeploy::DeploymentGroup`)
	chosen := []string{"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}
	for id, r := range transformed(t).Resources {
		kind, condition := show(at(r, "Type")), at(r, "Condition")
		switch {
		case slices.Contains(free, kind):
		case slices.Contains(chosen, kind) && condition != nil:
		default:
			t.Errorf("%s is of the type %s, with the condition %v: what does it cost while nobody uses it?",
				id, kind, condition)
		}
	}
}
