package stack

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/lambda"
	"ferry/shared/envelope"
)

// TestTheOutputsSayWhatIsMissing has what the reviewed file has not.
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
			"a sender", []string{mailing}, gateway,
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

const mailing = "SenderAddress=ferry@example.com"

func texting() []string { return []string{"SmsSending=on", "AlarmEmail=ops@example.com"} }

// TestTheGatewayAllowsPagesWhatTheServerAllows compares the template with package envelope.
func TestTheGatewayAllowsPagesWhatTheServerAllows(t *testing.T) {
	t.Parallel()
	of := func(d document) any {
		return at(d.Resources["Api"], "Properties", "Body", "x-amazon-apigateway-cors")
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
