package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"
	"ferry/shared/table"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB) template.Template {
	t.Helper()
	tpl, err := template.Read(filepath.Join(boottest.Root(t), "template.yaml"))
	check(t, err)
	return tpl
}

func page(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), pageFile))
	check(t, err)
	return string(text)
}

func open(t testing.TB) *book {
	t.Helper()
	b, err := newBook(boottest.Root(t), page(t))
	check(t, err)
	return b
}

func TestThePageIsWhatTheProgramWrites(t *testing.T) {
	t.Parallel()
	want, err := newPage(boottest.Root(t))
	check(t, err)
	if page(t) != want {
		t.Errorf("%s is not what it should be: go run ./infra/cost", pageFile)
	}
}

func TestEachFunctionIsCountedWithItsMemory(t *testing.T) {
	t.Parallel()
	memory := memoryOf(t)
	left := maps.Clone(memory)
	for _, c := range open(t).order {
		for name, r := range c.Runs {
			if memory[name] != r.Memory || r.Own <= 0 {
				t.Errorf("%s: %s has %d MB, and takes %v ms; the template says %d MB", c.Operation, name, r.Memory, r.Own, memory[name])
			}
			delete(left, name)
		}
	}
	delete(left, "linkkey") // it runs once, when a stack is made
	if len(left) > 0 {
		t.Errorf("no operation runs the functions %v", left)
	}
}

// memoryOf is the memory of each function in MB.
func memoryOf(t testing.TB) map[string]int {
	t.Helper()
	tpl, memory := read(t), map[string]int{}
	functions, err := template.Stack{Template: tpl, Values: placeholders(tpl, nil)}.Functions()
	check(t, err)
	for _, f := range functions {
		memory[f.Name] = f.Memory
	}
	return memory
}

func TestEachUnitHasAPrice(t *testing.T) {
	t.Parallel()
	b := open(t)
	if rows := strings.Count(page(t), "](https://aws.amazon.com/"); len(b.rates) != 26 || rows != 26 {
		t.Errorf("%d prices, in %d rows", len(b.rates), rows)
	}
	for _, c := range b.order {
		for unit := range c.Units {
			if b.rates[unit] <= 0 {
				t.Errorf("%s: there is no price of %s", c.Operation, unit)
			}
		}
	}
}

func TestABillIsUnitsTimesPrices(t *testing.T) {
	t.Parallel()
	b := open(t)
	c := &count{Operation: "x", Units: map[string]float64{requests: 1e6, writes: 2e6, mails: 1e3, logBytes: gb}, Runs: map[string]*run{
		"upload": {Own: 1000 * 1024.0 / wholeCPU, Memory: 1024, Calls: map[string]int{"DynamoDB Query": 10}}, // 1 s and 100 ms
		"email":  {Memory: 256, Calls: map[string]int{"SES SendEmail": 5}},                                   // 1 s
	}}
	b.counts["x"] = c
	want := 1.00 + 2*0.625 + 0.10 + 0.50 + (1.1*1+1*0.25)*0.0000133334
	if got := b.usd("x"); math.Abs(got-want) > 1e-12 {
		t.Errorf("the bill is %v USD, want %v", got, want)
	}
}

// placeholders are values for all that a template refers to: of resources their
// own names, which are as good as any.
func placeholders(tpl template.Template, parameters map[string]string) map[string]string {
	values := map[string]string{}
	for id := range tpl.Resources {
		values[id] = id
	}
	for _, name := range []string{"StackName", "Region", "Partition", "AccountId", "URLSuffix"} {
		values["AWS::"+name] = name
	}
	maps.Copy(values, parameters)
	return values
}

// month is what the resources of a stack with these parameters cost while nobody
// calls, and the types of those that have no price by time.
func month(tpl template.Template, parameters map[string]string, rates map[string]float64) (usd float64, free map[string]bool, err error) {
	stack := template.Stack{Template: tpl, Values: placeholders(tpl, parameters)}
	free = map[string]bool{}
	for id, r := range tpl.Resources {
		r, _ := r.(template.Object)
		if c, ok := r["Condition"].(string); ok {
			if holds, err := stack.Condition(c); err != nil || !holds {
				if err != nil {
					return 0, nil, fmt.Errorf("resource %s: %w", id, err)
				}
				continue
			}
		}
		properties, _ := r["Properties"].(template.Object)
		switch kind, _ := r["Type"].(string); kind {
		case "AWS::CloudWatch::Alarm":
			metrics, several := properties["Metrics"].([]any)
			n := 0.0
			for _, m := range metrics {
				if m, _ := m.(template.Object); m["MetricStat"] != nil {
					n++
				}
			}
			if !several {
				n = 1
			}
			usd += n * rates["CloudWatch: metrics of alarms, a month"]
		case "AWS::CloudWatch::Dashboard":
			usd += rates["CloudWatch: dashboards, a month"]
		default:
			free[kind] = true
		}
	}
	return usd, free, nil
}

// hourly are the properties by which a resource would cost by the hour.
func hourly(v any) (found []string) {
	byTheHour := []string{"ProvisionedConcurrencyConfig", "ProvisionedThroughput", "VpcConfig", "KmsMasterKeyId", "KMSMasterKeyId", "KmsKeyId"}
	switch v := v.(type) {
	case template.Object:
		for name, value := range v {
			if slices.Contains(byTheHour, name) {
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

func TestAStackCostsItsStorageAloneWhileNobodyCalls(t *testing.T) {
	t.Parallel()
	b, tpl := open(t), read(t)
	usd, free, err := month(tpl, nil, b.rates)
	check(t, err)
	if usd != 0 {
		t.Errorf("the resources of a stack with the parameters' defaults cost %v USD a month", usd)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+::[\\w:]+)` \\|").FindAllStringSubmatch(page(t), -1) {
		listed[m[1]] = true
	}
	if !maps.Equal(free, listed) {
		t.Errorf("the stack has %v, and the page lists %v", slices.Sorted(maps.Keys(free)), slices.Sorted(maps.Keys(listed)))
	}
	if sweeps := daysPerMonth * b.usd(sweepEmpty); sweeps > 0.001 {
		t.Errorf("the daily sweep costs %v USD a month", sweeps)
	}
	for id, r := range tpl.Resources {
		if found := hourly(r); len(found) > 0 {
			t.Errorf("%s has %v, which cost by the hour", id, found)
		}
	}
}

func TestThePageTellsWhatEachOptionCosts(t *testing.T) {
	t.Parallel()
	b, tpl := open(t), read(t)
	metrics := float64(metricsOfOne(t)) * b.rates["CloudWatch: metrics of one's own, a month"]
	free := map[string]bool{"AWS::ApiGatewayV2::DomainName": true, "AWS::ApiGatewayV2::ApiMapping": true, "AWS::Logs::SubscriptionFilter": true}
	_, byDefault, err := month(tpl, nil, b.rates)
	check(t, err)
	maps.Copy(free, byDefault)
	for _, o := range []struct {
		name, value string
		beside      float64 // what no resource shows
	}{
		{"AlarmEmail", "ops@example.com", 0}, {"Deployment", "Canary10Percent5Minutes", 0}, {"Metrics", "on", metrics}, {"Dashboard", "on", 0},
		{"SenderAddress", "ferry@example.com", b.poll()}, {"SmsSending", "on", b.poll()}, {"DomainName", "files.example.com", 0},
	} {
		usd, kinds, err := month(tpl, map[string]string{o.name: o.value, "CertificateArn": "arn:aws:acm:x", "SmsStatusLogs": "on"}, b.rates)
		check(t, err)
		if row := fmt.Sprintf("| `%s` | %s |", o.name, dollars(usd+o.beside)); !strings.Contains(page(t), row) {
			t.Errorf("the page has no row %s", row)
		}
		for kind := range kinds {
			if !free[kind] {
				t.Errorf("%s: what %s costs is not known", o.name, kind)
			}
		}
	}
}

// metricsOfOne is how many metrics a stack has of its own.
func metricsOfOne(t *testing.T) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(boottest.Root(t), "shared/boot/metrics/metrics.go"), nil, 0)
	check(t, err)
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				if s.(*ast.ValueSpec).Names[0].Name != "Namespace" {
					n++
				}
			}
		}
	}
	return n
}

func TestNoQueueIsPolledWithoutASender(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, c := range []struct {
		parameters map[string]string
		polled     []string
	}{
		{nil, nil},
		{map[string]string{"SenderAddress": "ferry@example.com"}, []string{"MailQueue"}},
		{map[string]string{"SenderAddress": "ferry@example.com", "SmsSending": "on"}, []string{"MailQueue", "SmsQueue"}},
	} {
		values := placeholders(tpl, c.parameters)
		values["MailQueue.Arn"], values["SmsQueue.Arn"] = "MailQueue", "SmsQueue"
		if got := polled(t, template.Stack{Template: tpl, Values: values}); !slices.Equal(got, c.polled) {
			t.Errorf("with %v these queues are polled: %v, want %v", c.parameters, got, c.polled)
		}
	}
}

// polled are the queues that functions read.
func polled(t *testing.T, s template.Stack) (queues []string) {
	t.Helper()
	for _, r := range s.Resources {
		r, _ := r.(template.Object)
		p, _ := r["Properties"].(template.Object)
		events, _ := p["Events"].(template.Object)
		for _, e := range events {
			e, _ := e.(template.Object)
			if e["Type"] != "SQS" {
				continue
			}
			p, _ := e["Properties"].(template.Object)
			enabled, err := s.Text(p["Enabled"])
			check(t, err)
			queue, err := s.Text(p["Queue"])
			check(t, err)
			if enabled == "true" {
				queues = append(queues, queue)
			}
		}
	}
	slices.Sort(queues)
	return queues
}

func TestWhatCostsWhileNobodyCallsIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource string
		usd      float64
		free     bool // of a type that the page would have to list
		hourly   bool
	}{
		"a table":              {"Type: AWS::DynamoDB::Table", 0, true, false},
		"a table kept ready":   {"{Type: AWS::DynamoDB::Table, Properties: {ProvisionedThroughput: {ReadCapacityUnits: 5}}}", 0, true, true},
		"one kept ready":       {"{Type: AWS::Serverless::Function, Properties: {ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 1}}}", 0, true, true},
		"one in a network":     {"{Type: AWS::Serverless::Function, Properties: {VpcConfig: {SubnetIds: [x]}}}", 0, true, true},
		"an alarm":             {"{Type: AWS::CloudWatch::Alarm, Properties: {MetricName: x}}", 0.10, false, false},
		"one of two metrics":   {"{Type: AWS::CloudWatch::Alarm, Properties: {Metrics: [{Expression: x}, {MetricStat: {}}, {MetricStat: {}}]}}", 0.20, false, false},
		"a dashboard":          {"Type: AWS::CloudWatch::Dashboard", 3, false, false},
		"a queue under a key":  {"{Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: alias/x}}", 0, true, true},
		"a key of KMS":         {"Type: AWS::KMS::Key", 0, true, false},
		"a way out of a VPC":   {"Type: AWS::EC2::NatGateway", 0, true, false},
		"one that is left out": {"{Type: AWS::KMS::Key, Condition: No}", 0, false, false},
	} {
		if !strings.HasPrefix(c.resource, "{") {
			c.resource = "{" + c.resource + "}"
		}
		tpl, err := template.Parse([]byte("Conditions: {No: !Equals [a, b]}\nResources: {It: " + c.resource + "}\n"))
		check(t, err)
		usd, free, err := month(tpl, nil, open(t).rates)
		check(t, err)
		if math.Abs(usd-c.usd) > 1e-12 || len(free) > 0 != c.free {
			t.Errorf("%s: %v USD, and free are %v", name, usd, free)
		}
		if got := len(hourly(tpl.Resources["It"])) > 0; got != c.hourly {
			t.Errorf("%s: by the hour is %v", name, got)
		}
	}
}

func TestSizesAreThoseOfDynamoDB(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`{"pk":"` + strings.Repeat("x", 98) + `"}`: 100,
		`{"é":"è"}`:         4,
		`{"n":12345}`:       1 + 4,
		`{"t":true}`:        2,
		`{"l":["abc","d"]}`: 1 + 3 + 1 + 3 + 1 + 1,
		`{"m":{"k":"abc"}}`: 1 + 3 + 1 + 1 + 3,
		`{}`:                0,
	} {
		if got := sizeOfJSON([]byte(text)); got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
	for _, c := range []struct{ size, each, want int }{{0, readUnit, 1}, {readUnit, readUnit, 1}, {readUnit + 1, readUnit, 2}, {3000, writeUnit, 3}} {
		if got := units(c.size, c.each); got != float64(c.want) {
			t.Errorf("%d bytes by %d: %v units, want %d", c.size, c.each, got, c.want)
		}
	}
}

func TestTheMeterCountsUnitsByDynamoDBsRules(t *testing.T) {
	t.Parallel()
	type value struct {
		Text string `json:"x"`
	}
	of := func(size int) value { return value{strings.Repeat("x", size)} }
	key := table.Key{PK: "a", SK: "b"}
	other := table.Key{PK: "a", SK: "c"}
	var into value
	for _, c := range []struct {
		name          string
		now           int // bytes of the item before
		do            func(table.Table) error
		call          string
		reads, writes float64
	}{
		{"an item", 5000, func(b table.Table) error { return b.Get(t.Context(), key, &into) }, "GetItem", 2, 0},
		{"a query, all items together", 5000, func(b table.Table) error {
			_, err := b.Query(t.Context(), table.Query{PK: "a", Limit: 1})
			return err
		}, "Query", 3, 0},
		{"a batch, each by itself", 5000, func(b table.Table) error {
			_, err := b.GetMany(t.Context(), key, other, table.Key{PK: "a", SK: "none"}, key)
			return err
		}, "BatchGetItem", 5, 0},
		{"an item that grows", 100, func(b table.Table) error { return b.Write(t.Context(), table.Put(key, of(1500))) }, "PutItem", 0, 2},
		{"one that shrinks", 1500, func(b table.Table) error { return b.Update(t.Context(), table.Update(key).Set("x", ""), &into) }, "UpdateItem", 0, 2},
		{"one that goes", 1500, func(b table.Table) error { return b.Write(t.Context(), table.Delete(key)) }, "DeleteItem", 0, 2},
		{"one that is refused", 100, func(b table.Table) error {
			if err := b.Write(t.Context(), table.Put(key, of(2000)).If(table.NotExists())); err == nil {
				t.Error("it was not refused")
			}
			return nil
		}, "PutItem", 0, 2},
		{"a transaction, each twice", 100, func(b table.Table) error {
			return b.Write(t.Context(), table.Put(key, of(1)), table.Update(other).Set("x", ""))
		}, "TransactWriteItems", 0, 12},
		{"a condition in a transaction", 1500, func(b table.Table) error { return b.Write(t.Context(), table.Check(key, table.Exists())) }, "TransactWriteItems", 0, 4},
	} {
		s := newStack(t)
		check(t, s.data.Table.Write(t.Context(), table.Put(key, of(c.now)), table.Put(other, of(5000))))
		s.begin(c.name)
		check(t, c.do(s.ports.Table))
		got := s.meter.count
		if got.Units[reads] != c.reads || got.Units[writes] != c.writes || got.Beside["DynamoDB "+c.call] != 1 {
			text, _ := json.Marshal(got)
			t.Errorf("%s: %s, want %v read units and %v write units", c.name, text, c.reads, c.writes)
		}
	}
}
