package lambda

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ferry/shared/fault"
	"ferry/shared/retry"
)

const (
	patience = 3 * time.Second // for one try
	// whileBusy is how long to retry while a service is busy: the Parameter Store answers
	// 40 requests a second, and hundreds of functions may start at once.
	whileBusy = 15 * time.Second
	// whileSpreading is how long to retry a call that a new role may not make yet.
	whileSpreading = 30 * time.Second
	maxAnswer      = 64 << 10 // bytes; a parameter has at most 8 KB
)

// remote makes the few calls that need no port. The SDK's package for the Parameter
// Store has 150 of them, and just linking it would make each function with a key
// take a third longer to start.
type remote struct {
	config         aws.Config
	client         aws.HTTPClient
	name, address  string
	target, format string        // of JSON calls, as their headers say
	denied         time.Duration // how long to retry a denied call
}

func newRemote(c *Cloud, name, target, format string) remote {
	s := remote{
		config: c.ConfigOf(strings.ToUpper(name)),
		name:   name,
		target: target,
		format: format,
	}
	s.client = cmp.Or[aws.HTTPClient](c.Config.HTTPClient, &http.Client{Timeout: patience})
	domain := "amazonaws.com"
	if strings.HasPrefix(c.Config.Region, "cn-") {
		domain += ".cn"
	}
	s.address = cmp.Or(
		aws.ToString(s.config.BaseEndpoint),
		"https://"+name+"."+c.Config.Region+"."+domain,
	)
	return s
}

// fields are the fields of a JSON call.
type fields map[string]any

type serviceError struct{ status, kind, message string }

func (e *serviceError) Error() string { return e.status + " " + e.kind + " " + e.message }

// call makes a JSON call, and retries it while the error may be temporary.
func (s remote) call(ctx context.Context, action string, in fields, out any) error {
	header := http.Header{
		"Content-Type": {"application/x-amz-json-" + s.format},
		"X-Amz-Target": {s.target + action},
	}
	begun := time.Now()
	backoff := retry.Backoff{First: 200 * time.Millisecond, Longest: 3 * time.Second}
	var failed error
	for try := range backoff.Loop(ctx) {
		text, passing, err := s.ask(ctx, "", header, in)
		if err == nil {
			if json.Unmarshal(text, out) != nil { // its error would show the answer
				return errors.New("the answer is not JSON")
			}
			return nil
		}
		failed = err
		if time.Since(begun)+try.Pause > passing {
			break
		}
	}
	return failed
}

// ask makes one request; passing is how long to retry a failed one.
func (s remote) ask(ctx context.Context, path string, header http.Header, in any) (
	text []byte, passing time.Duration, err error,
) {
	r, err := s.request(ctx, path, header, in)
	if err != nil {
		return nil, 0, err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return nil, whileBusy, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode/100 == 2 {
		return text, whileBusy, err
	}
	var failed struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &failed)           // the error of a proxy may not be JSON
	kind, _, _ := strings.Cut(failed.Type, ":") // a namespace may precede it, and an address follow
	kind = kind[strings.LastIndexByte(kind, '#')+1:]
	switch {
	case response.StatusCode >= 500, response.StatusCode == http.StatusTooManyRequests,
		strings.Contains(kind, "Throttl"), kind == "ResourceInUseException":
		passing = whileBusy
	case kind == "AccessDeniedException":
		passing = s.denied
	}
	return nil, passing, &serviceError{response.Status, kind, failed.Message}
}

// request makes a signed request, as
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html,
// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html and the pages of the other
// actions describe.
func (s remote) request(
	ctx context.Context,
	path string,
	header http.Header,
	in any,
) (*http.Request, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(s.address, "/") + "/" + path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	credentials, err := s.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding AWS credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(
		ctx,
		credentials,
		r,
		hex.EncodeToString(sum[:]),
		s.name,
		s.config.Region,
		time.Now(),
	)
	return r, fault.Wrap(err, "signing a request")
}
