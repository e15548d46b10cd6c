package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/infra/lambdahost"
	"ferry/infra/messaging"
	"ferry/infra/template"
	"ferry/shared/boot/fixture"

	"ferry/shared/api"
)

// responseURL is where a custom resource's event says to put the answer.
var responseURL = regexp.MustCompile(`("ResponseURL": ")[^"]*"`)

// Fixtures is a stack in which a function finds what its fixture speaks of:
// users, files and a notice in the table and the buckets and, where there is a
// stand-in for them, topics, queues and the sender of mail.
type Fixtures struct {
	*Local
	Data     *api.Ports
	Messages *messaging.Messaging // nil without a stand-in
	fixture  fixture.Fixture
	answers  chan []byte // put where CloudFormation waits for them
	address  string      // there
}

// StartFixtures makes a stack for one fixture.
func StartFixtures(ctx context.Context, c LocalConfig, f fixture.Fixture) (*Fixtures, error) {
	it := &Fixtures{fixture: f, answers: make(chan []byte, 1)}
	// The links in events/ have the gateway's own address.
	values := map[string]string{"PublicUrl": "", "SenderAddress": c.Name + "@example.com"}
	maps.Copy(values, c.Values)
	c.Key, c.Values = fixture.Key, values
	if c.Log == nil {
		c.Log = io.Discard
	}
	if err := it.messaging(ctx, c); err != nil {
		return nil, err
	}
	var err error
	if it.Local, err = Start(ctx, c); err != nil {
		return nil, err
	}
	if err := it.seed(ctx, c.Log); err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return it, nil
}

// messaging makes topics and queues, and puts them among the values.
func (it *Fixtures) messaging(ctx context.Context, c LocalConfig) error {
	if os.Getenv("AWS_ENDPOINT_URL_SNS") == "" {
		return nil
	}
	t, err := template.Read(filepath.Join(c.Root, "template.yaml"))
	if err != nil {
		return err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading the AWS configuration: %w", err)
	}
	maps.Copy(c.Values, map[string]string{"AWS::StackName": c.Name, "AWS::Region": cfg.Region, "AWS::Partition": "aws", "AWS::AccountId": "123456789012"})
	if it.Messages, err = messaging.New(ctx, cfg, c.Name, template.Stack{Template: t, Values: c.Values}); err != nil {
		return err
	}
	return it.Messages.Verify(ctx)
}

func (it *Fixtures) seed(ctx context.Context, log io.Writer) (err error) {
	if it.Data, err = it.Ports(ctx); err != nil {
		return err
	}
	it.Data.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := fixture.Seed(ctx, it.Data); err != nil {
		return err
	}
	if err := it.fixture.Notices(ctx, it.Data); err != nil {
		return err
	}
	it.address, err = it.serve(http.HandlerFunc(it.take))
	return err
}

// take takes an answer to CloudFormation.
func (it *Fixtures) take(_ http.ResponseWriter, r *http.Request) {
	if text, err := io.ReadAll(io.LimitReader(r.Body, lambdahost.MaxPayload)); err == nil {
		select {
		case it.answers <- text:
		default: // nobody looks at them
		}
	}
}

// Event is the fixture's event, with an address on this machine if it has one to
// answer to.
func (it *Fixtures) Event() []byte {
	return responseURL.ReplaceAll(it.fixture.Event, []byte("${1}"+it.address+`"`))
}

// Answer is what a function has answered: what it returned or, for one that was
// put where CloudFormation waits for it, that.
func (it *Fixtures) Answer(returned []byte) []byte {
	select {
	case put := <-it.answers:
		return put
	default:
		return returned
	}
}

// Check compares a function's answer with the one that is expected.
func (it *Fixtures) Check(returned []byte) error {
	return it.fixture.Expect.Check(it.Answer(returned))
}
