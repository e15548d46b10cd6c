package boottest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// Fixture is a file of events/: an event as Lambda gets it and, under "expect",
// the answer that the function must give. Lambda ignores the latter.
type Fixture struct {
	Name   string
	Event  []byte
	Expect Expect
}

// Expect is an answer. Headers and Body are regular expressions; a header that
// must be missing is "^$". Base64 is the entire body, if it is not text. An
// answer without a status does not go through the gateway.
type Expect struct {
	Status  int
	Headers map[string]string
	Body    string
	Base64  string
}

// Load reads the fixture of this name from events/.
func Load(t testing.TB, name string) Fixture {
	t.Helper()
	event, err := os.ReadFile(filepath.Join(Root(t), "events", name+".json"))
	check(t, err)
	f := Fixture{Name: name, Event: event}
	var doc struct{ Expect Expect }
	f.Decode(t, &doc)
	f.Expect = doc.Expect
	return f
}

// Decode reads the event.
func (f Fixture) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(f.Event, into); err != nil {
		t.Fatalf("events/%s.json: %v", f.Name, err)
	}
}

// Check compares a function's answer with what is expected: as it stands or, if
// it is for the gateway, by status, headers and body.
func (e Expect) Check(answer []byte) error {
	if e.Status != 0 {
		var r events.APIGatewayProxyResponse
		if err := json.Unmarshal(answer, &r); err != nil {
			return fmt.Errorf("the answer is not one for the gateway: %w: %s", err, answer)
		}
		if r.StatusCode != e.Status {
			return fmt.Errorf("the status is %d, want %d: %s", r.StatusCode, e.Status, answer)
		}
		for name, want := range e.Headers {
			err := matches(name, want, strings.Join(r.MultiValueHeaders[name], ", "))
			if err != nil {
				return err
			}
		}
		var err error
		if answer, err = Body(r); err != nil {
			return err
		}
	}
	switch {
	case e.Base64 != "":
		return matches(
			"the body",
			"^"+regexp.QuoteMeta(e.Base64)+"$",
			base64.StdEncoding.EncodeToString(answer),
		)
	case e.Body == "":
		return fmt.Errorf("the fixture does not say what the body must be; it is %q", answer)
	}
	return matches("the body", e.Body, string(answer))
}

// Body returns the body of a function's answer to the gateway.
func Body(r events.APIGatewayProxyResponse) ([]byte, error) {
	if !r.IsBase64Encoded {
		return []byte(r.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		return nil, fmt.Errorf("the body is not base64: %w", err)
	}
	return body, nil
}

func matches(what, want, got string) error {
	re, err := regexp.Compile(want)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !re.MatchString(got) {
		return fmt.Errorf("%s is\n%q, want\n%s", what, got, want)
	}
	return nil
}
