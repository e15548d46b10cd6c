package lambda_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/lambda"
	"ferry/shared/keys"
	"ferry/shared/service"
	"ferry/shared/table/sqlite"
)

const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

// open opens the key at a server in place of the Parameter Store.
func open(t *testing.T, answer http.HandlerFunc) (*lambda.Cloud, *service.Ports) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cloud := lambda.NewCloud(environment(keyedBy(server.URL)))
	p, err := cloud.Ports(lambda.LinkKey)
	expect.NoErr(t, err)
	return cloud, p
}

func keyedBy(address string) map[string]string {
	return map[string]string{
		"AWS_REGION": "eu-south-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_SSM": address, "FERRY_KEY_PARAMETER": "/ferry/link-key",
	}
}

func parameter(value string) string {
	b, _ := json.Marshal(map[string]any{"Parameter": map[string]any{
		"Name":    "/ferry/link-key",
		"Type":    "SecureString",
		"Value":   value,
		"Version": 1,
	}})
	return string(b)
}

func TestTheKeyIsReadOnceAndDecrypted(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	cloud, p := open(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if string(body) != `{"Name":"/ferry/link-key","WithDecryption":true}` ||
			r.Method != "POST" ||
			r.URL.Path != "/" {
			t.Errorf("%s %s: %s", r.Method, r.URL.Path, body)
		}
		h := r.Header
		if h.Get("X-Amz-Target") != "AmazonSSM.GetParameter" ||
			h.Get("Content-Type") != "application/x-amz-json-1.1" ||
			h.Get("X-Amz-Security-Token") != "session" {
			t.Errorf("headers %v", h)
		}
		signed := regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-south-1/ssm/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature=[0-9a-f]{64}$`)
		if !signed.MatchString(h.Get("Authorization")) {
			t.Errorf("Authorization: %s", h.Get("Authorization"))
		}
		io.WriteString(w, parameter(key))
	})
	for range 2 {
		expect.NoErr(t, cloud.Begin(t.Context()))
	}
	want, err := keys.Parse(key)
	expect.NoErr(t, err)
	expect.Equal(t, "a link by the key", p.Key.File(blob.Files, "alice", 1), want.File(blob.Files, "alice", 1))
	expect.Equal(t, "calls", calls.Load(), 1)
}

func TestABusyParameterStoreIsRetried(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	cloud, _ := open(t, func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			throttled(w)
		case 3:
			panic(http.ErrAbortHandler) // no answer
		default:
			io.WriteString(w, parameter(key))
		}
	})
	if err := cloud.Begin(t.Context()); err != nil || calls.Load() != 4 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func throttled(w http.ResponseWriter) {
	w.WriteHeader(http.StatusBadRequest)
	io.WriteString(w, `{"__type":"ThrottlingException","message":"Rate exceeded"}`)
}

// busyStore answers 40 requests a second, as the Parameter Store does for an account,
// and refuses the others.
type busyStore struct {
	mu              sync.Mutex
	second          int64
	answered, calls int
}

func (s *busyStore) Do(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now().Unix(); now != s.second {
		s.second, s.answered = now, 0
	}
	w := httptest.NewRecorder()
	if s.calls, s.answered = s.calls+1, s.answered+1; s.answered > 40 {
		throttled(w)
	} else {
		io.WriteString(w, parameter(key))
	}
	return w.Result(), nil
}

// TestTwoHundredFunctionsThatStartAtOnceAllGetTheKeyWithin15Seconds: and when they read it
// again, not all do so at once.
func TestTwoHundredFunctionsThatStartAtOnceAllGetTheKeyWithin15Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const functions = 200
		store, begun := &busyStore{}, time.Now()
		var g, later errgroup.Group
		var refused atomic.Int32
		for range functions {
			cloud := lambda.NewCloud(environment(keyedBy("http://ssm.invalid")))
			cloud.Config.HTTPClient = store
			p, err := cloud.Ports(lambda.LinkKey)
			expect.NoErr(t, err)
			g.Go(func() error {
				err := cloud.Begin(t.Context())
				later.Go(func() error {
					for range 150 { // a request each second
						time.Sleep(time.Second)
						if asked := time.Now(); p.Key.Version() != 0 || time.Since(asked) > 0 {
							refused.Add(1)
						}
					}
					return nil
				})
				return err
			})
		}
		if err := g.Wait(); err != nil || time.Since(begun) > 15*time.Second {
			t.Errorf("after %v and %d calls: %v", time.Since(begun), store.calls, err)
		}
		t.Logf("%v, %d calls", time.Since(begun), store.calls)
		if expect.NoErr(t, later.Wait()); refused.Load() > 0 {
			t.Errorf("%d requests had to wait until the key was read again", refused.Load())
		}
	})
}

func TestAnErrorOfTheParameterStoreIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		text, want string
	}{
		"a missing parameter": {status: 400, text: `{"__type":"ParameterNotFound"}`, want: "ParameterNotFound"},
		"no permission": {
			status: 400,
			text:   `{"__type":"AccessDeniedException","message":"not authorized to perform ssm:GetParameter"}`,
			want:   "not authorized",
		},
		"a value that is not a key":  {status: 200, text: parameter("sesame"), want: "43 characters"},
		"an answer that is not JSON": {status: 200, text: "<html>sesame", want: "not JSON"},
	} {
		var calls atomic.Int32
		cloud, p := open(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) > 1 {
				io.WriteString(w, parameter(key))
				return
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.text)
		})
		err := cloud.Begin(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the error is %v, want one with %q and without the value", name, err, c.want)
		}
		expect.NoErr(t, cloud.Begin(t.Context()))
		p.Key.File(blob.Files, "alice", 1) // panics without a key
	}
}

// TestRunningFunctionsLearnWithinAMinuteWhatIsRevoked: an operator's command changes the
// parameter beside a function that makes links and one that only opens them.
func TestRunningFunctionsLearnWithinAMinuteWhatIsRevoked(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.TempDir()+"/table", sqlite.Options{NoSync: true})
	expect.NoErr(t, err)
	t.Cleanup(func() { db.Close() })
	stored, reads, now := key, 0, time.Now()
	answer := func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Value     string
			Overwrite bool
		}
		expect.NoErr(t, json.NewDecoder(r.Body).Decode(&in))
		if r.Header.Get("X-Amz-Target") == "AmazonSSM.PutParameter" && in.Overwrite {
			stored = in.Value
		} else {
			reads++
		}
		io.WriteString(w, parameter(stored))
	}
	begin := func(cloud *lambda.Cloud, p *service.Ports) *service.Ports {
		p.Table, p.Now = db, func() time.Time { return now }
		expect.NoErr(t, cloud.Begin(t.Context()))
		return p
	}
	operator, function := begin(open(t, answer)), begin(open(t, answer))
	cloud, download := &lambda.Cloud{}, &service.Ports{Log: operator.Log}
	expect.NoErr(t, cloud.Open(download, lambda.KeyVersions))
	begin(cloud, download)

	_, err = operator.Key.Rotate(t.Context(), operator.Table, operator.Random, 1)
	expect.NoErr(t, err)
	if within := operator.Key.Propagation() + time.Second; within > time.Minute { // a link is remembered for a second
		t.Errorf("a revoked link ends after %v", within)
	}
	reads = 0
	if function.Key.Revoked(0) || download.Key.Revoked(0) || reads != 0 {
		t.Errorf("the key was read again at once, %d times", reads)
	}
	now = now.Add(time.Minute)
	for range 100 {
		if !function.Key.Revoked(0) || !download.Key.Revoked(0) || function.Key.Version() != 2 {
			t.Fatal("a function does not know what is revoked")
		}
	}
	if reads != 1 || function.Key.File(blob.Files, "alice", 1) != operator.Key.File(blob.Files, "alice", 1) {
		t.Errorf("%d reads, or another key", reads)
	}
}
