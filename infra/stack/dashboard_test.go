package stack

import (
	"encoding/json"
	"testing"

	"ferry/infra/template"

	"ferry/shared/boot/lambda"
)

// TestTheDashboardIsOneAndItsOwnMetricsAreMade resolves it as CloudFormation would.
func TestTheDashboardIsOneAndItsOwnMetricsAreMade(t *testing.T) {
	t.Parallel()
	all := read(t)
	values := map[string]string{"AWS::StackName": "ferry", "AWS::Region": "eu-south-1"}
	for id := range all.Resources {
		values[id], values[id+".QueueName"] = id, id
	}
	dashboard, _ := all.Resources["OverviewDashboard"].(object)
	body, err := template.Stack{Template: all.Template, Values: values}.Text(at(dashboard, "Properties", "DashboardBody"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Widgets []struct {
			Properties struct {
				Title   string
				Metrics [][]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || len(doc.Widgets) == 0 {
		t.Fatalf("the dashboard is no JSON: %v: %s", err, body)
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

func TestMetricsAreMadeOnlyIfAsked(t *testing.T) {
	t.Parallel()
	all := read(t)
	v := at(all.Globals, "Function", "Environment", "Variables", "FERRY_METRICS")
	for metrics, want := range map[string]string{"": "", "off": "", "on": "ferry"} {
		values := map[string]string{"AWS::StackName": "ferry", "Metrics": metrics}
		if metrics == "" { // as by default
			delete(values, "Metrics")
		}
		if got, err := (template.Stack{Template: all.Template, Values: values}).Text(v); err != nil || got != want {
			t.Errorf("with Metrics %q functions are told %q, %v", metrics, got, err)
		}
	}
}
