package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/boottest"
	"ferry/shared/endpoint"
	"ferry/shared/endpoint/all"
)

// transformed is the template as CloudFormation gets it, made by the same code
// that AWS runs: the SAM translator, which comes with the SAM command.
func transformed(t *testing.T) map[string]resource {
	t.Helper()
	sam, err := exec.LookPath("sam")
	if err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	root := boottest.Root(t)
	c := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(sam), "python3"), filepath.Join(root, "infra", "stack", "transform.py"), filepath.Join(root, "template.yaml"))
	text, err := c.Output()
	if err != nil {
		t.Fatalf("transforming the template: %v", err)
	}
	var doc struct{ Resources map[string]resource }
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("reading the transformed template: %v", err)
	}
	return doc.Resources
}

type resource struct {
	Type, Condition, DeletionPolicy, UpdateReplacePolicy string
	Properties                                           object
}

func ofType(all map[string]resource, kind string) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].Type == kind {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestTheTransformedAPIHasEachRouteAndMayCallItsFunction(t *testing.T) {
	t.Parallel()
	stack := transformed(t)
	apis := ofType(stack, "AWS::ApiGatewayV2::Api")
	if len(apis) != 1 {
		t.Fatalf("there are the APIs %v", apis)
	}
	body, _ := stack[apis[0]].Properties["Body"].(object)
	paths, _ := body["paths"].(object)
	var got, want []string
	for path, methods := range paths {
		for method, operation := range methods.(object) {
			integration := operation.(object)["x-amazon-apigateway-integration"].(object)
			if integration["payloadFormatVersion"] != "1.0" || integration["type"] != "aws_proxy" {
				t.Errorf("%s %s is integrated as %v", method, path, integration)
			}
			got = append(got, strings.ToUpper(method)+" "+path+" "+calls(integration["uri"]))
		}
	}
	for _, e := range all.Endpoints() {
		for _, r := range e.Routes {
			want = append(want, r.Method+" "+endpoint.Prefix+r.Path+" "+e.Name)
		}
		if len(e.Routes) == 0 {
			want = append(want, "X-AMAZON-APIGATEWAY-ANY-METHOD /$default "+e.Name)
		}
	}
	same(t, "the routes", got, want)
	same(t, "the permissions to call", permitted(stack), want)
}

// calls is the name of the function that an integration's address leads to.
func calls(uri any) string {
	_, rest, _ := strings.Cut(fmt.Sprint(uri), "functions/${")
	id, _, _ := strings.Cut(rest, ".Arn}")
	return strings.ToLower(id)
}

// permitted are the routes from which the gateway may call a function.
func permitted(all map[string]resource) []string {
	var routes []string
	for _, id := range ofType(all, "AWS::Lambda::Permission") {
		p := all[id].Properties
		if p["Principal"] != "apigateway.amazonaws.com" {
			continue
		}
		source, _ := p["SourceArn"].(object)["Fn::Sub"].([]any)
		_, route, _ := strings.Cut(fmt.Sprint(source[0]), "${__Stage__}/")
		method, path, _ := strings.Cut(route, "/")
		if method == "*" { // any route of the API
			method, path = "X-AMAZON-APIGATEWAY-ANY-METHOD", "$default"
		}
		function, _ := p["FunctionName"].(object)["Ref"].(string)
		routes = append(routes, method+" /"+strings.ReplaceAll(path, "*", "{id}")+" "+strings.ToLower(function))
	}
	return routes
}

func TestTheTransformedFunctionsHaveTheirOwnRolesAndLogs(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	for _, id := range ofType(all, "AWS::Lambda::Function") {
		p := all[id].Properties
		if p["Runtime"] != "provided.al2023" || fmt.Sprint(p["Architectures"]) != "[arm64]" || p["Handler"] != "bootstrap" {
			t.Errorf("%s runs as %v on %v", id, p["Runtime"], p["Architectures"])
		}
		if role := fmt.Sprint(p["Role"]); role != "map[Fn::GetAtt:["+id+"Role Arn]]" {
			t.Errorf("%s has the role %s", id, role)
		}
		if group, _ := p["LoggingConfig"].(object); fmt.Sprint(group["LogGroup"]) != "map[Ref:"+id+"Logs]" || all[id+"Logs"].Properties["RetentionInDays"] == nil {
			t.Errorf("%s logs to %v", id, group)
		}
	}
	for _, id := range ofType(all, "AWS::IAM::Role") {
		if managed := all[id].Properties["ManagedPolicyArns"]; managed != nil {
			t.Errorf("%s has the policies %v besides its own", id, managed)
		}
	}
}

func TestTheTransformedDataStayWhenTheStackGoes(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	holds := map[string]bool{"AWS::DynamoDB::Table": true, "AWS::S3::Bucket": true, "AWS::S3::BucketPolicy": true}
	seen := 0
	for id, r := range all {
		if !holds[r.Type] {
			continue
		}
		seen++
		if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s goes with the stack: %q, %q", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
	if seen != 5 {
		t.Errorf("there are %d resources that hold data", seen)
	}
	table := all["Table"].Properties
	if table["BillingMode"] != "PAY_PER_REQUEST" || table["DeletionProtectionEnabled"] != true {
		t.Errorf("the table is %v", table)
	}
}

// TestAnIdleStackCostsOnlyItsStorage allows kinds of resources that cost
// nothing while they are not used; what costs by the month is a choice.
func TestAnIdleStackCostsOnlyItsStorage(t *testing.T) {
	t.Parallel()
	free := []string{
		"AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage", "AWS::ApiGatewayV2::ApiMapping", "AWS::ApiGatewayV2::DomainName",
		"AWS::Lambda::Function", "AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::Version", "AWS::Lambda::Alias",
		"AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::Logs::SubscriptionFilter", "AWS::Events::Rule", "Custom::LinkKey",
		"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::S3::BucketPolicy",
		"AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "AWS::SNS::Subscription", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy",
		"AWS::SES::ConfigurationSet", "AWS::SES::ConfigurationSetEventDestination", "AWS::SES::EmailIdentity",
		"AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup",
	}
	chosen := []string{"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}
	for id, r := range transformed(t) {
		switch {
		case slices.Contains(free, r.Type):
		case slices.Contains(chosen, r.Type) && r.Condition != "":
		default:
			t.Errorf("%s is of the type %s, with the condition %q: what does it cost while nobody uses it?", id, r.Type, r.Condition)
		}
	}
}
