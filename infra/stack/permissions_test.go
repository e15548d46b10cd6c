package stack

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestAFunctionMayDoWhatItDoesAndNothingElse makes each function do everything it does
// with its ports, on the real backends and with failures that only they have, and
// notes the calls. The function's role must allow these calls and no others.
func TestAFunctionMayDoWhatItDoesAndNothingElse(t *testing.T) {
	t.Parallel()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/stack")
	}
	tpl := read(t)
	for name, f := range tpl.functions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario, ok := scenarios()[name]
			if !ok {
				t.Fatalf("there is no scenario for %s", name)
			}
			s := newStage(t, name)
			scenario(s)
			if fail, ok := failures()[name]; ok {
				fail(s, s.network)
			}
			if len(s.network.faults) > 0 {
				t.Errorf("%d calls that should fail were not made", len(s.network.faults))
			}
			uses := s.network.sorted()
			same(t, "the permissions of "+name, granted(t, tpl, f), slices.Concat(uses, mapped(f)))
			same(t, "the ports that "+name+" uses", usedPorts(name, uses), readMain(t, name).ports())
		})
	}
}

func usedPorts(name string, uses []string) []string {
	var ports []string
	for _, u := range uses {
		port := "Table"
		service, _, _ := strings.Cut(u, ":")
		switch {
		case u == "ssm:PutParameter link-key", strings.HasSuffix(u, " !GetAtt Table.Arn"):
			continue // linkkey uses its parameter and the table itself without a port
		case service == "lambda" && name == "sweep":
			continue // it calls itself
		case service == "lambda":
			port = "Mover"
		case u == "dynamodb:GetItem linkkey":
			port = "Versions"
		case service == "ssm":
			port = "LinkKey"
		case service == "s3":
			port = "Blobs"
		case strings.HasSuffix(u, " number"):
			port = "SMS"
		case service == "sns":
			port = "Topics"
		case service == "sqs":
			port = "Queue"
		case service == "ses":
			port = "Mail"
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

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
				resource := strings.NewReplacer("!GetAtt ", "", "!Sub ", "", ".Arn", "", "${", "", "}", "").
					Replace(s.Resources[0])
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
		all = append(
			all,
			"dynamodb:DescribeStream "+stream,
			"dynamodb:GetRecords "+stream,
			"dynamodb:GetShardIterator "+stream,
			"dynamodb:ListStreams !Sub ${Table.Arn}/stream/*",
			"sqs:SendMessage "+show(at(e, "DestinationConfig", "OnFailure", "Destination")),
		)
	}
	if dead := at(f.Props, "DeadLetterQueue", "TargetArn"); dead != nil {
		all = append(all, "sqs:SendMessage "+show(dead))
	}
	if failed := at(f.Props, "EventInvokeConfig", "DestinationConfig", "OnFailure", "Destination"); failed != nil {
		all = append(all, "sqs:SendMessage "+show(failed))
	}
	return all
}
