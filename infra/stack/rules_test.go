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

func rules() []rule {
	const (
		function, alarm = "AWS::Serverless::Function", "AWS::CloudWatch::Alarm"
		table, key      = "AWS::DynamoDB::Table", "Custom::LinkKey"
		bucket, policy  = "AWS::S3::Bucket", "AWS::S3::BucketPolicy"
	)
	return []rule{
		// Each function has its own role and log.
		{function, "Properties.Role", "${@Role.Arn}"},
		{function, "Properties.LoggingConfig.LogGroup", "${@Logs}"},
		// An alarm says what it means.
		{alarm, "Properties.AlarmDescription", something},
		{alarm, "Properties.TreatMissingData", something},
		// The data outlives the stack. The table is safe and costs nothing while idle.
		{table, "DeletionPolicy", "RetainExceptOnCreate"},
		{table, "UpdateReplacePolicy", "Retain"},
		{table, "Properties.BillingMode", "PAY_PER_REQUEST"},
		{table, "Properties.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", "true"},
		{table, "Properties.DeletionProtectionEnabled", nothing}, // otherwise a creation that fails cannot delete it
		{table, "Properties.SSESpecification.SSEEnabled", "true"},
		{key, "DeletionPolicy", "RetainExceptOnCreate"},
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
	}
}

const (
	nothing   = "null"
	something = "*"
)

// TestEachResourceFollowsTheRulesOfItsType holds for what a change adds, and when the
// reviewed file is written again.
func TestEachResourceFollowsTheRulesOfItsType(t *testing.T) {
	t.Parallel()
	d := read(t)
	for _, r := range rules() {
		for _, id := range d.ofType(r.kind) {
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

func TestEachFunctionHasALogAndAnAlarm(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		if tpl.Resources[f.ID+"Logs"] == nil || tpl.Resources[f.ID+"Alarm"] == nil {
			t.Errorf("%s has no log or no alarm", f.ID)
		}
	}
}

// TestEachEventHasPayloadFormatOneAndAUniqueName: format 2.0 joins headers by commas. SAM
// names a rule after its function and event, and CloudFormation refuses a template in which
// a resource and a parameter have the same name.
func TestEachEventHasPayloadFormatOneAndAUniqueName(t *testing.T) {
	t.Parallel()
	tpl := read(t)
	for _, f := range tpl.functions() {
		for _, e := range f.events("HttpApi") {
			if e["PayloadFormatVersion"] != "1.0" {
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

// checkStatement leaves the actions and resources of each function to
// TestAFunctionMayDoWhatItDoesAndNothingElse. Only the objects of a bucket need a wildcard,
// as their keys begin with users' names.
func checkStatement(t *testing.T, f fn, s statement) {
	t.Helper()
	if s.Effect != "Allow" || len(s.Resources) != 1 || len(s.Actions) == 0 {
		t.Errorf("%s: %+v", f.ID, s)
		return
	}
	resource := s.Resources[0]
	if s.Not { // only for text messages: a number has no ARN, so all but topics is allowed
		if !slices.Equal(s.Actions, []string{"sns:Publish"}) || resource != "!Sub arn:${AWS::Partition}:sns:*:*:*" {
			t.Errorf("%s: %+v", f.ID, s)
		}
		return
	}
	for _, action := range s.Actions {
		if strings.Contains(action, "*") || resource == "*" {
			t.Errorf("%s: %s on %s", f.ID, action, resource)
		}
		items := strings.HasPrefix(action, "dynamodb:") && resource == "!GetAtt Table.Arn" && f.ID != "LinkKey" // which uses no items
		if items && (len(s.Keys) == 0 || slices.Contains(s.Keys, "*")) {
			t.Errorf("%s: %s on items of any partition", f.ID, action)
		}
	}
	if from := show(at(s.Condition, "StringEquals", "ses:FromAddress")); strings.Contains(resource, ":identity/*") && from != "!Ref SenderAddress" {
		t.Errorf("%s: %v as any sender", f.ID, s.Actions)
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
