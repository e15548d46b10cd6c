package stack

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"ferry/shared/notify"
)

// allows reports whether a policy lets a service do something to a resource for only
// one source.
func allows(policy any, service, action, resource, source string) bool {
	for _, s := range list(at(policy, "Statement")) {
		if at(s, "Effect") == "Allow" && show(at(s, "Principal", "Service")) == service && show(at(s, "Action")) == action &&
			show(at(s, "Resource")) == resource && show(at(s, "Condition", "ArnEquals", "aws:SourceArn")) == source {
			return true
		}
	}
	return false
}

// onlyTLS reports whether a policy refuses everything without TLS.
func onlyTLS(policy any, action, resource string) bool {
	for _, s := range list(at(policy, "Statement")) {
		if at(s, "Effect") == "Deny" && at(s, "Principal") == "*" && show(at(s, "Action")) == action && show(at(s, "Resource")) == resource &&
			show(at(s, "Condition", "Bool", "aws:SecureTransport")) == "false" {
			return true
		}
	}
	return false
}

// policyOf returns the document of the one policy for a topic or queue.
func (d document) policyOf(kind, property, id string) any {
	var found []any
	for _, p := range d.ofType(kind) {
		for _, of := range list(at(d.Resources[p], "Properties", property)) {
			if show(of) == "!Ref "+id {
				found = append(found, at(d.Resources[p], "Properties", "PolicyDocument"))
			}
		}
	}
	if len(found) != 1 { // of several, the last one created would apply
		return nil
	}
	return found[0]
}

func (d document) queuePolicy(id string) any {
	return d.policyOf("AWS::SQS::QueuePolicy", "Queues", id)
}
func (d document) topicPolicy(id string) any {
	return d.policyOf("AWS::SNS::TopicPolicy", "Topics", id)
}

// named returns the resource of an ARN.
func named(arn any) string {
	return strings.NewReplacer("!GetAtt ", "", "!Ref ", "", ".Arn", "", "Aliaslive", "").Replace(show(arn))
}

// mayCall reports whether a service may invoke a function for a source.
func (d document) mayCall(function, service, source string) bool {
	return slices.ContainsFunc(d.ofType("AWS::Lambda::Permission"), func(id string) bool {
		p := at(d.Resources[id], "Properties")
		return show(at(p, "FunctionName")) == "!Ref "+function+"Aliaslive" && at(p, "Principal") == service && show(at(p, "SourceArn")) == source &&
			at(p, "Action") == "lambda:InvokeFunction"
	})
}

// TestNoCodeIsPublishedBeforeItCanBeDelivered: while the stack is updated, a topic drops
// what it may not deliver. (The subscription depends on a condition, so nothing may wait
// for it.)
func TestNoCodeIsPublishedBeforeItCanBeDelivered(t *testing.T) {
	t.Parallel()
	if got := at(read(t).Resources["Relay"], "DependsOn"); got != "CodePermission" {
		t.Errorf("the relay depends on %v", got)
	}
}

// TestEachSubscriptionIsAllowedToDeliver: AWS creates a subscription even if its target
// refuses it, and then nothing is delivered.
func TestEachSubscriptionIsAllowedToDeliver(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, id := range tpl.ofType("AWS::SNS::Subscription") {
		p := at(tpl.Resources[id], "Properties")
		topic, endpoint := show(at(p, "TopicArn")), named(at(p, "Endpoint"))
		switch at(p, "Protocol") {
		case "sqs":
			if !allows(tpl.queuePolicy(endpoint), "sns.amazonaws.com", "sqs:SendMessage", "!GetAtt "+endpoint+".Arn", topic) {
				t.Errorf("%s may not deliver to %s", id, endpoint)
			}
			if at(p, "RawMessageDelivery") != true {
				t.Errorf("%s wraps its messages", id)
			}
		case "lambda":
			if !tpl.mayCall(endpoint, "sns.amazonaws.com", topic) {
				t.Errorf("%s may not call %s", id, endpoint)
			}
		default:
			t.Errorf("%s has the protocol %v: check here what lets it deliver", id, at(p, "Protocol"))
		}
		dead := named(at(p, "RedrivePolicy", "deadLetterTargetArn"))
		if !allows(tpl.queuePolicy(dead), "sns.amazonaws.com", "sqs:SendMessage", "!GetAtt "+dead+".Arn", topic) {
			t.Errorf("%s may not leave what it cannot deliver in %s", id, dead)
		}
	}
}

func TestEachLogGroupThatIsReadMayCallItsFunction(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	const logs = "!Sub arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:sns/${AWS::Region}/${AWS::AccountId}/DirectPublishToPhoneNumber*:*"
	for _, id := range tpl.ofType("AWS::Logs::SubscriptionFilter") {
		r := tpl.Resources[id]
		function := named(at(r, "Properties", "DestinationArn"))
		if !tpl.mayCall(function, "logs.amazonaws.com", logs) || at(r, "DependsOn") != "SmsStatusPermission" || at(r, "Condition") != "HasSmsStatus" {
			t.Errorf("%s may not call %s from the beginning", id, function)
		}
		group := strings.TrimPrefix(show(at(r, "Properties", "LogGroupName")), "!Sub ")
		if !strings.Contains(logs, ":log-group:"+strings.TrimSuffix(group, "/Failure")+"*") {
			t.Errorf("%s reads %s", id, group)
		}
	}
}

func TestSESMayPublishFeedback(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, id := range tpl.ofType("AWS::SES::ConfigurationSetEventDestination") {
		p := at(tpl.Resources[id], "Properties")
		set := strings.TrimPrefix(show(at(tpl.Resources[named(at(p, "ConfigurationSetName"))], "Properties", "Name")), "!Sub ")
		topic := named(at(p, "EventDestination", "SnsDestination", "TopicARN"))
		source := "!Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/" + set
		if !allows(tpl.topicPolicy(topic), "ses.amazonaws.com", "sns:Publish", "!Ref "+topic, source) || at(tpl.Resources[id], "DependsOn") != topic+"Policy" {
			t.Errorf("SES may not publish to %s from the beginning", topic)
		}
		if got := show(at(p, "EventDestination", "MatchingEventTypes")); got != "[delivery bounce complaint reject]" || at(p, "EventDestination", "Enabled") != true {
			t.Errorf("SES reports %s", got)
		}
	}
}

func TestTopicsAndQueuesAcceptOnlyTLS(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, id := range tpl.ofType("AWS::SNS::Topic") {
		if id != "AlarmTopic" && !onlyTLS(tpl.topicPolicy(id), "sns:Publish", "!Ref "+id) {
			t.Errorf("%s accepts more than TLS", id)
		}
	}
	for _, id := range tpl.ofType("AWS::SQS::Queue") {
		if !onlyTLS(tpl.queuePolicy(id), "sqs:*", "!GetAtt "+id+".Arn") {
			t.Errorf("%s accepts more than TLS", id)
		}
	}
}

// TestPoliciesOfTopicsAndQueuesAllowOnlyServices: users of the account have policies of
// their own.
func TestPoliciesOfTopicsAndQueuesAllowOnlyServices(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, id := range append(tpl.ofType("AWS::SNS::TopicPolicy"), tpl.ofType("AWS::SQS::QueuePolicy")...) {
		for _, s := range list(at(tpl.Resources[id], "Properties", "PolicyDocument", "Statement")) {
			if at(s, "Effect") == "Allow" && (at(s, "Principal", "Service") == nil || at(s, "Condition", "ArnEquals", "aws:SourceArn") == nil) {
				t.Errorf("%s: %v", id, s)
			}
		}
	}
}

// workQueues returns the queues that a function reads; all others hold dead letters.
func (d document) workQueues() map[string]fn {
	all := map[string]fn{}
	for _, f := range d.functions() {
		for _, e := range f.events("SQS") {
			all[named(e["Queue"])] = f
		}
	}
	return all
}

// TestEachStageHasADeadLetterQueue: what fails for good stays there for 14 days, and an
// alarm reports it.
func TestEachStageHasADeadLetterQueue(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	works := tpl.workQueues()
	same(t, "the queues that are read", keysOf(works), []string{"MailQueue", "SmsQueue"})
	var watched, dead []string
	for _, m := range list(at(tpl.Resources["DeadLettersAlarm"], "Properties", "Metrics")) {
		for _, d := range list(at(m, "MetricStat", "Metric", "Dimensions")) {
			watched = append(watched, strings.TrimSuffix(strings.TrimPrefix(show(at(d, "Value")), "!GetAtt "), ".QueueName"))
		}
	}
	for _, id := range tpl.ofType("AWS::SQS::Queue") {
		p := at(tpl.Resources[id], "Properties")
		if at(p, "SqsManagedSseEnabled") != true { // SNS can write to it, with no key of KMS
			t.Errorf("%s is not encrypted", id)
		}
		f, read := works[id]
		if !read {
			dead = append(dead, id)
			if at(p, "MessageRetentionPeriod") != 14*24*3600 {
				t.Errorf("%s keeps messages for %v s", id, at(p, "MessageRetentionPeriod"))
			}
			continue
		}
		timeout, _ := f.Props["Timeout"].(int)
		if hidden, _ := at(p, "VisibilityTimeout").(int); hidden < 6*timeout {
			t.Errorf("%s hides messages for %d s, and %s takes %d s", id, hidden, f.Name, timeout)
		}
		if kept, _ := at(p, "MessageRetentionPeriod").(int); kept < 2*24*3600 || kept >= 14*24*3600 { // its age keeps counting among the dead letters
			t.Errorf("%s keeps messages for %d s", id, kept)
		}
		// A notice is tried for a day: 12 times in the first hour or so, and
		// then every half hour to an hour.
		if tries, _ := at(p, "RedrivePolicy", "maxReceiveCount").(int); tries < 100 || tpl.Resources[named(at(p, "RedrivePolicy", "deadLetterTargetArn"))] == nil {
			t.Errorf("%s gives up messages after %d receipts", id, tries)
		}
	}
	same(t, "the watched dead-letter queues", watched, dead)
	same(t, "the dead-letter queues", dead, []string{"RelayDeadLetters", "MailDeadLetters", "SmsDeadLetters", "CodeDeadLetters", "FeedbackDeadLetters", "SweepDeadLetters"})
}

// TestEachQueueHasAnAlarm: the age of a queue's oldest message ignores messages that
// were received three times. So it shows messages that nothing takes, but not those
// that are retried again and again, which are hidden nearly all the time.
func TestEachQueueHasAnAlarm(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for alarm, want := range map[string]string{
		"QueueAgeAlarm": "ApproximateAgeOfOldestMessage Maximum",
		"RetriesAlarm":  "ApproximateNumberOfMessagesNotVisible Minimum",
	} {
		var watched []string
		for _, m := range list(at(tpl.Resources[alarm], "Properties", "Metrics")) {
			for _, d := range list(at(m, "MetricStat", "Metric", "Dimensions")) {
				if got := show(at(m, "MetricStat", "Metric", "MetricName")) + " " + show(at(m, "MetricStat", "Stat")); got != want {
					t.Errorf("%s watches %s, want %s", alarm, got, want)
				}
				watched = append(watched, strings.TrimSuffix(named(at(d, "Value")), ".QueueName"))
			}
		}
		same(t, alarm+" watches", watched, keysOf(tpl.workQueues()))
	}
}

func keysOf(m map[string]fn) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// TestEachChannelHasOneWay checks the filters with and without text messages.
func TestEachChannelHasOneWay(t *testing.T) {
	t.Parallel()
	for sms, c := range map[string]struct {
		d    document
		want map[string]string
	}{
		"on":  {made(t, everything()...), map[string]string{"mail": "MailQueue", "sms": "SmsQueue", "code": "Email"}},
		"off": {made(t, mailing), map[string]string{"mail": "MailQueue", "sms": "MailQueue", "code": "Email"}},
	} {
		got := map[string]string{}
		for _, id := range c.d.ofType("AWS::SNS::Subscription") {
			for _, channel := range list(at(c.d.Resources[id], "Properties", "FilterPolicy", notify.ChannelAttribute)) {
				got[show(channel)] += named(at(c.d.Resources[id], "Properties", "Endpoint"))
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("with SmsSending=%s the channels go to %v, want %v", sms, got, c.want)
		}
	}
}

func TestTheStreamBringsOnlyWhatIsRelayed(t *testing.T) {
	t.Parallel()
	all := read(t).functions()["relay"].events("DynamoDB")
	if len(all) != 1 {
		t.Fatalf("%d streams", len(all))
	}
	filters := list(at(all[0], "FilterCriteria", "Filters"))
	if len(filters) != 1 {
		t.Fatalf("%d filters", len(filters))
	}
	var pattern struct {
		EventName []string `json:"eventName"`
		DynamoDB  struct {
			Keys struct {
				PK struct {
					S []struct{ Prefix string }
				} `json:"pk"`
			}
		} `json:"dynamodb"`
	}
	d := json.NewDecoder(strings.NewReader(show(at(filters[0], "Pattern"))))
	d.DisallowUnknownFields()
	if err := d.Decode(&pattern); err != nil {
		t.Fatal(err)
	}
	var prefixes []string
	for _, p := range pattern.DynamoDB.Keys.PK.S {
		prefixes = append(prefixes, p.Prefix)
	}
	same(t, "the partitions", prefixes, []string{notify.OutboxPrefix, notify.EventPrefix})
	same(t, "the changes", pattern.EventName, []string{"INSERT"})
}
