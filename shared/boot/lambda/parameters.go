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
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ferry/shared/envelope"
)

const (
	tries    = 5
	patience = 3 * time.Second // for one try
	// maxAnswer is in bytes; a parameter has at most 8 KB.
	maxAnswer = 64 << 10
)

// parameters calls the Parameter Store. It makes two kinds of requests. The SDK's
// package for the service has 150 of them, and just linking it would make the start of
// each function with a key longer by a third.
type parameters struct {
	config  aws.Config
	client  aws.HTTPClient
	address string
	pause   time.Duration // before the second try; doubles with each further try
}

func newParameters(c *Cloud) parameters {
	p := parameters{config: c.Service("SSM"), pause: 100 * time.Millisecond}
	p.client = cmp.Or[aws.HTTPClient](c.Config.HTTPClient, &http.Client{Timeout: patience})
	domain := "amazonaws.com"
	if strings.HasPrefix(c.Config.Region, "cn-") {
		domain += ".cn"
	}
	p.address = cmp.Or(aws.ToString(p.config.BaseEndpoint), "https://ssm."+c.Config.Region+"."+domain)
	return p
}

// StoreLinkKey stores the key of links under a name, unless there is one already.
func StoreLinkKey(ctx context.Context, c *Cloud, name, key string) error {
	_, err := newParameters(c).call(ctx, "PutParameter", parameter{
		Name: name, Value: key, Type: "SecureString",
		Description: "Key of Ferry's download links. With another one all links that were sent are dead.",
	})
	if failed, ok := errors.AsType[*parameterError](err); ok && failed.kind == "ParameterAlreadyExists" {
		return nil
	}
	return envelope.Wrap(err, "storing the link key")
}

// parameter is a parameter in requests and answers.
type parameter struct {
	Name           string
	WithDecryption bool   `json:",omitempty"`
	Value          string `json:",omitempty"`
	Type           string `json:",omitempty"`
	Description    string `json:",omitempty"`
}

type parameterError struct{ status, kind, message string }

func (e *parameterError) Error() string { return e.status + " " + e.kind + " " + e.message }

// get returns the value of a parameter, decrypted.
func (p parameters) get(ctx context.Context, name string) (string, error) {
	text, err := p.call(ctx, "GetParameter", parameter{Name: name, WithDecryption: true})
	if err != nil {
		return "", fmt.Errorf("asking for parameter %s: %w", name, err)
	}
	var answer struct{ Parameter parameter }
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", fmt.Errorf("asking for parameter %s: the answer is not JSON", name) // err would show it
	}
	return answer.Parameter.Value, nil
}

// call makes a request, and retries while the service is busy: many functions may
// start at once.
func (p parameters) call(ctx context.Context, action string, in parameter) ([]byte, error) {
	for try, pause := 1, p.pause; ; try, pause = try+1, 2*pause {
		text, again, err := p.ask(ctx, action, in)
		if err == nil || !again || try == tries {
			return text, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask makes one call; again reports whether a failed one is worth a retry.
func (p parameters) ask(ctx context.Context, action string, in parameter) (text []byte, again bool, err error) {
	r, err := p.request(ctx, action, in)
	if err != nil {
		return nil, false, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, true, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode == http.StatusOK {
		return text, true, err
	}
	var failed struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &failed) // the error of a proxy may not be JSON
	busy := response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests || strings.Contains(failed.Type, "Throttl")
	kind, _, _ := strings.Cut(failed.Type, ":") // a namespace may precede it, and an address follow
	return nil, busy, &parameterError{response.Status, kind[strings.LastIndexByte(kind, '#')+1:], failed.Message}
}

// request makes a signed request, as
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
// and API_PutParameter.html there describe.
func (p parameters) request(ctx context.Context, action string, in parameter) (*http.Request, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.address, "/")+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AmazonSSM."+action)
	credentials, err := p.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding AWS credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), "ssm", p.config.Region, time.Now())
	if err != nil {
		return nil, fmt.Errorf("signing a request: %w", err)
	}
	return r, nil
}
