package stack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// granted returns the permissions of a function, except for its log, in the form of uses.
func granted(t *testing.T, tpl document, f fn) []string {
	t.Helper()
	var all []string
	for _, s := range tpl.policies(f) {
		for _, action := range s.Actions {
			service, _, _ := strings.Cut(action, ":")
			switch service {
			case "logs":
			case "sns", "sqs", "ses", "ssm", "lambda":
				all = append(all, action+" "+target(s))
			case "dynamodb":
				if s.Keys == nil {
					all = append(all, action+" "+target(s))
				}
				for _, key := range s.Keys {
					all = append(all, action+" "+key)
				}
			case "s3":
				resource := strings.NewReplacer("!GetAtt ", "", "!Sub ", "", ".Arn", "", "${", "", "}", "").Replace(s.Resources[0])
				all = append(all, action+" "+resource)
			default:
				all = append(all, action)
			}
		}
	}
	return all
}

// target returns the resource of a statement, in the short form of uses.
func target(s statement) string {
	r := strings.Join(s.Resources, " ")
	for part, name := range map[string]string{
		"Queue.Arn": "queue", ":identity/*": "identity", ":configuration-set/": "configuration-set",
		":parameter/ferry/${AWS::StackName}/link-key": "link-key", "!Sub arn:${AWS::Partition}:sns:*:*:*": "number",
	} {
		if strings.Contains(r, part) {
			return name
		}
	}
	return r
}

// mapped returns the permissions that Lambda itself uses with the function's role: for
// the source of its events, and for the queue of those that fail.
func mapped(f fn) []string {
	var all []string
	for range f.events("SQS") {
		all = append(all, "sqs:ReceiveMessage queue", "sqs:DeleteMessage queue", "sqs:GetQueueAttributes queue")
	}
	for _, e := range f.events("DynamoDB") {
		stream := show(e["Stream"])
		all = append(all, "dynamodb:DescribeStream "+stream, "dynamodb:GetRecords "+stream, "dynamodb:GetShardIterator "+stream, "dynamodb:ListStreams !Sub ${Table.Arn}/stream/*",
			"sqs:SendMessage "+show(at(e, "DestinationConfig", "OnFailure", "Destination")))
	}
	if dead := at(f.Props, "DeadLetterQueue", "TargetArn"); dead != nil {
		all = append(all, "sqs:SendMessage "+show(dead))
	}
	if failed := at(f.Props, "EventInvokeConfig", "DestinationConfig", "OnFailure", "Destination"); failed != nil {
		all = append(all, "sqs:SendMessage "+show(failed))
	}
	return all
}

// TestOnlyFunctionsThatMakeLinksReadTheKey repeats a part of other tests, because the
// key gives access to all files.
func TestOnlyFunctionsThatMakeLinksReadTheKey(t *testing.T) {
	t.Parallel()
	var readers []string
	tpl := read(t)
	for name, f := range tpl.functions() {
		if slices.Contains(granted(t, tpl, f), "ssm:GetParameter link-key") {
			readers = append(readers, name)
		}
	}
	same(t, "readers of the key", readers, []string{
		"authforget", "downloadlist", "downloadlistbackup", "email", "filesdelete", "filesget", "filesrestore", "notificationsstop", "sms", "sweep", "upload", "uploads",
	})
}

// TestTheDeployedRolesAreTheCheckedOnes: SAM does not change a function's role, and
// nothing else gives it permissions.
func TestTheDeployedRolesAreTheCheckedOnes(t *testing.T) {
	t.Parallel()
	tpl, all := read(t), transformed(t, gradually)
	want := []string{"CodeDeployServiceRole"} // SAM's, for CodeDeploy
	for _, f := range tpl.functions() {
		id := f.ID + "Role"
		want = append(want, id)
		if got, checked := showAll(all.policies(f)), showAll(tpl.policies(f)); !slices.Equal(got, checked) {
			t.Errorf("%s has the statements %v, and %v are checked", id, got, checked)
		}
		role := at(all.Resources[id], "Properties")
		if at(role, "PermissionsBoundary") != nil || at(role, "ManagedPolicyArns") != nil {
			t.Errorf("%s has more than its own policies", id)
		}
		if trusts := statements(at(role, "AssumeRolePolicyDocument")); len(trusts) != 1 || !slices.Equal(trusts[0].Actions, []string{"sts:AssumeRole"}) ||
			show(at(list(at(role, "AssumeRolePolicyDocument", "Statement"))[0], "Principal")) != "map[Service:lambda.amazonaws.com]" {
			t.Errorf("%s may be assumed as %+v", id, trusts)
		}
	}
	same(t, "the roles", all.ofType("AWS::IAM::Role"), want)
	same(t, "the policies beside roles", all.ofType("AWS::IAM::Policy"), []string{"SmsNumberPolicy", "SweepAgain"}) // both are in the reviewed file
	for _, kind := range []string{"AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy", "AWS::IAM::User", "AWS::IAM::Group"} {
		if more := all.ofType(kind); len(more) > 0 {
			t.Errorf("%v give permissions too", more)
		}
	}
}

func showAll(all []statement) (lines []string) {
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%+v", s))
	}
	return lines
}
