package stack

import (
	"encoding/json"
	"strings"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/metrics"
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
	made := strings.Join([]string{
		metrics.Requests, metrics.ClientErrors, metrics.ServerErrors, metrics.Bytes, metrics.LoginsFailed,
		metrics.NoticesSent, metrics.NoticesDelayed, metrics.NoticesFailed, metrics.NoticeSeconds,
	}, " ")
	for _, w := range doc.Widgets {
		own := false
		for _, m := range w.Properties.Metrics {
			own = m[0] == metrics.Namespace || own && m[0] == "."
			if name, _ := m[1].(string); own && !strings.Contains(made, name) {
				t.Errorf("%s shows %s, which is not made", w.Properties.Title, name)
			}
		}
	}
}
