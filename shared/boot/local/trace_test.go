package local_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/notify"
)

// TestTheOutboxKeepsTheRequestID: the answer, the log and everything that a request
// causes have the same ID, which the caller can never choose.
func TestTheOutboxKeepsTheRequestID(t *testing.T) {
	t.Parallel()
	s := apitest.New(t, apitest.Listening)
	s.InProcess("the log is of one process")
	s.AddUser("alice", password)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/upload?file=a.txt&m=carla@example.com", strings.NewReader("abc"))
	check(t, err)
	r.SetBasicAuth("alice", password)
	r.Header.Set("X-Request-Id", "the-callers-own")
	answer, err := http.DefaultClient.Do(r)
	check(t, err)
	answer.Body.Close()
	id := answer.Header.Get("X-Request-Id")
	if answer.StatusCode != http.StatusOK || len(id) != 16 {
		t.Fatalf("status %d, id %q", answer.StatusCode, id)
	}
	for _, prefix := range []string{"outbox#", notify.EventPrefix} {
		items := s.Partitions(prefix)
		if len(items) != 1 {
			t.Errorf("there are %d items in %s", len(items), prefix)
		}
		for key, text := range items {
			var item struct{ Request string }
			if err := json.Unmarshal([]byte(text), &item); err != nil || item.Request != id {
				t.Errorf("%s has the request %q, want %q, %v", key, item.Request, id, err)
			}
		}
	}
	s.Deliver()
	for _, line := range []string{"msg=request id=" + id, "request=" + id + " kind=link"} {
		if !strings.Contains(s.Log.String(), line) {
			t.Errorf("the log has no line with %q:\n%s", line, s.Log)
		}
	}
}
