package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/worker"
	"ferry/shared/keys"
)

// keyStore is the Parameter Store and the table. It keeps parameters, and replaces one
// only if told to.
type keyStore struct {
	mu        sync.Mutex
	values    map[string]string
	exists    string // the error for a parameter that exists
	protected bool   // the table
	actions   []string
	fails     func(action string) (kind string)
}

// Do implements aws.HTTPClient.
func (s *keyStore) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.actions = append(s.actions, action)
	w := httptest.NewRecorder()
	if kind := s.fails(action); kind != "" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": "not now"})
	} else {
		s.serve(w, r, action)
	}
	return w.Result(), nil
}

func (s *keyStore) serve(w *httptest.ResponseRecorder, r *http.Request, action string) {
	var in struct {
		Name, Value, Type, TableName         string
		Overwrite, DeletionProtectionEnabled bool
	}
	_ = json.NewDecoder(r.Body).Decode(&in) // what is missing is refused
	_, exists := s.values[in.Name]
	switch {
	case action == "PutParameter" && in.Type == "SecureString" && (!exists || in.Overwrite):
		s.values[in.Name] = in.Value
		io.WriteString(w, `{"Version":1,"Tier":"Standard"}`)
	case action == "PutParameter" && exists:
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"`+s.exists+`","message":"The parameter already exists."}`)
	case action == "DescribeTable" && in.TableName == "ferry-table":
		_ = json.NewEncoder(w).Encode(map[string]any{"Table": map[string]any{"DeletionProtectionEnabled": s.protected}})
	case action == "UpdateTable" && in.TableName == "ferry-table" && in.DeletionProtectionEnabled != s.protected:
		s.protected = in.DeletionProtectionEnabled
		io.WriteString(w, `{}`)
	default:
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"ValidationException"}`)
	}
}

func keySetup(random io.Reader) (*keyStore, cfn.CustomResourceFunction) {
	s := &keyStore{
		values: map[string]string{},
		exists: "ParameterAlreadyExists",
		fails:  func(string) string { return "" },
	}
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	})
	c := &lambda.Cloud{Getenv: os.Getenv, Config: aws.Config{Region: "eu-south-1", HTTPClient: s, Credentials: none}}
	return s, worker.LinkKeyHandler(c, "/ferry/stack/link-key", "ferry-table", random)
}

func keyEvent(t *testing.T, kind cfn.RequestType) cfn.Event {
	t.Helper()
	var e cfn.Event
	boottest.Load(t, "linkkey").Decode(t, &e)
	e.RequestType = kind
	if kind != cfn.RequestCreate {
		e.PhysicalResourceID = "/ferry/stack/link-key"
	}
	return e
}

func bytesOf(b byte) io.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, keys.TokenSize)) }

func TestANewStackGetsAKeyAndAProtectedTable(t *testing.T) {
	t.Parallel()
	s, handle := keySetup(bytesOf(7))
	id, data, err := handle(t.Context(), keyEvent(t, cfn.RequestCreate))
	want, err2 := keys.RandomToken(bytesOf(7))
	if err != nil ||
		err2 != nil ||
		id != "/ferry/stack/link-key" ||
		len(data) != 0 ||
		s.values[id] != want ||
		!s.protected {
		t.Errorf("id %q, data %v, %v; the table is protected: %v, or the key is not the one that was made",
			id, data, err, s.protected)
	}
}

func TestAKeyIsNeverReplaced(t *testing.T) {
	t.Parallel()
	for exists, kind := range map[string]cfn.RequestType{
		"ParameterAlreadyExists": cfn.RequestCreate, "com.amazonaws.ssm#ParameterAlreadyExists": cfn.RequestCreate,
		"ParameterAlreadyExists:http://internal.amazon.com/coral/com.amazonaws.ssm/": cfn.RequestCreate,
		"#ParameterAlreadyExists": cfn.RequestUpdate, "no error on delete": cfn.RequestDelete,
	} {
		s, handle := keySetup(bytesOf(7))
		s.values["/ferry/stack/link-key"], s.exists = "the old one", exists
		id, _, err := handle(t.Context(), keyEvent(t, kind))
		if err != nil || id != "/ferry/stack/link-key" || s.values[id] != "the old one" {
			t.Errorf("%s: id %q, value %q, %v", exists, id, s.values[id], err)
		}
		if kind == cfn.RequestDelete && slices.Contains(s.actions, "PutParameter") {
			t.Errorf("the calls are %v", s.actions)
		}
	}
}

func TestOnlyTheTableOfAStackThatFailsToBeCreatedCanBeDeleted(t *testing.T) {
	t.Parallel()
	for kind, want := range map[cfn.RequestType]bool{cfn.RequestUpdate: true, cfn.RequestDelete: false} {
		for _, before := range []bool{true, false} {
			s, handle := keySetup(bytesOf(7))
			s.protected = before
			if _, _, err := handle(t.Context(), keyEvent(t, kind)); err != nil || s.protected != want {
				t.Errorf("%s: the table is protected: %v, want %v: %v", kind, s.protected, want, err)
			}
		}
	}
}

// TestANewRoleHas30SecondsToSpread: nobody would retry the creation of the stack.
func TestANewRoleHas30SecondsToSpread(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"PutParameter", "DescribeTable", "UpdateTable"} {
		for seconds, succeeds := range map[int]bool{25: true, 35: false} {
			synctest.Test(t, func(t *testing.T) {
				s, handle := keySetup(bytesOf(7))
				spread := time.Now().Add(time.Duration(seconds) * time.Second)
				s.fails = func(action string) string {
					if action == denied && time.Now().Before(spread) {
						return "AccessDeniedException"
					}
					return ""
				}
				_, _, err := handle(t.Context(), keyEvent(t, cfn.RequestCreate))
				if (err == nil) != succeeds || s.protected != succeeds {
					t.Errorf("%s after %d s: %v, the table is protected: %v", denied, seconds, err, s.protected)
				}
			})
		}
	}
}

func TestAnErrorDoesNotContainTheKey(t *testing.T) {
	t.Parallel()
	s, handle := keySetup(bytesOf(7))
	s.fails = func(string) string { return "ParameterLimitExceeded" }
	_, _, err := handle(t.Context(), keyEvent(t, cfn.RequestCreate))
	secret, _ := keys.RandomToken(bytesOf(7))
	if err == nil || !strings.Contains(err.Error(), "ParameterLimitExceeded") || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
	_, handle = keySetup(bytes.NewReader(nil))
	if _, _, err := handle(t.Context(), keyEvent(t, cfn.RequestCreate)); err == nil {
		t.Error("a key was made without random bytes")
	}
}

func TestCloudFormationGetsItsAnswer(t *testing.T) {
	t.Parallel()
	_, handle := keySetup(bytesOf(7))
	answers := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answers <- body
	}))
	t.Cleanup(server.Close)
	e := keyEvent(t, cfn.RequestCreate)
	e.ResponseURL = server.URL
	_, err := cfn.LambdaWrap(handle)(t.Context(), e)
	expect.NoErr(t, err)
	expect.NoErr(t, boottest.Load(t, "linkkey").Expect.Check(<-answers))
}

// TestADigestChangesWithItsSettingsAlone: the function makes no call for it, and the resource keeps its id.
func TestADigestChangesWithItsSettingsAlone(t *testing.T) {
	t.Parallel()
	s, h := keySetup(bytesOf(7))
	digest := func(kind cfn.RequestType, settings map[string]any) string {
		t.Helper()
		e := keyEvent(t, kind)
		e.ResourceType, e.LogicalResourceID = "Custom::Digest", "WebSettings"
		e.ResourceProperties = map[string]any{"ServiceToken": "arn", "Of": settings}
		id, data, err := h(t.Context(), e)
		if err != nil || id != "WebSettings" || len(s.actions) > 0 {
			t.Errorf("%s: the id is %q, %v, after the calls %v", kind, id, err, s.actions)
		}
		return data["Digest"].(string)
	}
	first := digest(cfn.RequestCreate, map[string]any{"A": "1", "B": "2"})
	if len(first) != 16 || digest(cfn.RequestUpdate, map[string]any{"B": "2", "A": "1"}) != first {
		t.Errorf("the digest is %q, or another one for the same settings", first)
	}
	if digest(cfn.RequestUpdate, map[string]any{"A": "1", "B": "3"}) == first {
		t.Error("the digest stays when a setting changes")
	}
	digest(cfn.RequestDelete, nil)
}
