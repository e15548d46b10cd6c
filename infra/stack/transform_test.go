package stack

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ferry/infra/template"
	"ferry/shared/boot/boottest"

	"ferry/shared/api"
	"ferry/shared/boot/local"
)

// transformed is the template as CloudFormation gets it, made by the same code
// that AWS runs: the SAM translator, which comes with the SAM command. Some of it
// depends on parameters, each NAME=VALUE.
func transformed(t *testing.T, parameters ...string) document {
	t.Helper()
	sam, err := exec.LookPath("sam")
	if err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	root := boottest.Root(t)
	args := append([]string{filepath.Join(root, "infra", "stack", "transform.py"), filepath.Join(root, "template.yaml")}, parameters...)
	text, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(sam), "python3"), args...).Output()
	if err != nil {
		t.Fatalf("transforming the template: %v", err)
	}
	all, err := template.Parse(text) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	return document{all}
}

func TestTheTransformedAPIHasEachRouteAndMayCallItsFunction(t *testing.T) {
	t.Parallel()
	stack := transformed(t)
	apis := stack.ofType("AWS::ApiGatewayV2::Api")
	if len(apis) != 1 {
		t.Fatalf("there are the APIs %v", apis)
	}
	paths, _ := at(stack.Resources[apis[0]], "Properties", "Body", "paths").(object)
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
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			want = append(want, r.Method+" "+api.Prefix+r.Path+" "+e.Name)
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
	id, _, _ := strings.Cut(rest, "Aliaslive}")
	return strings.ToLower(id)
}

// permitted are the routes from which the gateway may call a function.
func permitted(all document) []string {
	var routes []string
	for _, id := range all.ofType("AWS::Lambda::Permission") {
		p := at(all.Resources[id], "Properties")
		if at(p, "Principal") != "apigateway.amazonaws.com" {
			continue
		}
		source := list(at(p, "SourceArn", "Fn::Sub"))
		_, route, _ := strings.Cut(fmt.Sprint(source[0]), "${__Stage__}/")
		method, path, _ := strings.Cut(route, "/")
		if method == "*" { // any route of the API
			method, path = "X-AMAZON-APIGATEWAY-ANY-METHOD", "$default"
		}
		function := strings.TrimSuffix(strings.TrimPrefix(show(at(p, "FunctionName")), "!Ref "), "Aliaslive")
		routes = append(routes, method+" /"+strings.ReplaceAll(path, "*", "{id}")+" "+strings.ToLower(function))
	}
	return routes
}

func TestTheTransformedFunctionsHaveTheirOwnRolesAndLogs(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	for _, id := range all.ofType("AWS::Lambda::Function") {
		p := at(all.Resources[id], "Properties")
		if at(p, "Runtime") != "provided.al2023" || fmt.Sprint(at(p, "Architectures")) != "[arm64]" || at(p, "Handler") != "bootstrap" {
			t.Errorf("%s runs as %v on %v", id, at(p, "Runtime"), at(p, "Architectures"))
		}
		if role := show(at(p, "Role")); role != "!GetAtt "+id+"Role.Arn" {
			t.Errorf("%s has the role %s", id, role)
		}
		if group := show(at(p, "LoggingConfig", "LogGroup")); group != "!Ref "+id+"Logs" || show(at(all.Resources[id+"Logs"], "Properties", "RetentionInDays")) != "!Ref LogRetentionDays" {
			t.Errorf("%s logs to %s", id, group)
		}
	}
	for _, id := range all.ofType("AWS::IAM::Role") {
		if managed := at(all.Resources[id], "Properties", "ManagedPolicyArns"); managed != nil {
			t.Errorf("%s has the policies %v besides its own", id, managed)
		}
	}
}

func TestTheTransformedDataStayWhenTheStackGoes(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	seen := 0
	for id, r := range all.Resources {
		if !slices.Contains([]any{"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"}, at(r, "Type")) {
			continue
		}
		seen++
		if at(r, "DeletionPolicy") != "Retain" || at(r, "UpdateReplacePolicy") != "Retain" {
			t.Errorf("%s goes with the stack: %v, %v", id, at(r, "DeletionPolicy"), at(r, "UpdateReplacePolicy"))
		}
	}
	if seen != 5 {
		t.Errorf("there are %d resources that hold data", seen)
	}
	table := at(all.Resources["Table"], "Properties")
	if at(table, "BillingMode") != "PAY_PER_REQUEST" || at(table, "DeletionProtectionEnabled") != true {
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
