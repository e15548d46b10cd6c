package lambda

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	tries    = 5
	patience = 3 * time.Second // for one try
	// maxAnswer is in bytes; a parameter has at most 8 KB.
	maxAnswer = 64 << 10
)

// parameters reads the Parameter Store. It makes one kind of request, and the
// SDK's package for the service, which knows 150, would by its mere presence
// lengthen the start of each function that has a key by a third.
type parameters struct {
	config  aws.Config
	client  aws.HTTPClient
	address string
	pause   time.Duration // before the second try; doubles with each further one
}

func newParameters(c *Cloud) parameters {
	p := parameters{config: c.Config, client: c.Config.HTTPClient, pause: 100 * time.Millisecond}
	if p.client == nil {
		p.client = &http.Client{Timeout: patience}
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(c.Config.Region, "cn-") {
		domain += ".cn"
	}
	p.address = "https://ssm." + c.Config.Region + "." + domain
	if address := c.Endpoint("SSM"); address != nil {
		p.address = *address
	}
	return p
}

// get returns the value of a parameter, decrypted. It tries again where the
// service is busy: many functions may start at once.
func (p parameters) get(ctx context.Context, name string) (string, error) {
	for try, pause := 1, p.pause; ; try, pause = try+1, 2*pause {
		value, again, err := p.ask(ctx, name)
		if err == nil || !again || try == tries {
			return value, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// ask makes one call; again tells whether a failed one is worth repeating.
func (p parameters) ask(ctx context.Context, name string) (value string, again bool, err error) {
	r, err := p.request(ctx, name)
	if err != nil {
		return "", false, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return "", true, fmt.Errorf("asking for parameter %s: %w", name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", true, fmt.Errorf("asking for parameter %s: %w", name, err)
	}
	var answer struct {
		Parameter struct{ Value string }
		Type      string `json:"__type"`
		Message   string `json:"message"`
	}
	err = json.Unmarshal(body, &answer) // an error of a proxy in between may be no JSON
	if response.StatusCode != http.StatusOK {
		busy := response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests || strings.Contains(answer.Type, "Throttl")
		return "", busy, fmt.Errorf("asking for parameter %s: %s %s %s", name, response.Status, answer.Type, answer.Message)
	}
	if err != nil {
		return "", false, fmt.Errorf("asking for parameter %s: the answer is no JSON", name) // err would show it
	}
	return answer.Parameter.Value, false, nil
}

// request makes a signed request: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
func (p parameters) request(ctx context.Context, name string) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Name           string
		WithDecryption bool
	}{name, true})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.address, "/")+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AmazonSSM.GetParameter")
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
