package stack

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
)

// rule says what must be at a place in each resource of a type, as compact writes it
// without quotes; @ stands for the resource's name without its suffix.
type rule struct{ kind, place, want string }

const (
	nothing   = "null"
	something = "*"
)

func rules() []rule {
	const (
		function, logs = "AWS::Serverless::Function", "AWS::Logs::LogGroup"
		api, table     = "AWS::Serverless::HttpApi", "AWS::DynamoDB::Table"
		bucket, policy = "AWS::S3::Bucket", "AWS::S3::BucketPolicy"
		// What SAM makes from a function.
		lambda, role, alarm = "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::CloudWatch::Alarm"
	)
	return []rule{
		// Functions are built by make for one system, and each has its own role and log.
		{function, "Metadata.BuildMethod", "makefile"},
		{function, "Properties.Runtime", nothing},
		{function, "Properties.Architectures", nothing},
		{function, "Properties.Handler", nothing},
		{function, "Properties.CodeUri", nothing},
		{function, "Properties.Policies", nothing},
		{function, "Properties.Role", "${@Role.Arn}"},
		{function, "Properties.LoggingConfig.LogGroup", "${@Logs}"},
		{lambda, "Properties.Runtime", "provided.al2023"},
		{lambda, "Properties.Architectures", `["${Architecture}"]`},
		{lambda, "Properties.Handler", "bootstrap"},
		{lambda, "Properties.Role", "${@Role.Arn}"},
		{lambda, "Properties.LoggingConfig.LogGroup", "${@Logs}"},
		{role, "Properties.ManagedPolicyArns", nothing},
		// Logs expire, and alarms say what they mean.
		{logs, "Properties.RetentionInDays", "${LogRetentionDays}"},
		{alarm, "Properties.AlarmDescription", something},
		{alarm, "Properties.TreatMissingData", something},
		// The data outlives the stack. The table is safe and costs nothing while idle.
		{table, "DeletionPolicy", "RetainExceptOnCreate"},
		{table, "UpdateReplacePolicy", "Retain"},
		{table, "Properties.BillingMode", "PAY_PER_REQUEST"},
		{table, "Properties.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", "true"},
		{table, "Properties.DeletionProtectionEnabled", nothing}, // otherwise a creation that fails cannot delete it
		{"Custom::LinkKey", "DeletionPolicy", "RetainExceptOnCreate"},
		{"Custom::LinkKey", "Properties.Table", "${Table}"},
		{table, "Properties.SSESpecification.SSEEnabled", "true"},
		{table, "Properties.TimeToLiveSpecification", `{"AttributeName":"ttl","Enabled":true}`},
		{table, "Properties.StreamSpecification.StreamViewType", "NEW_IMAGE"},
		{table, "Properties.KeySchema", `[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]`},
		// The buckets are closed.
		{bucket, "DeletionPolicy", "RetainExceptOnCreate"},
		{bucket, "UpdateReplacePolicy", "Retain"},
		{bucket, "Properties.PublicAccessBlockConfiguration", `{"BlockPublicAcls":true,"BlockPublicPolicy":true,` +
			`"IgnorePublicAcls":true,"RestrictPublicBuckets":true}`},
		{bucket, "Properties.OwnershipControls.Rules", `[{"ObjectOwnership":"BucketOwnerEnforced"}]`},
		{bucket, "Properties.BucketEncryption",
			`{"ServerSideEncryptionConfiguration":[{"ServerSideEncryptionByDefault":{"SSEAlgorithm":"AES256"}}]}`},
		{policy, "DeletionPolicy", "RetainExceptOnCreate"},
		{policy, "UpdateReplacePolicy", "Retain"},
		{policy, "Properties.Bucket", "${@}"},
		{policy, "Properties.PolicyDocument.Statement", `[{"Action":"s3:*",` +
			`"Condition":{"Bool":{"aws:SecureTransport":"false"}},"Effect":"Deny","Principal":"*","Resource":["${@.Arn}","${@.Arn}/*"],"Sid":"OnlyTLS"}]`},
		// The API limits requests.
		{api, "Properties.StageName", "$default"},
		{api, "Properties.DefaultRouteSettings",
			`{"ThrottlingBurstLimit":"${ThrottleBurst}","ThrottlingRateLimit":"${ThrottleRate}"}`},
	}
}

// TestEachResourceFollowsTheRulesOfItsType checks the template and what SAM makes of it,
// each by the types that it has.
func TestEachResourceFollowsTheRulesOfItsType(t *testing.T) {
	t.Parallel()
	t.Run("in the template", func(t *testing.T) { keepsRules(t, read(t), "AWS::Lambda::Function") })
	t.Run("as SAM transforms it", func(t *testing.T) { keepsRules(t, transformed(t), "AWS::Serverless::") })
}

func keepsRules(t *testing.T, d document, not string) {
	t.Helper()
	for _, r := range rules() {
		ids := d.ofType(r.kind)
		if len(ids) == 0 != strings.HasPrefix(r.kind, not) {
			t.Errorf("the resources of the type %s are %v", r.kind, ids)
		}
		for _, id := range ids {
			stem := strings.TrimSuffix(id, "Policy")
			got := strings.Trim(compact(at(d.Resources[id], strings.Split(r.place, ".")...)), `"`)
			if want := strings.ReplaceAll(r.want, "@", stem); got != want && (want != something || got == nothing) {
				t.Errorf("%s: %s is %s, want %s", id, r.place, got, want)
			}
		}
	}
	data := slices.Concat(d.ofType("AWS::DynamoDB::Table"), d.ofType("AWS::S3::Bucket"), d.ofType("AWS::S3::BucketPolicy"))
	want := []string{"Table", "BackupBucket", "FilesBucket", "BackupBucketPolicy", "FilesBucketPolicy"}
	if !slices.Equal(data, want) {
		t.Errorf("the data are in %v, want %v", data, want)
	}
}

func TestEachFunctionHasItsOwnLogAndAlarm(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	want := []string{"ApiLogs"}
	for name, f := range tpl.functions() {
		want = append(want, f.ID+"Logs")
		if got := at(tpl.Mappings, "Names", f.ID, "Name"); got != name {
			t.Errorf("%s: its log's name is %v", f.ID, got)
		}
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
	same(t, "the logs", tpl.ofType("AWS::Logs::LogGroup"), want)
}

func TestALogIsNamedAfterTheStackAndItsFunction(t *testing.T) {
	t.Parallel()
	d := made(t)
	for _, id := range d.ofType("AWS::Logs::LogGroup") {
		want := "/${AWS::StackName}/" + strings.ToLower(strings.TrimSuffix(id, "Logs"))
		if got := at(d.Resources[id], "Properties", "LogGroupName"); got != want {
			t.Errorf("%s: the log's name is %v", id, got)
		}
	}
}

// TestEachEventHasPayloadFormatOneAndAUniqueName: SAM names a rule after its function
// and event, and CloudFormation refuses a template in which a resource and a parameter
// have the same name.
func TestEachEventHasPayloadFormatOneAndAUniqueName(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		for _, e := range f.events("HttpApi") {
			if e["PayloadFormatVersion"] != "1.0" || show(e["ApiId"]) != "!Ref Api" {
				t.Errorf("%s: %v", f.ID, e)
			}
		}
		events, _ := f.Props["Events"].(object)
		for event := range events {
			if name := f.ID + event; tpl.Parameters[name] != nil || tpl.Resources[name] != nil {
				t.Errorf("the name %s is taken already", name)
			}
		}
	}
}

func TestFunctionsThatHashPasswordsHaveEnoughMemoryAndCPU(t *testing.T) {
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
		logs := 0
		for _, s := range tpl.policies(f) {
			checkStatement(t, f, s)
			if slices.Equal(s.Actions, []string{"logs:CreateLogStream", "logs:PutLogEvents"}) && slices.Equal(s.Resources, []string{"!GetAtt " + f.ID + "Logs.Arn"}) {
				logs++
			}
		}
		if logs != 1 {
			t.Errorf("%s does not write to exactly its own log", f.ID)
		}
	}
}

// checkStatement knows each kind of resource. Only the objects of a bucket need a
// wildcard, as their keys begin with users' names.
func checkStatement(t *testing.T, f fn, s statement) {
	t.Helper()
	if s.Effect != "Allow" || len(s.Resources) != 1 || len(s.Actions) == 0 {
		t.Errorf("%s: %+v", f.ID, s)
		return
	}
	if s.Not { // only for text messages: a number has no ARN, so all but topics is allowed
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
		"sqs":      {"!GetAtt MailQueue.Arn", "!GetAtt SmsQueue.Arn", "!GetAtt RelayDeadLetters.Arn", "!GetAtt CodeDeadLetters.Arn", "!GetAtt FeedbackDeadLetters.Arn", "!GetAtt SweepDeadLetters.Arn"},
		"ses": {
			"!Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*",
			"!Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/${MailEvents}",
		},
		"ssm":    {"!Sub arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/ferry/${AWS::StackName}/link-key"},
		"lambda": {"!Ref SweepAliaslive"},
	}
	for _, action := range s.Actions {
		service, _, _ := strings.Cut(action, ":")
		if strings.Contains(action, "*") || !slices.Contains(known[service], s.Resources[0]) {
			t.Errorf("%s: %s on %s", f.ID, action, s.Resources[0])
		}
		if service == "dynamodb" && s.Resources[0] == "!GetAtt Table.Arn" && len(s.Keys) == 0 && f.ID != "LinkKey" { // which uses no items
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

func TestTheAccessLogHasNoQuery(t *testing.T) {
	t.Parallel()
	format := show(at(read(t).Resources["Api"], "Properties", "AccessLogSettings", "Format"))
	if !strings.Contains(format, "$context.status") || strings.Contains(strings.ToLower(format), "query") || strings.Contains(format, "authorizer") {
		t.Errorf("the access log's format is %s", format)
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

// TestNoBucketAbortsAnUploadThatIsStillOpen compares the buckets' rule for unfinished
// uploads with how long a session lives and is remembered.
func TestNoBucketAbortsAnUploadThatIsStillOpen(t *testing.T) {
	t.Parallel()
	if blob.PartsLife <= files.SessionLife {
		t.Errorf("the store keeps parts for %s and a session is open for %s", blob.PartsLife, files.SessionLife)
	}
	tpl := read(t)
	for _, bucket := range tpl.ofType("AWS::S3::Bucket") {
		rules := list(at(tpl.Resources[bucket], "Properties", "LifecycleConfiguration", "Rules"))
		if len(rules) != 2 || at(rules[0], "Status") != "Enabled" {
			t.Fatalf("%s: the rules are %v", bucket, rules)
		}
		days, _ := at(rules[0], "AbortIncompleteMultipartUpload", "DaysAfterInitiation").(int)
		if life := time.Duration(days) * 24 * time.Hour; life <= blob.PartsLife {
			t.Errorf("%s ends an upload after %s, and a session is remembered for %s", bucket, life, blob.PartsLife)
		}
	}
}

// TestRemovedBytesCanBeBroughtBack: whatever a function does wrong, it leaves a version of
// the bytes.
func TestRemovedBytesCanBeBroughtBack(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, bucket := range tpl.ofType("AWS::S3::Bucket") {
		p := at(tpl.Resources[bucket], "Properties")
		rule := list(at(p, "LifecycleConfiguration", "Rules"))[1]
		if at(p, "VersioningConfiguration", "Status") != "Enabled" || at(rule, "Status") != "Enabled" ||
			show(at(rule, "NoncurrentVersionExpiration")) != show(object{"NoncurrentDays": object{"Ref": "UndoDays"}}) || at(rule, "ExpiredObjectDeleteMarker") != true {
			t.Errorf("%s: %v", bucket, rule)
		}
	}
	for _, f := range tpl.functions() {
		for _, s := range tpl.policies(f) {
			for _, action := range s.Actions {
				if strings.HasPrefix(action, "s3:") && (strings.Contains(action, "Version") || strings.Contains(action, "Lifecycle") || strings.Contains(action, "*")) {
					t.Errorf("%s may do %s", f.ID, action)
				}
			}
		}
	}
}

// TestEachAlarmHasAPageInTheRunbook compares infra/runbook with the alarms. Those of
// functions, which are named after them, share one page.
func TestEachAlarmHasAPageInTheRunbook(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	pages := []string{"README.md"}
	for _, id := range tpl.ofType("AWS::CloudWatch::Alarm") {
		if at(tpl.Resources[strings.TrimSuffix(id, "Alarm")], "Type") == "AWS::Serverless::Function" {
			id = "FunctionAlarm"
		}
		pages = append(pages, id+".md")
	}
	same(t, "infra/runbook/", entries(t, "infra/runbook", ""), pages)
}

// TestAnIdleStackCostsOnlyItsStorage allows only types of resources that cost nothing
// while unused; what has a monthly price must be optional.
func TestAnIdleStackCostsOnlyItsStorage(t *testing.T) {
	t.Parallel()
	free := []string{
		"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage", "AWS::ApiGatewayV2::ApiMapping", "AWS::ApiGatewayV2::DomainName",
		"AWS::Lambda::Function", "AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::Version", "AWS::Lambda::Alias",
		"AWS::IAM::Role", "AWS::IAM::Policy", "AWS::Logs::LogGroup", "AWS::Logs::SubscriptionFilter", "AWS::Events::Rule", "Custom::LinkKey",
		"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::S3::BucketPolicy",
		"AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SNS::Subscription", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy",
		"AWS::SES::ConfigurationSet", "AWS::SES::ConfigurationSetEventDestination", "AWS::SES::EmailIdentity",
		"AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup",
	}
	chosen := []string{"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}
	for id, r := range transformed(t).Resources {
		kind, condition := show(at(r, "Type")), at(r, "Condition")
		switch {
		case slices.Contains(free, kind):
		case slices.Contains(chosen, kind) && condition != nil:
		default:
			t.Errorf("%s is of the type %s, with the condition %v: what does it cost while nobody uses it?", id, kind, condition)
		}
	}
}
