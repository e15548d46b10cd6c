package stack

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestEachAlarmHasItsPage compares infra/runbook with the alarms. Those of
// functions, which are named after them, share one page.
func TestEachAlarmHasItsPage(t *testing.T) {
	t.Parallel()
	all := read(t)
	pages := []string{"README.md"}
	for _, id := range slices.Sorted(maps.Keys(all.Resources)) {
		r, _ := all.Resources[id].(object)
		if r["Type"] != "AWS::CloudWatch::Alarm" {
			continue
		}
		page := id + ".md"
		if f, ok := all.Resources[strings.TrimSuffix(id, "Alarm")].(object); ok && f["Type"] == "AWS::Serverless::Function" {
			page = "FunctionAlarm.md"
		}
		if !slices.Contains(pages, page) {
			pages = append(pages, page)
		}
	}
	same(t, "infra/runbook/", entries(t, "infra/runbook", ""), pages)
}
