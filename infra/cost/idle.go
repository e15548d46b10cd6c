package main

import (
	"fmt"
	"maps"
	"slices"

	"ferry/infra/template"
)

// idle is what a type of resource costs in a month in which nobody calls.
type idle struct {
	kind string
	usd  func(b *book, properties template.Object) float64 // nil is nothing
	why  string
}

// idles are the types that the template may have. What has a price by the hour,
// such as a key of one's own, a load balancer or a NAT gateway, is none of them.
func idles() []idle {
	return []idle{
		{"AWS::DynamoDB::Table", nil, "on demand: its storage alone, and the same for its recovery to any second of 35 days; AWS's key for it costs by the request, and none comes"},
		{"AWS::S3::Bucket", nil, "its storage alone; no versions are kept, and halves of uploads go after 9 days"},
		{"AWS::S3::BucketPolicy", nil, "free"},
		{"AWS::Serverless::HttpApi", nil, "by the request"},
		{"AWS::ApiGatewayV2::DomainName", nil, "free, as its certificate is"},
		{"AWS::ApiGatewayV2::ApiMapping", nil, "free"},
		{"AWS::Serverless::Function", nil, "by the event, with no concurrency kept ready; so are versions, aliases and the stream's reading, and the schedule of the sweep is free"},
		{"AWS::Lambda::Permission", nil, "free"},
		{"AWS::IAM::Role", nil, "free"},
		{"AWS::Logs::LogGroup", nil, "by bytes that come in, and for those that are kept"},
		{"AWS::Logs::SubscriptionFilter", nil, "free"},
		{"AWS::SNS::Topic", nil, "by the message"},
		{"AWS::SNS::TopicPolicy", nil, "free"},
		{"AWS::SNS::Subscription", nil, "free"},
		{"AWS::SQS::Queue", nil, "by the request: see the options for those that Lambda asks"},
		{"AWS::SQS::QueuePolicy", nil, "free"},
		{"AWS::SES::ConfigurationSet", nil, "free"},
		{"AWS::SES::ConfigurationSetEventDestination", nil, "free"},
		{"Custom::LinkKey", nil, "a standard parameter of SSM under AWS's own key: free"},
		{"AWS::CloudWatch::Alarm", alarm, "for each of its metrics"},
		{"AWS::CloudWatch::Dashboard", dashboard, "by the dashboard"},
	}
}

func alarm(b *book, properties template.Object) float64 {
	n := 1.0
	if all, ok := properties["Metrics"].([]any); ok {
		n = 0
		for _, m := range all {
			if m, _ := m.(template.Object); m["MetricStat"] != nil {
				n++
			}
		}
	}
	return n * b.rates[alarmMetrics]
}

func dashboard(b *book, _ template.Object) float64 { return b.rates[dashboards] }

// kept are the resources that a stack with these parameters has, by their type.
func kept(t template.Template, parameters map[string]string) (map[string][]template.Object, error) {
	values := placeholders(t)
	maps.Copy(values, parameters)
	s := template.Stack{Template: t, Values: values}
	all := map[string][]template.Object{}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		r, _ := t.Resources[id].(template.Object)
		if c, ok := r["Condition"].(string); ok {
			holds, err := s.Condition(c)
			if err != nil {
				return nil, fmt.Errorf("resource %s: %w", id, err)
			}
			if !holds {
				continue
			}
		}
		kind, _ := r["Type"].(string)
		all[kind] = append(all[kind], r)
	}
	return all, nil
}

// month is what a stack with these parameters costs while nobody calls, but
// for what it stores and the daily sweep.
func (b *book) month(t template.Template, parameters map[string]string) (usd float64, err error) {
	all, err := kept(t, parameters)
	if err != nil {
		return 0, err
	}
	for kind, resources := range all {
		i := slices.IndexFunc(idles(), func(i idle) bool { return i.kind == kind })
		if i < 0 {
			return 0, fmt.Errorf("what %s costs is not known", kind)
		}
		for _, r := range resources {
			if price := idles()[i].usd; price != nil {
				properties, _ := r["Properties"].(template.Object)
				usd += price(b, properties)
			}
		}
	}
	return usd, nil
}

// option is something that is off by default and costs when nobody calls.
type option struct {
	name       string
	parameters map[string]string
	beside     float64 // what no resource shows
	note       string
}

// metricsOfOne is how many metrics a stack has of its own: those of package metrics.
const metricsOfOne = 9

// poll is what it costs that Lambda asks a queue for messages, day and night.
func (b *book) poll() float64 {
	return pollers * hoursPerMonth * 3600 / pollSeconds * b.rates[queueCalls]
}

func (b *book) options() []option {
	return []option{
		{"`AlarmEmail`", map[string]string{"AlarmEmail": "ops@example.com"}, 0, "alarms; the first 10 metrics of an account are free"},
		{"`Deployment` by canary or linearly", map[string]string{"Deployment": "Canary10Percent5Minutes"}, 0, "the alarms that take a deployment back; CodeDeploy is free for Lambda"},
		{"`Metrics`", map[string]string{"Metrics": "on"}, metricsOfOne * b.rates[ownMetrics], fmt.Sprintf("%d metrics, in hours in which they have values", metricsOfOne)},
		{"`Dashboard`", map[string]string{"Dashboard": "on"}, 0, "the first 3 of an account are free"},
		{"`SenderAddress`", map[string]string{"SenderAddress": "ferry@example.com"}, b.poll(), "Lambda asks the queue of mails day and night; a million requests are free in each account"},
		{"`SmsSending`", map[string]string{"SmsSending": "on"}, b.poll(), "and that of text messages"},
		{"`DomainName`", map[string]string{"DomainName": "files.example.com", "CertificateArn": "arn:aws:acm:x"}, 0, "its zone in DNS is no part of the stack"},
	}
}

// hourly are the properties by which a resource would cost by the hour.
func hourly(v any) (found []string) {
	switch v := v.(type) {
	case template.Object:
		for name, value := range v {
			if slices.Contains([]string{"ProvisionedConcurrencyConfig", "ProvisionedThroughput", "VpcConfig", "KmsMasterKeyId", "KMSMasterKeyId", "KmsKeyId"}, name) {
				found = append(found, name)
			}
			found = append(found, hourly(value)...)
		}
	case []any:
		for _, value := range v {
			found = append(found, hourly(value)...)
		}
	}
	return found
}
