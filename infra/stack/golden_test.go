package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheStackIsTheOneThatWasReviewed compares what CloudFormation gets with a
// file, in which a change of the template, or of what SAM makes of it, is seen:
// each route, each statement of each role and policy, each alarm, what is kept
// and for how long, what is encrypted, the outputs.
func TestTheStackIsTheOneThatWasReviewed(t *testing.T) {
	t.Parallel()
	all := transformed(t)
	var b bytes.Buffer
	section(&b, "Routes", routesOf(all))
	section(&b, "Roles", grants(all, "AWS::IAM::Role"))
	section(&b, "Policies of topics, queues and buckets", grants(all, "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"))
	section(&b, "What calls functions", sorted(callers(all)))
	section(&b, "Alarms", about(all, "AWS::CloudWatch::Alarm"))
	section(&b, "Logs", about(all, "AWS::Logs::LogGroup"))
	section(&b, "Table", about(all, "AWS::DynamoDB::Table"))
	section(&b, "Buckets", about(all, "AWS::S3::Bucket"))
	section(&b, "Queues, topics and subscriptions", about(all, "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::SNS::Subscription"))
	section(&b, "Of each kind there are", kinds(all))
	section(&b, "Outputs", outputs(all))
	golden(t, "stack.txt", b.String())
}

func section(b *bytes.Buffer, title string, lines []string) {
	fmt.Fprintf(b, "%s\n\n\t%s\n\n", title, strings.Join(lines, "\n\t"))
}

// golden compares with a file of testdata, and writes it where UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same(t, path+" (set UPDATE_GOLDEN=1 to accept)", strings.Split(got, "\n"), strings.Split(string(want), "\n"))
}

func sorted(m map[string]string) []string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+": "+m[k])
	}
	return lines
}

func routesOf(all document) []string {
	var lines []string
	for _, api := range all.ofType("AWS::ApiGatewayV2::Api") {
		paths, _ := at(all.Resources[api], "Properties", "Body", "paths").(object)
		for path, methods := range paths {
			for method, operation := range methods.(object) {
				integration := at(operation, "x-amazon-apigateway-integration")
				lines = append(lines, fmt.Sprintf("%s %s: %s, payload %v", path, strings.ToUpper(method), calls(at(integration, "uri")), at(integration, "payloadFormatVersion")))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// grants are the statements of policies, each on a line that names whose it is.
func grants(all document, kinds ...string) []string {
	var lines []string
	for _, kind := range kinds {
		for _, id := range all.ofType(kind) {
			p := at(all.Resources[id], "Properties")
			for _, managed := range list(at(p, "ManagedPolicyArns")) {
				lines = append(lines, id+": managed "+text(managed))
			}
			documents := []any{at(p, "AssumeRolePolicyDocument"), at(p, "PolicyDocument")}
			for _, policy := range list(at(p, "Policies")) {
				documents = append(documents, at(policy, "PolicyDocument"))
			}
			for _, d := range documents {
				for _, s := range list(at(d, "Statement")) {
					lines = append(lines, id+": "+text(s))
				}
			}
		}
	}
	return lines
}

// about is all that the template says of resources.
func about(all document, kinds ...string) []string {
	var lines []string
	for _, kind := range kinds {
		for _, id := range all.ofType(kind) {
			r, _ := all.Resources[id].(object)
			for _, key := range slices.Sorted(maps.Keys(r)) {
				if key == "Type" || key == "Properties" {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s: %s %s", id, key, text(r[key])))
			}
			p, _ := r["Properties"].(object)
			for _, key := range slices.Sorted(maps.Keys(p)) {
				lines = append(lines, fmt.Sprintf("%s: %s = %s", id, key, text(p[key])))
			}
		}
	}
	return lines
}

func kinds(all document) []string {
	count := map[string]int{}
	for _, r := range all.Resources {
		count[show(at(r, "Type"))]++
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s: %d", kind, count[kind]))
	}
	return lines
}

func outputs(all document) []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(all.Outputs)) {
		lines = append(lines, id+": "+text(all.Outputs[id]))
	}
	return lines
}

// text is a value on one line, with the commonest intrinsic functions written short.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	line := strings.TrimSpace(b.String())
	for pattern, short := range map[string]string{
		`\{"Fn::GetAtt":\["(\w+)","([\w.]+)"\]\}`: "$1.$2",
		`\{"Ref":"([\w:]+)"\}`:                    "$1",
		`\{"Fn::Sub":("[^"]*")\}`:                 "$1",
	} {
		line = regexp.MustCompile(pattern).ReplaceAllString(line, short)
	}
	return line
}
