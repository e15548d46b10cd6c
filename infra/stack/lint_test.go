package stack

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEachFunctionHasALogARoleAndAnAlarmOfItsOwn(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		if got := show(f.Props["Role"]); got != "!GetAtt "+f.ID+"Role.Arn" {
			t.Errorf("%s: the role is %s", f.ID, got)
		}
		if got := show(at(f.Props, "LoggingConfig", "LogGroup")); got != "!Ref "+f.ID+"Logs" {
			t.Errorf("%s: the log is %s", f.ID, got)
		}
		if got := show(at(tpl.Resources[f.ID+"Logs"], "Properties", "LogGroupName")); got != "!Sub /${AWS::StackName}/"+f.Name {
			t.Errorf("%s: the log's name is %s", f.ID, got)
		}
		checkAlarm(t, tpl, f)
	}
}

func checkAlarm(t *testing.T, tpl document, f fn) {
	t.Helper()
	var watched []string
	for _, m := range list(at(tpl.Resources[f.ID+"Alarm"], "Properties", "Metrics")) {
		metric := at(m, "MetricStat", "Metric")
		for _, d := range list(at(metric, "Dimensions")) {
			watched = append(watched, show(at(metric, "MetricName"))+" of "+show(at(d, "Value")))
		}
	}
	if want := []string{"Errors of !Ref " + f.ID, "Throttles of !Ref " + f.ID}; !slices.Equal(watched, want) {
		t.Errorf("%s: the alarm watches %v, want %v", f.ID, watched, want)
	}
}

func TestAlarmsAreDescribed(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	alarms := tpl.ofType("AWS::CloudWatch::Alarm")
	for _, id := range []string{"ApiAlarm", "TableAlarm", "DeadLettersAlarm", "QueueAgeAlarm", "RetriesAlarm", "StreamAgeAlarm", "SweepMissedAlarm", "ConcurrencyAlarm"} {
		if !slices.Contains(alarms, id) {
			t.Errorf("there is no %s", id)
		}
	}
	for _, id := range alarms {
		r := tpl.Resources[id]
		if at(r, "Properties", "AlarmDescription") == nil || at(r, "Properties", "TreatMissingData") == nil {
			t.Errorf("%s: description or treatment of missing data is missing", id)
		}
	}
}

func TestLogsDoNotStayForEver(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	groups := tpl.ofType("AWS::Logs::LogGroup")
	if want := len(tpl.functions()) + 1; len(groups) != want {
		t.Errorf("%d log groups, want %d", len(groups), want)
	}
	for _, id := range groups {
		if got := show(at(tpl.Resources[id], "Properties", "RetentionInDays")); got != "!Ref LogRetentionDays" {
			t.Errorf("%s keeps logs for %s", id, got)
		}
	}
}

func TestEachEventHasPayloadFormatOne(t *testing.T) {
	t.Parallel()
	for _, f := range read(t).functions() {
		for _, e := range f.events("HttpApi") {
			if e["PayloadFormatVersion"] != "1.0" || show(e["ApiId"]) != "!Ref Api" {
				t.Errorf("%s: %v", f.ID, e)
			}
		}
	}
}

func TestFunctionsAreBuiltByMakeForTheSameSystem(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	globals := at(tpl.Globals, "Function")
	if show(at(globals, "Runtime")) != "provided.al2023" || show(at(globals, "Architectures")) != "[arm64]" || show(at(globals, "Handler")) != "bootstrap" {
		t.Errorf("the functions' system is %v", globals)
	}
	for _, f := range tpl.functions() {
		if at(tpl.Resources[f.ID], "Metadata", "BuildMethod") != "makefile" {
			t.Errorf("%s is not built by make", f.ID)
		}
		for _, own := range []string{"Runtime", "Architectures", "Handler", "CodeUri"} {
			if f.Props[own] != nil {
				t.Errorf("%s has a %s of its own", f.ID, own)
			}
		}
	}
}

func TestWhoeverHashesPasswordsHasTheMemoryAndCPU(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		checksPasswords := slices.ContainsFunc(tpl.policies(f), func(s statement) bool {
			return slices.Contains(s.Keys, "throttle#*") || slices.Contains(s.Keys, "change#*")
		})
		memory, own := f.Props["MemorySize"].(int)
		if !own {
			memory, _ = at(tpl.Globals, "Function", "MemorySize").(int)
		}
		if checksPasswords && memory < 512 {
			t.Errorf("%s hashes passwords with %d MB", f.ID, memory)
		}
	}
}

func TestNoPolicyIsWiderThanItsResource(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		role := at(tpl.Resources[f.ID+"Role"], "Properties")
		if at(role, "ManagedPolicyArns") != nil || f.Props["Policies"] != nil {
			t.Errorf("%s has a managed policy", f.ID)
		}
		logs := 0
		for _, s := range tpl.policies(f) {
			checkStatement(t, f, s)
			if slices.Equal(s.Actions, []string{"logs:CreateLogStream", "logs:PutLogEvents"}) && slices.Equal(s.Resources, []string{"!GetAtt " + f.ID + "Logs.Arn"}) {
				logs++
			}
		}
		if logs != 1 {
			t.Errorf("%s does not write to its own log alone", f.ID)
		}
	}
}

// checkStatement knows each kind of resource there is. None needs a wildcard
// but for the objects of a bucket, whose keys begin with users' names.
func checkStatement(t *testing.T, f fn, s statement) {
	t.Helper()
	if s.Effect != "Allow" || len(s.Resources) != 1 || len(s.Actions) == 0 {
		t.Errorf("%s: %+v", f.ID, s)
		return
	}
	if s.Not { // but for text messages, as numbers have no ARN: topics they are not
		if !slices.Equal(s.Actions, []string{"sns:Publish"}) || s.Resources[0] != "!Sub arn:${AWS::Partition}:sns:*:*:*" {
			t.Errorf("%s: %+v", f.ID, s)
		}
		return
	}
	known := map[string][]string{
		"logs":     {"!GetAtt " + f.ID + "Logs.Arn"},
		"dynamodb": {"!GetAtt Table.Arn", "!GetAtt Table.StreamArn", "!Sub ${Table.Arn}/stream/*"},
		"s3":       {"!GetAtt FilesBucket.Arn", "!GetAtt BackupBucket.Arn", "!Sub ${FilesBucket.Arn}/*", "!Sub ${BackupBucket.Arn}/*"},
		"sns":      {"!Ref NoticesTopic", "!Ref EventsTopic"},
		"sqs":      {"!GetAtt MailQueue.Arn", "!GetAtt SmsQueue.Arn", "!GetAtt RelayDeadLetters.Arn", "!GetAtt FeedbackDeadLetters.Arn"},
		"ses": {
			"!Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*",
			"!Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/${MailEvents}",
		},
		"ssm": {"!Sub arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/${AWS::StackName}/link-key"},
	}
	for _, action := range s.Actions {
		service, _, _ := strings.Cut(action, ":")
		if strings.Contains(action, "*") || !slices.Contains(known[service], s.Resources[0]) {
			t.Errorf("%s: %s on %s", f.ID, action, s.Resources[0])
		}
		if service == "dynamodb" && s.Resources[0] == "!GetAtt Table.Arn" && len(s.Keys) == 0 {
			t.Errorf("%s: %s on items of any partition", f.ID, action)
		}
	}
	from := show(at(s.Condition, "StringEquals", "ses:FromAddress"))
	if strings.Contains(s.Resources[0], ":identity/*") && from != "!Ref SenderAddress" {
		t.Errorf("%s: %v as any sender", f.ID, s.Actions)
	}
	if slices.Contains(s.Keys, "*") {
		t.Errorf("%s: %v on items of any partition", f.ID, s.Actions)
	}
}

func TestTheDataSurviveTheStack(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	data := slices.Concat(tpl.ofType("AWS::DynamoDB::Table"), tpl.ofType("AWS::S3::Bucket"), tpl.ofType("AWS::S3::BucketPolicy"))
	if want := []string{"Table", "BackupBucket", "FilesBucket", "BackupBucketPolicy", "FilesBucketPolicy"}; !slices.Equal(data, want) {
		t.Errorf("the data are in %v, want %v", data, want)
	}
	for _, id := range data {
		r := tpl.Resources[id]
		if at(r, "DeletionPolicy") != "Retain" || at(r, "UpdateReplacePolicy") != "Retain" {
			t.Errorf("%s does not stay", id)
		}
	}
}

func TestTheTableIsSafeAndCostsNothingIdle(t *testing.T) {
	t.Parallel()
	props := at(read(t).Resources["Table"], "Properties")
	for _, c := range []struct {
		want any
		keys []string
	}{
		{"PAY_PER_REQUEST", []string{"BillingMode"}},
		{true, []string{"PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"}},
		{true, []string{"DeletionProtectionEnabled"}},
		{true, []string{"SSESpecification", "SSEEnabled"}},
		{"ttl", []string{"TimeToLiveSpecification", "AttributeName"}},
		{true, []string{"TimeToLiveSpecification", "Enabled"}},
		{"NEW_IMAGE", []string{"StreamSpecification", "StreamViewType"}},
	} {
		if got := at(props, c.keys...); got != c.want {
			t.Errorf("%s is %v, want %v", strings.Join(c.keys, "."), got, c.want)
		}
	}
	if got := show(at(props, "KeySchema")); got != "[map[AttributeName:pk KeyType:HASH] map[AttributeName:sk KeyType:RANGE]]" {
		t.Errorf("the key is %s", got)
	}
}

func TestTheBucketsAreClosed(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, id := range tpl.ofType("AWS::S3::Bucket") {
		props := at(tpl.Resources[id], "Properties")
		block, _ := at(props, "PublicAccessBlockConfiguration").(object)
		for _, what := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			if block[what] != true {
				t.Errorf("%s: %s is %v", id, what, block[what])
			}
		}
		if got := show(at(props, "OwnershipControls", "Rules")); got != "[map[ObjectOwnership:BucketOwnerEnforced]]" {
			t.Errorf("%s: ownership is %s", id, got)
		}
		if got := show(at(props, "BucketEncryption", "ServerSideEncryptionConfiguration")); !strings.Contains(got, "SSEAlgorithm:AES256") {
			t.Errorf("%s: encryption is %s", id, got)
		}
		checkTLS(t, tpl, id)
	}
}

func checkTLS(t *testing.T, tpl document, bucket string) {
	t.Helper()
	props := at(tpl.Resources[bucket+"Policy"], "Properties")
	if got := show(at(props, "Bucket")); got != "!Ref "+bucket {
		t.Errorf("the policy of %s is for %s", bucket, got)
	}
	all := statements(at(props, "PolicyDocument"))
	if len(all) != 1 || all[0].Effect != "Deny" || show(at(all[0].Condition, "Bool", "aws:SecureTransport")) != "false" ||
		!slices.Equal(all[0].Resources, []string{"!GetAtt " + bucket + ".Arn", "!Sub ${" + bucket + ".Arn}/*"}) {
		t.Errorf("the policy of %s is %+v", bucket, all)
	}
}

func TestTheAPILimitsRequestsAndLogsNoQuery(t *testing.T) {
	t.Parallel()
	props := at(read(t).Resources["Api"], "Properties")
	for key, want := range map[string]string{"ThrottlingRateLimit": "!Ref ThrottleRate", "ThrottlingBurstLimit": "!Ref ThrottleBurst"} {
		if got := show(at(props, "DefaultRouteSettings", key)); got != want {
			t.Errorf("%s is %s", key, got)
		}
	}
	if got := at(props, "StageName"); got != "$default" {
		t.Errorf("the stage is %v", got)
	}
	format := show(at(props, "AccessLogSettings", "Format"))
	if !strings.Contains(format, "$context.status") || strings.Contains(strings.ToLower(format), "query") || strings.Contains(format, "authorizer") {
		t.Errorf("the access log's format is %s", format)
	}
}

func TestEachParameterIsDescribedAndUsed(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	used := show(object{"all": []any{tpl.Conditions, tpl.Resources, tpl.Outputs}})
	for name, p := range tpl.Parameters {
		if len(show(at(p, "Description"))) < 20 || at(p, "Default") == nil {
			t.Errorf("%s has no description or no default", name)
		}
		if !strings.Contains(used, "Ref:"+name+"]") && !strings.Contains(used, "${"+name+"}") {
			t.Errorf("%s is not used", name)
		}
	}
}

func TestBodiesFitThroughLambda(t *testing.T) {
	t.Parallel()
	const (
		payload  = 6 << 20   // bytes, of an event or an answer
		reserved = 128 << 10 // for all but the body: 10 KiB of headers and query, repeated and escaped
	)
	tpl := read(t)
	for _, name := range []string{"MaxBody", "RedirectOver"} {
		for _, bound := range []string{"Default", "MaxValue"} {
			n, err := strconv.Atoi(show(at(tpl.Parameters[name], bound)))
			if encoded := (n + 2) / 3 * 4; err != nil || encoded > payload-reserved {
				t.Errorf("%s of %s: %d bytes become %d, %v", bound, name, n, encoded, err)
			}
		}
	}
}

// TestWhatSAMMakesOfEventsHasNamesOfItsOwn: it calls a rule by the names of its
// function and event, and CloudFormation takes no template in which a resource
// and a parameter have the same.
func TestWhatSAMMakesOfEventsHasNamesOfItsOwn(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		events, _ := f.Props["Events"].(object)
		for event := range events {
			name := f.ID + event
			if tpl.Parameters[name] != nil || tpl.Resources[name] != nil {
				t.Errorf("%s is there already", name)
			}
		}
	}
}
