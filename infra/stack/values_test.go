package stack

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/lambda"
	"ferry/shared/envelope"
)

func TestTheOutputsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	const gateway = "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/v1"
	always := []string{"BaseUrl", "TableName", "FilesBucketName", "BackupBucketName", "KeyParameterName", "EventsTopicArn"}
	for _, c := range []struct {
		name       string
		parameters []string
		base       string
		more       []string
		says       map[string]string
	}{
		{
			"nothing is given", nil, gateway, []string{"DomainMissing", "EventsMissing", "MailMissing", "AlarmsMissing", "SmsMissing"},
			map[string]string{
				"DomainMissing": "SET=\\\"DomainName=", "MailMissing": "SET=SenderAddress=",
				"AlarmsMissing": "SET=AlarmEmail=", "SmsMissing": "SET=SmsSending=on", "EventsMissing": "SET=Events=on",
			},
		},
		{
			"a domain", []string{"DomainName=files.example.com", "CertificateArn=arn:aws:acm:x"}, "https://files.example.com/v1",
			[]string{"DomainTarget", "EventsMissing", "MailMissing", "AlarmsMissing", "SmsMissing"},
			map[string]string{"DomainTarget": "${ApiDomain.RegionalDomainName}"},
		},
		{
			"an address in front", []string{publicURL}, "https://cdn.example.com/v1", []string{"EventsMissing", "MailMissing", "AlarmsMissing", "SmsMissing"}, nil,
		},
		{
			"a sender", []string{"SenderAddress=ferry@example.com"}, gateway,
			[]string{"DomainMissing", "EventsMissing", "MailLimit", "AlarmsMissing", "SmsMissing"}, map[string]string{"MailLimit": "ferry@example.com"},
		},
		{
			"text messages, alarms and events", append(texting(), "Events=on"), gateway,
			[]string{"DomainMissing", "MailMissing", "SmsLimit", "SmsEverywhere", "AlarmTopicArn"},
			map[string]string{"SmsLimit": "spending limit", "SmsEverywhere": "SmsCountries", "AlarmTopicArn": "${AlarmTopic}"},
		},
		{
			"text messages to two countries", []string{"SmsSending=on", "SmsCountries=IT,US"}, gateway, []string{"DomainMissing", "EventsMissing", "MailMissing", "AlarmsMissing", "SmsLimit"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range c.parameters {
				check(t, read(t).takes(p))
			}
			outputs := made(t, c.parameters...).Outputs
			same(t, "the outputs", slices.Collect(keys(outputs)), append(c.more, always...))
			if got := at(outputs["BaseUrl"], "Value"); got != c.base {
				t.Errorf("the address is %s, want %s", got, c.base)
			}
			for id, part := range c.says {
				if got := compact(at(outputs[id], "Value")); !strings.Contains(got, part) {
					t.Errorf("%s says %s, want a mention of %s", id, got, part)
				}
			}
		})
	}
}

const publicURL = "PublicUrl=https://cdn.example.com/v1"

func texting() []string { return []string{"SmsSending=on", "AlarmEmail=ops@example.com"} }

// TestTheGatewayAllowsPagesWhatTheServerAllows compares the template with package envelope.
func TestTheGatewayAllowsPagesWhatTheServerAllows(t *testing.T) {
	t.Parallel()
	of := func(d document) any {
		return at(d.Resources["Api"], "Properties", "Body", "x-amazon-apigateway-cors")
	}
	if c := of(made(t)); c != nil {
		t.Errorf("by default, pages may do %v", c)
	}
	c := of(made(t, everything()...))
	for name, want := range map[string][]string{
		"allowMethods": envelope.Methods(), "allowHeaders": envelope.Headers(), "exposeHeaders": envelope.Exposed(),
		"allowOrigins": origins(),
	} {
		if got := texts(at(c, name)); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := at(made(t).Resources["ApiApiGatewayDefaultStage"], "Properties", "StageVariables"); got != nil {
		t.Errorf("by default, the functions get the origins %v", got)
	}
	for parameter, want := range map[string]string{"CorsOrigins=*": "any", "CorsOrigins=https://a.example.com:8443,http://localhost": "https://a.example.com:8443,http://localhost"} {
		stage := made(t, parameter).Resources["ApiApiGatewayDefaultStage"]
		if got := at(stage, "Properties", "StageVariables", "corsOrigins"); got != want {
			t.Errorf("with %s the functions get the origins %v", parameter, got)
		}
	}
	proxy := at(made(t, everything()...).Resources["ApiApiGatewayDefaultStage"], "Properties", "StageVariables")
	if _, err := envelope.ParseProxy(show(at(proxy, "clientHeader")), show(at(proxy, "proxySecret"))); err != nil {
		t.Errorf("the functions get the proxy %v: %v", proxy, err)
	}
	if got := at(c, "maxAge"); got != int(envelope.MaxAge.Seconds()) || at(c, "allowCredentials") != nil {
		t.Errorf("pages may do %v", c)
	}
}

// origins returns the origins in everything.
func origins() []string { return []string{"https://app.example.com", "https://b.example.com"} }

// TestPagesSendPartsToOneBucketAndReadFromBoth allows pages of all origins: after a
// redirect browsers name none, and the API's own domain cannot be named.
func TestPagesSendPartsToOneBucketAndReadFromBoth(t *testing.T) {
	t.Parallel()
	reads := []string{"If-None-Match", "If-Range", "Range"}
	for _, d := range []document{made(t), made(t, everything()...)} {
		for bucket, want := range map[string]struct{ methods, headers []string }{
			"FilesBucket":  {[]string{"GET", "HEAD", "PUT"}, append([]string{"Content-Type", "X-Amz-Checksum-Crc64nvme"}, reads...)},
			"BackupBucket": {[]string{"GET", "HEAD"}, reads},
		} {
			rules := list(at(d.Resources[bucket], "Properties", "CorsConfiguration", "CorsRules"))
			if len(rules) != 1 {
				t.Fatalf("%s: %v", bucket, rules)
			}
			for name, want := range map[string][]string{
				"AllowedOrigins": {"*"}, "AllowedMethods": want.methods, "AllowedHeaders": want.headers,
				"ExposedHeaders": {"Accept-Ranges", "Content-Disposition", "Content-Length", "Content-Range", "ETag",
					"X-Amz-Checksum-Crc64nvme", "X-Amz-Request-Id"},
			} {
				same(t, name+" of "+bucket, slices.Sorted(slices.Values(texts(at(rules[0], name)))), slices.Sorted(slices.Values(want)))
			}
		}
	}
}

func texts(v any) []string {
	var all []string
	for _, e := range list(v) {
		all = append(all, show(e))
	}
	return all
}

func TestThereIsOneDashboardAndItsMetricsExist(t *testing.T) {
	t.Parallel()
	body := show(at(made(t, everything()...).Resources["OverviewDashboard"], "Properties", "DashboardBody"))
	var doc struct {
		Widgets []struct {
			Properties struct {
				Title   string
				Metrics [][]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Widgets) == 0 {
		t.Fatalf("the dashboard is not JSON: %v: %s", err, body)
	}
	var shown []string
	for _, w := range doc.Widgets {
		own := false
		for _, m := range w.Properties.Metrics {
			own = m[0] == lambda.MetricsNamespace || own && m[0] == "."
			if name, _ := m[1].(string); own {
				shown = append(shown, name)
			}
		}
	}
	same(t, "the metrics that are shown", shown, []string{
		lambda.Requests, lambda.ClientErrors, lambda.ServerErrors, lambda.Bytes, lambda.LoginsFailed,
		lambda.NoticesSent, lambda.NoticesDelayed, lambda.NoticesFailed, lambda.NoticeSeconds,
	})
}

func TestMetricsAreMadeOnlyIfTurnedOn(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]document{`""`: made(t), `"${AWS::StackName}"`: made(t, everything()...)} {
		for _, id := range d.ofType("AWS::Lambda::Function") {
			if got := compact(at(d.Resources[id], "Properties", "Environment", "Variables", "FERRY_METRICS")); got != want {
				t.Errorf("%s has FERRY_METRICS=%s, want %s", id, got, want)
			}
		}
	}
}

func TestTheAlarmsOfADeploymentNeedNoAddress(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	watch, whole := []string{"ApiAlarm"}, tpl.ofType("AWS::CloudWatch::Alarm")
	for _, f := range tpl.functions() {
		watch = append(watch, f.ID+"Alarm")
	}
	for _, c := range []struct {
		name       string
		parameters []string
		want       []string
		actions    string
	}{
		{"no alarm by default", nil, nil, ""},
		{"those that stop a deployment", []string{gradually}, watch, nothing},
		{"all for an address", texting(), whole, `["${AlarmTopic}"]`},
		{"all for an address and a deployment", everything(), whole, `["${AlarmTopic}"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := made(t, c.parameters...)
			same(t, "the alarms", d.ofType("AWS::CloudWatch::Alarm"), c.want)
			for _, id := range d.ofType("AWS::CloudWatch::Alarm") {
				if got := compact(at(d.Resources[id], "Properties", "AlarmActions")); got != c.actions {
					t.Errorf("%s has the actions %s, want %s", id, got, c.actions)
				}
			}
		})
	}
}
