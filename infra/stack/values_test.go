package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ferry/shared/boot/lambda"
	"ferry/shared/envelope"
)

// TestTheOutputsSayWhatIsMissing has what the reviewed file has not.
func TestTheOutputsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	always := []string{
		"BaseUrl", "TableName", "FilesBucketName", "BackupBucketName", "KeyParameterName", "EventsTopicArn",
		"DomainMissing",
	}
	for parameters, more := range map[string][]string{
		"SenderAddress=ferry@example.com": {
			"EventsMissing", "MailLimit", "AlarmsMissing", "SmsMissing",
		},
		"SmsSending=on AlarmEmail=ops@example.com Events=on": {
			"MailMissing", "SmsLimit", "SmsEverywhere", "AlarmTopicArn",
		},
		"SmsSending=on SmsCountries=IT,US": {"EventsMissing", "MailMissing", "AlarmsMissing", "SmsLimit"},
	} {
		outputs := made(t, strings.Fields(parameters)...).Outputs
		same(t, "the outputs with "+parameters, slices.Collect(maps.Keys(outputs)), append(more, always...))
		if all, ok := outputs["SmsEverywhere"]; ok && !strings.Contains(compact(all), "SmsCountries") {
			t.Errorf("the output for all countries is %v", all)
		}
	}
}

// TestTheGatewayAllowsPagesWhatTheServerAllows compares the template with package envelope.
func TestTheGatewayAllowsPagesWhatTheServerAllows(t *testing.T) {
	t.Parallel()
	d := made(t, strings.Split(everything, "\n")...)
	c := at(d.Resources["Api"], "Properties", "Body", "x-amazon-apigateway-cors")
	for name, want := range map[string][]string{
		"allowMethods": envelope.Methods(), "allowHeaders": {"Authorization", "*"}, "exposeHeaders": envelope.Exposed(),
		"allowOrigins": {"https://app.example.com", "https://b.example.com"}, "maxAge": {fmt.Sprint(envelope.MaxAge.Seconds())},
	} {
		if got := texts(at(c, name)); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	variable := func(d document, name string) string {
		return show(at(d.Resources["ApiApiGatewayDefaultStage"], "Properties", "StageVariables", name))
	}
	for origins, want := range map[string]string{
		"*": "any",
		"https://a.example.com:8443,http://localhost": "https://a.example.com:8443,http://localhost",
	} {
		if got := variable(made(t, "CorsOrigins="+origins), "corsOrigins"); got != want {
			t.Errorf("with %s the functions get the origins %v", origins, got)
		}
	}
	if _, err := envelope.ParseProxy(variable(d, "clientHeader"), variable(d, "proxySecret")); err != nil {
		t.Errorf("the functions get a proxy that they do not accept: %v", err)
	}
}

func texts(v any) []string {
	var all []string
	for _, e := range list(v) {
		all = append(all, show(e))
	}
	return all
}

func TestTheDashboardShowsEachMetric(t *testing.T) {
	t.Parallel()
	body := show(at(
		made(t, strings.Split(everything, "\n")...).Resources["OverviewDashboard"],
		"Properties",
		"DashboardBody",
	))
	if !json.Valid([]byte(body)) {
		t.Errorf("the dashboard is not JSON: %s", body)
	}
	for _, name := range []string{
		lambda.MetricsNamespace, lambda.Requests, lambda.ClientErrors, lambda.ServerErrors, lambda.Bytes, lambda.LoginsFailed,
		lambda.NoticesSent, lambda.NoticesDelayed, lambda.NoticesFailed, lambda.NoticeSeconds,
	} {
		if !strings.Contains(body, strconv.Quote(name)) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// TestTheAlarmsThatStopADeploymentNeedNoAddress has what the reviewed file has not.
func TestTheAlarmsThatStopADeploymentNeedNoAddress(t *testing.T) {
	t.Parallel()
	want := []string{"ApiAlarm"}
	for _, f := range read(t).functions() {
		want = append(want, f.ID+"Alarm")
	}
	d := made(t, "Deployment=Canary10Percent5Minutes")
	same(t, "the alarms", d.ofType("AWS::CloudWatch::Alarm"), want)
	for _, id := range want {
		if actions := at(d.Resources[id], "Properties", "AlarmActions"); actions != nil {
			t.Errorf("%s has the actions %v", id, actions)
		}
	}
}
