package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/auth"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
)

// keyStore is a server in place of the Parameter Store. It keeps parameters, and
// replaces one only if told to.
type keyStore struct {
	mu     sync.Mutex
	values map[string]string
	exists string // the error for a parameter that exists
	calls  int
}

func (s *keyStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	var in struct {
		Name, Value, Type string
		Overwrite         bool
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSSM.PutParameter" || in.Type != "SecureString" {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"ValidationException"}`)
		return
	}
	if _, exists := s.values[in.Name]; exists && !in.Overwrite {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"`+s.exists+`","message":"The parameter already exists."}`)
		return
	}
	s.values[in.Name] = in.Value
	io.WriteString(w, `{"Version":1,"Tier":"Standard"}`)
}

func keySetup(t *testing.T, random io.Reader) (*keyStore, cfn.CustomResourceFunction) {
	t.Helper()
	s := &keyStore{values: map[string]string{}, exists: "ParameterAlreadyExists"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, worker.LinkKeyHandler(parameterStore(server.URL), "/ferry/link-key", random)
}

func parameterStore(address string) *lambda.Cloud {
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	})
	return &lambda.Cloud{Getenv: os.Getenv, Config: aws.Config{Region: "eu-south-1", BaseEndpoint: &address, Credentials: none}}
}

func keyEvent(t *testing.T, kind cfn.RequestType) cfn.Event {
	t.Helper()
	var e cfn.Event
	boottest.Load(t, "linkkey").Decode(t, &e)
	e.RequestType = kind
	if kind != cfn.RequestCreate {
		e.PhysicalResourceID = "/ferry/link-key"
	}
	return e
}

func bytesOf(b byte) io.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, auth.TokenSize)) }

func TestANewStackGetsAKey(t *testing.T) {
	t.Parallel()
	s, handle := keySetup(t, bytesOf(7))
	id, data, err := handle(t.Context(), keyEvent(t, cfn.RequestCreate))
	if err != nil || id != "/ferry/link-key" || len(data) != 0 {
		t.Errorf("id %q, data %v, %v", id, data, err)
	}
	want, err := auth.RandomToken(bytesOf(7))
	if err != nil || s.values["/ferry/link-key"] != want {
		t.Errorf("the key is not the one that was made: %v", err)
	}
}

func TestAKeyIsNeverReplaced(t *testing.T) {
	t.Parallel()
	for exists, kind := range map[string]cfn.RequestType{
		"ParameterAlreadyExists": cfn.RequestCreate, "com.amazonaws.ssm#ParameterAlreadyExists": cfn.RequestCreate,
		"ParameterAlreadyExists:http://internal.amazon.com/coral/com.amazonaws.ssm/": cfn.RequestCreate,
		"no error on update": cfn.RequestUpdate, "no error on delete": cfn.RequestDelete,
	} {
		t.Run(exists, func(t *testing.T) {
			t.Parallel()
			s, handle := keySetup(t, bytesOf(7))
			s.values["/ferry/link-key"], s.exists = "the old one", exists
			id, _, err := handle(t.Context(), keyEvent(t, kind))
			if err != nil || id != "/ferry/link-key" || s.values["/ferry/link-key"] != "the old one" {
				t.Errorf("id %q, value %q, %v", id, s.values["/ferry/link-key"], err)
			}
			if kind != cfn.RequestCreate && s.calls != 0 {
				t.Errorf("%d calls", s.calls)
			}
		})
	}
}

func TestAnErrorDoesNotContainTheKey(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"AccessDeniedException","message":"not authorized to perform ssm:PutParameter"}`)
	}))
	t.Cleanup(server.Close)
	client := parameterStore(server.URL)
	_, _, err := worker.LinkKeyHandler(client, "/ferry/link-key", bytesOf(7))(t.Context(), keyEvent(t, cfn.RequestCreate))
	secret, _ := auth.RandomToken(bytesOf(7))
	if err == nil || !strings.Contains(err.Error(), "not authorized") || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
	if _, _, err := worker.LinkKeyHandler(client, "/ferry/link-key", bytes.NewReader(nil))(t.Context(), keyEvent(t, cfn.RequestCreate)); err == nil {
		t.Error("a key was made without random bytes")
	}
}

func TestCloudFormationGetsItsAnswer(t *testing.T) {
	t.Parallel()
	_, handle := keySetup(t, bytesOf(7))
	answers := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answers <- body
	}))
	t.Cleanup(server.Close)
	e := keyEvent(t, cfn.RequestCreate)
	e.ResponseURL = server.URL
	_, err := cfn.LambdaWrap(handle)(t.Context(), e)
	check(t, err)
	boottest.Load(t, "linkkey").Expect.Match(t, <-answers)
}
