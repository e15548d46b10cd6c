package main

import (
	"maps"
	"path/filepath"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"
)

func TestTheCallsOfAnUploadWithOneMail(t *testing.T) {
	t.Parallel()
	b, err := count(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"BatchGetItem": 4, "PublishBatch": 3, "PutItem, UpdateItem or DeleteItem": 3, "PutObject": 1, "Query": 1,
		"SendEmail": 1, "TransactWriteItems": 2,
	}
	if !maps.Equal(b.calls, want) {
		t.Errorf("the calls are %v, want %v", b.calls, want)
	}
	for _, p := range prices() {
		if b.units[p.unit] <= 0 || p.usd <= 0 || p.per <= 0 || p.source == "" {
			t.Errorf("%s: %v units at %+v", p.unit, b.units[p.unit], p)
		}
		delete(b.units, p.unit)
	}
	if len(b.units) > 0 {
		t.Errorf("there are no prices of %v", b.units)
	}
}

func TestAFunctionHasTheMemoryThatIsCounted(t *testing.T) {
	t.Parallel()
	tpl, err := template.Read(filepath.Join(boottest.Root(t), "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	memory := map[string]float64{}
	for name, r := range runs() {
		memory[name] = r.gb * 1024
	}
	for id, r := range tpl.Resources {
		r, _ := r.(template.Object)
		p, _ := r["Properties"].(template.Object)
		names := map[string]string{"Upload": "upload", "Relay": "relay", "Email": "email", "Feedback": "feedback"}
		if names[id] == "" {
			continue
		}
		own, ok := p["MemorySize"].(int)
		if !ok {
			globals, _ := tpl.Globals["Function"].(template.Object)
			own, _ = globals["MemorySize"].(int)
		}
		if memory[names[id]] != float64(own) {
			t.Errorf("%s has %d MB, and %v are counted", id, own, memory[names[id]])
		}
		delete(memory, names[id])
	}
	if len(memory) > 0 {
		t.Errorf("the template does not have %v", memory)
	}
}
