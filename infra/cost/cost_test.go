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

	"ferry/shared/boot/boottest"
	"ferry/shared/table"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

// document is template.yaml with its loops expanded, as infra/stack keeps it.
type document struct{ Parameters, Conditions, Globals, Resources object }

func read(t testing.TB) document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(boottest.Root(t), "infra/stack/testdata/expanded.json"))
	check(t, err)
	var kept struct{ Expanded document }
	check(t, json.Unmarshal(text, &kept))
	return kept.Expanded
}

// value returns what CloudFormation makes of a condition, or of a choice between two
// values, with these parameters and the defaults of all others.
func (d document) value(v any, parameters map[string]string) any {
	of, _ := v.(object)
	for name, argument := range of {
		args := slices.Clone(list(argument))
		for i := range args {
			args[i] = d.value(args[i], parameters)
		}
		switch name {
		case "Ref":
			if given, ok := parameters[fmt.Sprint(argument)]; ok {
				return given
			}
			return at(d.Parameters, fmt.Sprint(argument), "Default")
		case "Condition":
			return d.value(d.Conditions[fmt.Sprint(argument)], parameters)
		case "Fn::If":
			if d.value(object{"Condition": args[0]}, parameters).(bool) {
				return args[1]
			}
			return args[2]
		case "Fn::Equals":
			return args[0] == args[1]
		case "Fn::Not":
			return !args[0].(bool)
		case "Fn::And":
			return !slices.Contains(args, any(false))
		case "Fn::Or":
			return slices.Contains(args, any(true))
		}
		panic(name + " is not known here")
	}
	return v
}

func list(v any) []any { all, _ := v.([]any); return all }

// at follows keys into nested mappings; nil if there is nothing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(object)
		v = o[k]
	}
	return v
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

func TestThePageIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := newPage(boottest.Root(t))
	check(t, err)
	if page(t) != want {
		t.Errorf("%s is out of date: run go run ./infra/cost", pageFile)
	}
}

func TestEachFunctionIsPricedWithItsMemory(t *testing.T) {
	t.Parallel()
	memory := memoryOf(read(t))
	for _, c := range open(t).order {
		for name, r := range c.Runs {
			if memory[name] != r.Memory || r.Own <= 0 {
				t.Errorf("%s: %s has %d MB, and takes %v ms; the template says %d MB", c.Operation, name, r.Memory, r.Own, memory[name])
			}
		}
	}
}

// memoryOf returns the memory of each function in MB.
func memoryOf(tpl document) map[string]int {
	memory := map[string]int{}
	for id, r := range tpl.Resources {
		if at(r, "Type") == "AWS::Serverless::Function" {
			mb, ok := at(r, "Properties", "MemorySize").(float64)
			if !ok {
				mb, _ = at(tpl.Globals, "Function", "MemorySize").(float64)
			}
			memory[strings.ToLower(id)] = int(mb)
		}
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

// month returns what the resources of an idle stack with these parameters cost in a
// month, and the types of those without a price by time.
func month(tpl document, parameters map[string]string, rates map[string]float64) (usd float64, free map[string]bool) {
	free = map[string]bool{}
	for _, r := range tpl.Resources {
		if c := at(r, "Condition"); c != nil && !tpl.value(object{"Condition": c}, parameters).(bool) {
			continue
		}
		switch kind, _ := at(r, "Type").(string); kind {
		case "AWS::CloudWatch::Alarm":
			metrics, several := at(r, "Properties", "Metrics").([]any)
			n := 0.0
			for _, m := range metrics {
				if at(m, "MetricStat") != nil {
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
	return usd, free
}

// hourly are the properties that would give a resource a price by the hour.
func hourly(v any) (found []string) {
	byTheHour := []string{"ProvisionedConcurrencyConfig", "ProvisionedThroughput", "VpcConfig", "KmsMasterKeyId", "KMSMasterKeyId", "KmsKeyId"}
	switch v := v.(type) {
	case object:
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

func TestAStackCostsOnlyItsStorageWhileIdle(t *testing.T) {
	t.Parallel()
	b, tpl := open(t), read(t)
	usd, free := month(tpl, nil, b.rates)
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

func TestThePageSaysWhatEachOptionCosts(t *testing.T) {
	t.Parallel()
	for _, row := range options(t, read(t)) {
		if !strings.Contains(page(t), row) {
			t.Errorf("the page has no row %s", row)
		}
	}
}

// TestANewFunctionNeedsNoFigure adds one to the template, and to no operation.
func TestANewFunctionNeedsNoFigure(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	before := options(t, tpl)
	for _, suffix := range []string{"", "Role", "Logs", "Alarm"} {
		tpl.Resources["Ping"+suffix] = tpl.Resources["OpenAPI"+suffix]
	}
	if after := options(t, tpl); !slices.Equal(after, before) || memoryOf(tpl)["ping"] == 0 {
		t.Errorf("the page needs other rows: %q, before %q", after, before)
	}
}

// options returns the rows of the options that cost something while nobody calls.
func options(t *testing.T, tpl document) (rows []string) {
	b := open(t)
	metrics := float64(customMetrics(t)) * b.rates["CloudWatch: custom metrics, a month"]
	free := map[string]bool{"AWS::ApiGatewayV2::DomainName": true, "AWS::ApiGatewayV2::ApiMapping": true, "AWS::Logs::SubscriptionFilter": true}
	_, byDefault := month(tpl, nil, b.rates)
	maps.Copy(free, byDefault)
	for _, o := range []struct {
		name, value string
		beside      float64 // what no resource shows
	}{
		{"AlarmEmail", "ops@example.com", 0}, {"Deployment", "Canary10Percent5Minutes", 0}, {"Metrics", "on", metrics}, {"Dashboard", "on", 0},
		{"SenderAddress", "ferry@example.com", b.poll()}, {"SmsSending", "on", b.poll()}, {"DomainName", "files.example.com", 0},
	} {
		usd, kinds := month(tpl, map[string]string{o.name: o.value, "SmsStatusLogs": "on"}, b.rates)
		text := dollars(usd + o.beside)
		if o.name == "AlarmEmail" || o.name == "Deployment" { // an alarm of two metrics for each function
			each := 2 * b.rates["CloudWatch: metrics of alarms, a month"]
			text = dollars(usd-each*float64(len(memoryOf(tpl)))) + ", and " + dollars(each) + " for each function"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", o.name, text))
		for kind := range kinds {
			if !free[kind] {
				t.Errorf("%s: what %s costs is not known", o.name, kind)
			}
		}
	}
	return rows
}

// customMetrics returns the number of metrics that a stack defines.
func customMetrics(t *testing.T) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(boottest.Root(t), "shared/boot/lambda/metrics.go"), nil, 0)
	check(t, err)
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				if s.(*ast.ValueSpec).Names[0].Name != "MetricsNamespace" {
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
		if got := tpl.polled(c.parameters); !slices.Equal(got, c.polled) {
			t.Errorf("with %v these queues are polled: %v, want %v", c.parameters, got, c.polled)
		}
	}
}

// polled returns the queues that functions read.
func (d document) polled(parameters map[string]string) (queues []string) {
	for _, r := range d.Resources {
		events, _ := at(r, "Properties", "Events").(object)
		for _, e := range events {
			if at(e, "Type") == "SQS" && d.value(at(e, "Properties", "Enabled"), parameters) == true {
				queues = append(queues, fmt.Sprint(list(at(e, "Properties", "Queue", "Fn::GetAtt"))[0]))
			}
		}
	}
	slices.Sort(queues)
	return queues
}

func TestResourcesThatCostWhileIdleAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource string
		usd      float64
		free     bool // of a type that the page would have to list
		hourly   bool
	}{
		"a table":                 {`"AWS::DynamoDB::Table"`, 0, true, false},
		"a table kept ready":      {`"AWS::DynamoDB::Table", "Properties": {"ProvisionedThroughput": {"ReadCapacityUnits": 5}}`, 0, true, true},
		"a function kept ready":   {`"AWS::Serverless::Function", "Properties": {"ProvisionedConcurrencyConfig": {}}`, 0, true, true},
		"a function in a VPC":     {`"AWS::Serverless::Function", "Properties": {"VpcConfig": {"SubnetIds": ["x"]}}`, 0, true, true},
		"an alarm":                {`"AWS::CloudWatch::Alarm", "Properties": {"MetricName": "x"}`, 0.10, false, false},
		"an alarm of two metrics": {`"AWS::CloudWatch::Alarm", "Properties": {"Metrics": [{}, {"MetricStat": {}}, {"MetricStat": {}}]}`, 0.20, false, false},
		"a dashboard":             {`"AWS::CloudWatch::Dashboard"`, 3, false, false},
		"a queue under a key":     {`"AWS::SQS::Queue", "Properties": {"KmsMasterKeyId": "alias/x"}`, 0, true, true},
		"a key of KMS":            {`"AWS::KMS::Key"`, 0, true, false},
		"a way out of a VPC":      {`"AWS::EC2::NatGateway"`, 0, true, false},
		"a key that is left out":  {`"AWS::KMS::Key", "Condition": "No"`, 0, false, false},
	} {
		tpl := document{Conditions: object{"No": object{"Fn::Equals": []any{"a", "b"}}}}
		check(t, json.Unmarshal([]byte(`{"It": {"Type": `+c.resource+`}}`), &tpl.Resources))
		usd, free := month(tpl, nil, open(t).rates)
		if math.Abs(usd-c.usd) > 1e-12 || len(free) > 0 != c.free {
			t.Errorf("%s: %v USD, and the free types are %v", name, usd, free)
		}
		if got := len(hourly(tpl.Resources["It"])) > 0; got != c.hourly {
			t.Errorf("%s: by the hour is %v", name, got)
		}
	}
}

func TestItemSizesAreCountedAsDynamoDBDoes(t *testing.T) {
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

func TestUnitsAreCountedAsDynamoDBDoes(t *testing.T) {
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
		{"an item that shrinks", 1500, func(b table.Table) error { return b.Update(t.Context(), table.Update(key).Set("x", ""), &into) }, "UpdateItem", 0, 2},
		{"an item that is deleted", 1500, func(b table.Table) error { return b.Write(t.Context(), table.Delete(key)) }, "DeleteItem", 0, 2},
		{"a write that is refused", 100, func(b table.Table) error {
			if err := b.Write(t.Context(), table.Put(key, of(2000)).If(table.NotExists())); err == nil {
				t.Error("the write was not refused")
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
