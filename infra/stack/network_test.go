package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"ferry/shared/boot/boottest"
	"ferry/shared/files"
	"ferry/shared/users"
)

// The names in the function's environment.
const (
	noticesTopic = "arn:aws:sns:us-east-1:123456789012:notices"
	eventsTopic  = "arn:aws:sns:us-east-1:123456789012:events"
	queueURL     = "https://sqs.us-east-1.amazonaws.com/123456789012/queue"
	mailFrom     = `"Ferry" <ferry@example.com>`
	mailEvents   = "stack-mail"
	mover        = "arn:aws:lambda:us-east-1:123456789012:function:sweep:live"
)

// network receives the function's calls. It passes those to the table and the buckets
// on to the stand-ins, and answers the others itself, as only the requests matter. A
// fault applies to the next call of its operation.
type network struct {
	*uses
	next   aws.HTTPClient
	stage  *stage
	faults map[string]failure
}

// failure makes a call go wrong; it may still pass the call on.
type failure func(r *http.Request, next aws.HTTPClient) (*http.Response, error)

// Do implements aws.HTTPClient.
func (n *network) Do(r *http.Request) (*http.Response, error) {
	operation := awsmiddleware.GetOperationName(r.Context())
	if operation == "" { // the SDK did not make this call
		operation = n.noteTarget(r)
	}
	if operation == "PutObject" || operation == "CompleteMultipartUpload" { // takes a while, after which a quota may be new
		n.stage.ahead += 2 * time.Second
	}
	if f, ok := n.fault(operation); ok {
		return f(r, n.next)
	}
	answer, err := n.answer(operation, r)
	if err != nil {
		return nil, err
	}
	n.noteMissing(operation, r, answer.StatusCode)
	return answer, nil
}

func (n *network) fault(operation string) (failure, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.faults[operation]
	delete(n.faults, operation)
	return f, ok
}

func (n *network) answer(operation string, r *http.Request) (*http.Response, error) {
	switch operation {
	case "SendEmail":
		return answer(200, `{"MessageId":"mail-1"}`), n.stage.cloud.MailErr
	case "Publish":
		return answer(
			200,
			"<PublishResponse><PublishResult><MessageId>sms-1</MessageId></PublishResult></PublishResponse>",
		), n.stage.cloud.SMSErr
	case "PublishBatch":
		return published(r)
	case "Invoke":
		return answer(202, ""), nil
	case "ChangeMessageVisibility", "PutParameter", "DescribeTable", "UpdateTable":
		return answer(200, "{}"), nil
	case "GetParameter":
		return answer(200, fmt.Sprintf(`{"Parameter":{"Value":%q}}`, boottest.Key)), nil
	}
	return n.next.Do(r)
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// published answers that each message was accepted.
func published(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	var taken strings.Builder
	for i := 1; ; i++ {
		id := form.Get(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Id", i))
		if id == "" {
			break
		}
		fmt.Fprintf(&taken, "<member><Id>%s</Id></member>", id)
	}
	return answer(
		200,
		"<PublishBatchResponse><PublishBatchResult><Successful>"+taken.String()+"</Successful></PublishBatchResult></PublishBatchResponse>",
	), nil
}

// noteTarget notes a call of the small client for the link key and the table itself.
func (n *network) noteTarget(r *http.Request) (operation string) {
	if r.URL.Path == "/2015-03-31/functions/"+mover+"/invocations" {
		n.note("!Ref SweepAliaslive", "lambda:InvokeFunction")
		return "Invoke"
	}
	_, operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var asked struct{ Name, TableName string }
	_ = json.NewDecoder(r.Body).Decode(&asked) // what is missing is an unknown call
	switch {
	case strings.HasSuffix(operation, "Parameter") && asked.Name == keyParameter:
		n.note("link-key", "ssm:"+operation)
	case strings.HasSuffix(operation, "Table") && asked.TableName == tableName:
		n.note("!GetAtt Table.Arn", "dynamodb:"+operation)
	default:
		n.note("an unknown call", operation)
	}
	return operation
}

// noteMissing notes an answer that S3 gives only to callers who may list the bucket;
// others get an access error.
func (n *network) noteMissing(operation string, r *http.Request, status int) {
	if status != http.StatusNotFound {
		return
	}
	at := r.URL.Path
	switch operation {
	case "CopyObject":
		at = r.Header.Get("X-Amz-Copy-Source")
	case "GetObject", "HeadObject":
	default:
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	n.note(areaOf(name), "s3:ListBucket")
}

// refused returns an error answer of S3.
func refused(status int, code string) failure {
	return func(*http.Request, aws.HTTPClient) (*http.Response, error) {
		return answer(status, "<Error><Code>"+code+"</Code></Error>"), nil
	}
}

// lost makes a call and loses its answer.
func lost(r *http.Request, next aws.HTTPClient) (*http.Response, error) {
	answer, err := next.Do(r)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	return nil, errors.New("connection reset")
}

// huge returns the head of an object that is too large for one call.
func huge(r *http.Request, next aws.HTTPClient) (*http.Response, error) {
	answer, err := next.Do(r)
	if err == nil {
		answer.Header.Set("Content-Length", fmt.Sprint(1<<30))
	}
	return answer, err
}

// failures are failures that functions meet only on AWS.
func failures() map[string]func(*stage, *network) {
	return map[string]func(*stage, *network){
		"upload": func(s *stage, n *network) {
			n.faults["PutObject"] = lost
			s.must(200, "POST", "/upload?file=a.txt", bearer(), content("text/plain", "abc"))
		},
		"requests": func(s *stage, n *network) {
			n.faults["PutObject"] = lost
			s.must(200, "PUT", "/requests/in?file=a.txt&k="+s.request(), content("text/plain", "abc"))
		},
		"sweep": func(s *stage, n *network) {
			s.send("alice", files.Sending{})
			alice := s.get("alice")
			sweeping := s.worker.Files()
			for _, move := range []func(context.Context, users.User, int64) (*files.Listed, error){s.lazy().Delete, s.lazy().Restore} {
				moved, err := move(s.Context(), alice, alice.LastFile)
				s.check(err)
				for range 2 { // the second try goes on with the parts of the first
					n.largeCopyFails()
					if err := sweeping.MoveBytes(s.Context(), moved.Owner, moved.ID); err == nil {
						s.Fatal("a copy did not fail")
					}
				}
				s.check(sweeping.MoveBytes(s.Context(), moved.Owner, moved.ID))
			}
		},
	}
}

// largeCopyFails makes the next copy go in parts, and one of them fail.
func (n *network) largeCopyFails() {
	n.faults["CopyObject"] = refused(400, "InvalidRequest")
	n.faults["HeadObject"] = huge
	n.faults["UploadPartCopy"] = refused(403, "AccessDenied")
}
