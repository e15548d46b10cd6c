package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"
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

func counted(t testing.TB) []*count {
	t.Helper()
	all, err := readCounts(filepath.Join(boottest.Root(t), countsFile))
	check(t, err)
	return all
}

func open(t testing.TB) *book {
	t.Helper()
	b, err := newBook(read(t), counted(t))
	check(t, err)
	return b
}

func TestThePagesAreWhatTheProgramWrites(t *testing.T) {
	t.Parallel()
	root := boottest.Root(t)
	p, err := newPages(root, read(t))
	check(t, err)
	for name, want := range map[string]string{pageFile: p.page, readmeFile: p.readme} {
		got, err := os.ReadFile(filepath.Join(root, name))
		check(t, err)
		if string(got) != want {
			t.Errorf("%s is not what it should be: go run ./infra/cost -write", name)
		}
	}
}

func TestTheCallsAreStillWhatWasCounted(t *testing.T) {
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/cost")
	}
	t.Parallel()
	now, err := countAll(t.Context(), read(t), 1)
	check(t, err)
	before := counted(t)
	if len(now) != len(before) {
		t.Fatalf("%d operations are counted, and there are %d: go run ./infra/awslocal -- go run ./infra/cost -count", len(before), len(now))
	}
	for i, c := range before {
		if c.Operation != now[i].Operation {
			t.Errorf("%s was counted, and %s is done", c.Operation, now[i].Operation)
		} else if err := c.differs(now[i]); err != nil {
			t.Errorf("%s is no longer what was counted: go run ./infra/awslocal -- go run ./infra/cost -count: %v", c.Operation, err)
		}
	}
}

func TestEachFunctionIsCounted(t *testing.T) {
	t.Parallel()
	b := open(t)
	run := map[string]bool{"linkkey": true} // once, when a stack is made
	for _, c := range b.order {
		for name := range c.Runs {
			run[name] = true
		}
	}
	for name := range b.memory {
		if !run[name] {
			t.Errorf("no operation runs the function %s", name)
		}
	}
}

func TestEachPriceHasItsPageAndWhereItWasRead(t *testing.T) {
	t.Parallel()
	known := map[unit]bool{}
	for _, p := range prices() {
		if known[p.unit] || p.usd <= 0 || p.per <= 0 || !strings.HasPrefix(p.page, "https://aws.amazon.com/") || p.read == "" {
			t.Errorf("the price of %s is %+v", p.unit, p)
		}
		known[p.unit] = true
	}
	for _, c := range counted(t) {
		for u := range c.Units {
			if !known[u] {
				t.Errorf("%s: there is no price of %s", c.Operation, u)
			}
		}
	}
}

func TestABillIsUnitsTimesPrices(t *testing.T) {
	t.Parallel()
	b := &book{rates: newRates(), memory: map[string]int{"upload": 1024, "email": 256}}
	c := newCount("x")
	c.Units = map[unit]float64{requests: 1e6, writes: 2e6, mails: 1e3, logBytes: gb}
	c.Runs = map[string]*run{
		"upload": {Events: 1, Own: 1000 * 1024.0 / wholeCPU, Calls: map[string]int{"DynamoDB Query": 10}}, // 1 s and 100 ms
		"email":  {Events: 1, Calls: map[string]int{"SES SendEmail": 5}},                                  // 1 s
	}
	want := 1.00 + 2*0.625 + 0.10 + 0.50 + (1.1*1+1*0.25)*0.0000133334
	if got := b.of(b.units(c)); math.Abs(got-want) > 1e-12 {
		t.Errorf("the bill is %v USD, want %v", got, want)
	}
}

// everything is the parameters by which something more is made.
func everything() map[string]string {
	return map[string]string{
		"AlarmEmail": "ops@example.com", "Deployment": "Canary10Percent5Minutes", "Metrics": "on", "Dashboard": "on", "SenderAddress": "ferry@example.com",
		"SmsSending": "on", "SmsStatusLogs": "on", "DomainName": "files.example.com", "CertificateArn": "arn:aws:acm:x", "CorsOrigins": "*", "PublicUrl": "https://files.example.com/v1",
	}
}

func TestAStackCostsItsStorageAloneWhileNobodyCalls(t *testing.T) {
	t.Parallel()
	b, tpl := open(t), read(t)
	usd, err := b.month(tpl, nil)
	check(t, err)
	if usd != 0 {
		t.Errorf("the resources of a stack with the parameters' defaults cost %v USD a month", usd)
	}
	if sweeps := daysPerMonth * b.usd(sweepEmpty); sweeps > 0.001 {
		t.Errorf("the daily sweep costs %v USD a month", sweeps)
	}
	for id, r := range tpl.Resources {
		if found := hourly(r); len(found) > 0 {
			t.Errorf("%s has %v, which cost by the hour", id, found)
		}
	}
	_, err = b.month(tpl, everything()) // whatever a parameter adds is known too
	check(t, err)
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
		values := placeholders(tpl)
		maps.Copy(values, c.parameters)
		for _, queue := range []string{"MailQueue", "SmsQueue"} {
			values[queue+".Arn"] = queue
		}
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
		known    bool
		hourly   bool
	}{
		"a table":              {"Type: AWS::DynamoDB::Table", 0, true, false},
		"a table kept ready":   {"{Type: AWS::DynamoDB::Table, Properties: {ProvisionedThroughput: {ReadCapacityUnits: 5}}}", 0, true, true},
		"a function":           {"Type: AWS::Serverless::Function", 0, true, false},
		"one kept ready":       {"{Type: AWS::Serverless::Function, Properties: {ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 1}}}", 0, true, true},
		"one in a network":     {"{Type: AWS::Serverless::Function, Properties: {VpcConfig: {SubnetIds: [x]}}}", 0, true, true},
		"an alarm":             {"{Type: AWS::CloudWatch::Alarm, Properties: {MetricName: x}}", 0.10, true, false},
		"one of two metrics":   {"{Type: AWS::CloudWatch::Alarm, Properties: {Metrics: [{Expression: x}, {MetricStat: {}}, {MetricStat: {}}]}}", 0.20, true, false},
		"a dashboard":          {"Type: AWS::CloudWatch::Dashboard", 3, true, false},
		"a key of one's own":   {"Type: AWS::KMS::Key", 0, false, false},
		"a queue under such":   {"{Type: AWS::SQS::Queue, Properties: {KmsMasterKeyId: alias/x}}", 0, true, true},
		"a way out of a VPC":   {"Type: AWS::EC2::NatGateway", 0, false, false},
		"an endpoint of a VPC": {"Type: AWS::EC2::VPCEndpoint", 0, false, false},
		"one that is left out": {"{Type: AWS::KMS::Key, Condition: No}", 0, true, false},
	} {
		if !strings.HasPrefix(c.resource, "{") {
			c.resource = "{" + c.resource + "}"
		}
		tpl, err := template.Parse([]byte("Conditions: {No: !Equals [a, b]}\nResources: {It: " + c.resource + "}\n"))
		check(t, err)
		b := &book{rates: newRates()}
		usd, err := b.month(tpl, nil)
		if (err == nil) != c.known || math.Abs(usd-c.usd) > 1e-12 {
			t.Errorf("%s: %v USD, %v", name, usd, err)
		}
		if got := len(hourly(tpl.Resources["It"])) > 0; got != c.hourly {
			t.Errorf("%s: by the hour is %v", name, got)
		}
	}
}

func TestTheMetricsThatAreChargedAreThoseOfTheirPackage(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(boottest.Root(t), "shared/boot/metrics/metrics.go"), nil, 0)
	check(t, err)
	found := map[string]bool{}
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				found[s.(*ast.ValueSpec).Names[0].Name] = true
			}
		}
	}
	delete(found, "Namespace")
	if len(found) != metricsOfOne {
		t.Errorf("the metrics are %v, and %d are charged", slices.Sorted(maps.Keys(found)), metricsOfOne)
	}
}

func TestUnitsOfDynamoDB(t *testing.T) {
	t.Parallel()
	text := func(n int) item { return item{"pk": {"S": strings.Repeat("x", n-2)}} } // and 2 for its name
	for name, c := range map[string]struct {
		item item
		size int
	}{
		"text":     {text(100), 100},
		"UTF-8":    {item{"é": {"S": "è"}}, 4},
		"a number": {item{"n": {"N": "12345"}}, 1 + 4},
		"bytes":    {item{"b": {"B": "AAAA"}}, 1 + 3},
		"a truth":  {item{"t": {"BOOL": true}}, 2},
		"a list":   {item{"l": {"L": []any{map[string]any{"S": "abc"}, map[string]any{"S": "d"}}}}, 1 + 3 + 1 + 3 + 1 + 1},
		"a map":    {item{"m": {"M": map[string]any{"k": map[string]any{"S": "abc"}}}}, 1 + 3 + 1 + 1 + 3},
		"a set":    {item{"s": {"SS": []any{"ab", "c"}}}, 1 + 3 + 1 + 2 + 1 + 1},
		"nothing":  {nil, 0},
	} {
		if got := c.item.size(); got != c.size {
			t.Errorf("%s: %d bytes, want %d", name, got, c.size)
		}
	}
	for _, c := range []struct{ size, each, want int }{{0, readUnit, 1}, {readUnit, readUnit, 1}, {readUnit + 1, readUnit, 2}, {3000, writeUnit, 3}} {
		if got := units(c.size, c.each); got != float64(c.want) {
			t.Errorf("%d bytes by %d: %v units, want %d", c.size, c.each, got, c.want)
		}
	}
}

// store stands for DynamoDB: each item that is asked for has this size, which
// a write changes.
type store struct{ now, after int }

func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	one := `{"pk":{"S":"` + strings.Repeat("x", max(0, s.now-2)) + `"}}`
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "GetItem":
		w.WriteString(`{"Item":` + one + `}`)
	case "Query":
		w.WriteString(`{"Items":[` + one + `,` + one + `]}`)
	case "BatchGetItem":
		w.WriteString(`{"Responses":{"t":[` + one + `]}}`)
	default:
		s.now = s.after
		w.WriteString(`{}`)
	}
	return w.Result(), nil
}

func TestTheMeterCountsUnitsByDynamoDBsRules(t *testing.T) {
	t.Parallel()
	const key = `"Key":{"pk":{"S":"a"},"sk":{"S":"b"}}`
	for name, c := range map[string]struct {
		operation, body string
		now, after      int
		reads, writes   float64
	}{
		"an item":                      {"GetItem", `{` + key + `}`, 5000, 0, 2, 0},
		"a query, all items together":  {"Query", `{}`, 3000, 0, 2, 0},
		"a batch, each by itself":      {"BatchGetItem", `{"RequestItems":{"t":{"Keys":[{},{},{}]}}}`, 5000, 0, 4, 0},
		"an item that grows":           {"UpdateItem", `{` + key + `}`, 100, 1500, 0, 2},
		"one that shrinks":             {"UpdateItem", `{` + key + `}`, 1500, 100, 0, 2},
		"one that goes":                {"DeleteItem", `{` + key + `}`, 1500, 0, 0, 2},
		"one that is refused":          {"PutItem", `{"Item":{"pk":{"S":"` + strings.Repeat("x", 2000) + `"}}}`, 100, 100, 0, 2},
		"a transaction, each twice":    {"TransactWriteItems", `{"TransactItems":[{"Put":{"Item":{"pk":{"S":"a"}}}},{"Update":{` + key + `}}]}`, 100, 100, 0, 4},
		"a condition in a transaction": {"TransactWriteItems", `{"TransactItems":[{"ConditionCheck":{` + key + `}}]}`, 1500, 1500, 0, 4},
	} {
		m := &meter{services: map[string]bool{"dynamodb.example": true}, next: &store{c.now, c.after}}
		m.begin(name)
		r, err := http.NewRequest("POST", "https://dynamodb.example/", strings.NewReader(c.body))
		check(t, err)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+c.operation)
		answer, err := m.RoundTrip(r)
		check(t, err)
		answer.Body.Close()
		got := m.end()
		if got.Units[reads] != c.reads || got.Units[writes] != c.writes || got.Beside["DynamoDB "+c.operation] != 1 {
			t.Errorf("%s: %+v, want %v read units and %v write units", name, got, c.reads, c.writes)
		}
	}
}

func TestCallsToS3ArePricedByWhatTheyDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, query, copies, name string
		unit                        unit
	}{
		{"PUT", "", "", "PutObject", puts},
		{"PUT", "", "b/k", "CopyObject", puts},
		{"PUT", "?partNumber=1&uploadId=x", "", "UploadPart", puts},
		{"PUT", "?partNumber=1&uploadId=x", "b/k", "UploadPartCopy", puts},
		{"POST", "?uploads", "", "CreateMultipartUpload", puts},
		{"POST", "?uploadId=x", "", "CompleteMultipartUpload", puts},
		{"GET", "?list-type=2", "", "ListObjectsV2", puts},
		{"GET", "?uploads", "", "ListMultipartUploads", puts},
		{"GET", "?uploadId=x", "", "ListParts", puts},
		{"GET", "", "", "GetObject", gets},
		{"HEAD", "", "", "HeadObject", gets},
		{"DELETE", "", "", "DeleteObject", ""},
		{"DELETE", "?uploadId=x", "", "AbortMultipartUpload", ""},
	} {
		m := &meter{}
		m.begin(c.name)
		r := httptest.NewRequest(c.method, "https://s3.example/bucket/key"+c.query, nil)
		if c.copies != "" {
			r.Header.Set("X-Amz-Copy-Source", c.copies)
		}
		m.object(r)
		want := map[unit]float64{}
		if c.unit != "" {
			want[c.unit] = 1
		}
		if got := m.end(); got.Beside["S3 "+c.name] != 1 || !maps.Equal(got.Units, want) {
			t.Errorf("%s %s: %+v, want %s", c.method, c.query, got, c.name)
		}
	}
}

func TestTheCommandTellsHowItIsUsed(t *testing.T) {
	t.Parallel()
	root := boottest.Root(t)
	var out bytes.Buffer
	check(t, realMain(t.Context(), root, nil, &out))
	for _, want := range []string{"1,000 uploads", "1 GB in a session", "nobody calls", "Each operation", "Prices", "Transfer Family"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q", want)
		}
	}
	for _, args := range [][]string{{"-help"}, {"-no-such-flag"}} {
		if err := realMain(t.Context(), root, args, &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
