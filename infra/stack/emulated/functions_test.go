package emulated

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"ferry/shared/boot/boottest"
)

// ID returns a function's name in the template, by that of its directory.
func (s *Stack) ID(function string) string {
	for id := range s.IDs {
		if strings.ToLower(id) == function {
			return id
		}
	}
	return ""
}

// Invoke calls a function, by the name of its directory, with an event.
func (s *Stack) Invoke(ctx context.Context, function string, event []byte) (Result, error) {
	id := s.ID(function)
	if id == "" {
		return Result{}, fmt.Errorf("template.yaml has no function %s", function)
	}
	return s.function(id, alias)(ctx, event)
}

// responseURL is the address that takes the answer to a custom resource's event.
var responseURL = regexp.MustCompile(`("ResponseURL": ")[^"]*"`)

// Answer returns a function's answer to an event: what it returns or, for an event
// of CloudFormation, what it puts at the event's address. The function must not fail.
func (s *Stack) Answer(ctx context.Context, function string, event []byte) ([]byte, error) {
	put := make(chan []byte, 1)
	address, server, err := Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a text that is cut off is not the expected one
		put <- text
	}))
	if err != nil {
		return nil, err
	}
	defer server.Close()
	r, err := s.Invoke(ctx, function, responseURL.ReplaceAll(event, []byte("${1}"+address+`"`)))
	if err != nil {
		return nil, err
	}
	if r.Failed != "" {
		return nil, fmt.Errorf("%s failed: %s: %s", function, r.Failed, r.Payload)
	}
	select {
	case text := <-put:
		return text, nil
	default:
	}
	var text bytes.Buffer
	err = json.Compact(&text, r.Payload) // the emulator adds spaces
	return text.Bytes(), err
}

// linkKey checks the key that the deployment has made, and tries to make another.
func linkKey(t *testing.T, c *Cloud) {
	d := deployEmpty(t, c, nil)
	stored := func() string {
		got, err := ssm.NewFromConfig(d.config).GetParameter(t.Context(), &ssm.GetParameterInput{
			Name: aws.String(d.Environment["FERRY_KEY_PARAMETER"]), WithDecryption: aws.Bool(true),
		})
		if err != nil || got.Parameter.Type != "SecureString" || len(*got.Parameter.Value) != len(boottest.Key) {
			t.Fatalf("the stored key is %+v, %v", got, err)
		}
		return *got.Parameter.Value
	}
	first := stored() // all links are made with it
	again := boottest.Load(t, "linkkey")
	check(t, again.Expect.Check(d.invoke("linkkey", again.Event)))
	if stored() != first {
		t.Error("the key has changed")
	}
}

// maxMemory is the limit of a function's memory in bytes.
const maxMemory = 128 << 20

// largestUpload sends the largest upload that the template allows, as a form and as a raw
// body, each a few times: the memory grows until the first garbage collection. Each
// comes with a password, whose hash takes memory too.
func largestUpload(t *testing.T, c *Cloud) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not report how much memory a process takes")
	}
	d := deploy(t, c, nil)
	name := d.IDs["Upload"]
	settings, err := lambda.NewFromConfig(d.config).
		GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	check(t, err)
	size, err := strconv.Atoi(settings.Environment.Variables["FERRY_MAX_BODY"])
	check(t, err)
	for range 4 {
		for _, form := range []bool{true, false} {
			expected := boottest.Expect{Status: http.StatusOK, Body: "handlerDownloadList"}
			check(t, expected.Check(d.invoke("upload", d.event(largest(t, size, form)))))
		}
	}
	d.fits("Upload")
}

// fits fails if a function has used more than maxMemory.
func (d *deployed) fits(id string) {
	d.Helper()
	peak := peak(d.T, d.IDs[id])
	if peak == 0 || peak > maxMemory {
		d.Errorf("%s takes %d MiB, more than %d", id, peak>>20, maxMemory>>20)
	}
	d.Logf("%s takes %d MiB", id, peak>>20)
}

// largest returns the event of an upload whose body has size bytes that cannot be
// compressed.
func largest(t *testing.T, size int, form bool) events.APIGatewayProxyRequest {
	content := bytes.Repeat([]byte{0xff}, size)
	kind, method := "application/octet-stream", http.MethodPut
	if form {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, err := w.CreateFormFile("file", "largest.bin")
		check(t, err)
		around := b.Len() + len("\r\n--"+w.Boundary()+"--\r\n")
		_, err = part.Write(content[around:])
		check(t, err)
		check(t, w.Close())
		content, kind, method = b.Bytes(), w.FormDataContentType(), http.MethodPost
	}
	r := httptest.NewRequest(method, "http://files.example.com/v1/upload?file=largest.bin", nil)
	r.Header.Set("Content-Type", kind)
	r.SetBasicAuth("alice", boottest.Password)
	return gatewayEvent(r, content)
}

// peak returns the most memory that a process of a function has used so far.
func peak(t *testing.T, function string) (most int64) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	check(t, err)
	for _, path := range all {
		environment, _ := os.ReadFile(path) // many processes end meanwhile, or belong to others
		if !bytes.Contains(environment, []byte("AWS_LAMBDA_FUNCTION_NAME="+function+"\x00")) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
		if fields := strings.Fields(string(rest)); len(fields) > 0 {
			kib, _ := strconv.ParseInt(fields[0], 10, 64) // 0 if unknown
			most = max(most, kib<<10)
		}
	}
	return most
}
