package emulated

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"ferry/shared/boot/boottest"
	"ferry/shared/envelope"
	"ferry/shared/files"
)

// previous is the commit of the previous version: the first one whose data have a format. A stack
// of an earlier one cannot be upgraded.
const previous = "2a72a1abc79f634a692ad9e47b26b79b6b080331"

// upgrade deploys this version over the previous one, lets both work at once,
// and goes back, while clients upload and download.
func upgrade(t *testing.T, now *Cloud) {
	before := openCloud(t, source(t, previous))
	check(t, now.Verify(t.Context(), "ferry@upgrade.example.com"))
	d := deploy(t, before, map[string]string{
		"SenderAddress":  "ferry@upgrade.example.com",
		"NoticesPerHour": "10000",
		"NoticesPerDay":  "10000",
	})
	clients := d.clients(3)
	clients.more(10)
	variables := d.variables()
	check(t, d.update(now))
	clients.more(10)
	check(t, d.mix(t.Context(), before, variables))
	if now, then := d.program("Upload", "live"), d.program("Upload", "$LATEST"); now == then {
		t.Error("both versions have the same program")
	}
	clients.more(30)
	check(t, d.update(before))
	clients.more(10)
	clients.end()
	clients.check()
}

// update deploys another version after all events have been handled.
func (d *deployed) update(c *Cloud) error {
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	defer cancel()
	return d.Stack.update(ctx, c, func(ctx context.Context) error { return d.sent(ctx, d.name+".example.com") })
}

// update deploys another version over the stack. Unlike Lambda, the emulator ends a
// process in the middle of a call if its program is replaced. So requests wait
// meanwhile, and quiet returns when no event is being handled, as a queue would bring
// it again only minutes later.
func (s *Stack) update(ctx context.Context, c *Cloud, quiet func(context.Context) error) error {
	s.requests.Lock()
	defer s.requests.Unlock()
	if err := quiet(ctx); err != nil {
		return err
	}
	_, err := c.stacks.UpdateStack(ctx, &cloudformation.UpdateStackInput{
		StackName: &s.name, TemplateURL: &c.template, Parameters: s.parameters,
		Capabilities: []types.Capability{types.CapabilityCapabilityIam},
	})
	if err != nil {
		return fmt.Errorf("updating the stack %s: %w", s.name, err)
	}
	s.cloud = c
	return s.waitFor(ctx, types.StackStatusUpdateComplete)
}

// variables returns the environment of each function of the API.
func (d *deployed) variables() map[string]map[string]string {
	d.Helper()
	all := map[string]map[string]string{}
	for _, r := range d.cloud.routes {
		c, err := d.cloud.lambda.GetFunctionConfiguration(
			d.Context(),
			&lambda.GetFunctionConfigurationInput{FunctionName: aws.String(d.IDs[r.function])},
		)
		check(d, err)
		all[r.function] = c.Environment.Variables
	}
	return all
}

// mix sends every other call of the API's functions to the program of another version with
// its own variables, as a gradual deployment does, until the next update.
func (s *Stack) mix(ctx context.Context, c *Cloud, variables map[string]map[string]string) error {
	s.requests.Lock()
	defer s.requests.Unlock()
	functions := map[string]invoker{}
	for _, r := range s.cloud.routes {
		if functions[r.function] != nil {
			continue
		}
		now := s.function(r.function, alias)
		if !slices.ContainsFunc(c.routes, func(old route) bool { return old.function == r.function }) {
			functions[r.function] = now // it is new
			continue
		}
		_, err := c.lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
			FunctionName: aws.String(s.IDs[r.function]), Environment: &lambdatypes.Environment{Variables: variables[r.function]},
		})
		if err != nil {
			return fmt.Errorf("giving %s other variables: %w", r.function, err)
		}
		other, err := c.lambda.UpdateFunctionCode(ctx, &lambda.UpdateFunctionCodeInput{
			FunctionName: aws.String(s.IDs[r.function]), S3Bucket: &c.artifacts,
			S3Key: aws.String(strings.ToLower(r.function)), Publish: true,
		})
		if err != nil {
			return fmt.Errorf("giving %s another program: %w", r.function, err)
		}
		functions[r.function] = alternating(now, s.function(r.function, *other.Version))
	}
	s.api = gateway(s.cloud.routes, functions, s.cloud.turns)
	return nil
}

// alternating sends every other event to the second of two versions.
func alternating(now, next invoker) invoker {
	var mu sync.Mutex
	return func(ctx context.Context, event []byte) (Result, error) {
		mu.Lock()
		invoke := now
		now, next = next, now
		mu.Unlock()
		return invoke(ctx, event)
	}
}

// program returns the hash of the program of a function's version.
func (d *deployed) program(id, version string) string {
	d.Helper()
	c, err := lambda.NewFromConfig(d.config).
		GetFunctionConfiguration(d.Context(), &lambda.GetFunctionConfigurationInput{
			FunctionName: aws.String(d.IDs[id]),
			Qualifier:    &version,
		})
	check(d, err)
	return *c.CodeSha256
}

// source returns a folder with the project at a commit.
func source(t *testing.T, commit string) string {
	t.Helper()
	var archive bytes.Buffer
	c := exec.CommandContext(t.Context(), "git", "-C", root, "archive", commit)
	c.Stdout = &archive
	if err := c.Run(); err != nil {
		t.Skipf("the checkout has no history with %s: %v", commit, err)
	}
	dir := t.TempDir()
	c = exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	c.Stdin = &archive
	check(t, c.Run())
	return dir
}

// clients upload, list and download without a pause.
type clients struct {
	*deployed
	rounds atomic.Int64
	lost   atomic.Int64 // answers
	failed atomic.Bool
	stop   context.CancelFunc
	all    sync.WaitGroup
	links  []map[string]string // of each client
}

func (d *deployed) clients(n int) *clients {
	ctx, stop := context.WithCancel(d.Context())
	c := &clients{deployed: d, stop: stop, links: make([]map[string]string, n)}
	for i := range n {
		c.all.Go(func() {
			links := map[string]string{} // by the files' contents
			for round := 0; ctx.Err() == nil && !c.failed.Load(); round++ {
				recipient := fmt.Sprintf("client-%d-round-%d@%s.example.com", i, round, d.name)
				stored, err := c.round(recipient)
				if err != nil {
					d.Error(err)
					c.failed.Store(true)
				}
				maps.Copy(links, stored)
				c.rounds.Add(1)
			}
			c.links[i] = links
		})
	}
	d.Cleanup(c.end)
	return c
}

// more waits for a number of further rounds.
func (c *clients) more(n int64) {
	c.Helper()
	target := c.rounds.Load() + n
	c.eventually(fmt.Sprintf("%d rounds of the clients", n), func() bool {
		return c.failed.Load() || c.rounds.Load() >= target
	})
	if c.failed.Load() {
		c.FailNow()
	}
}

func (c *clients) end() {
	c.stop()
	c.all.Wait()
}

// round stores a file for a recipient, and another one that it moves to the backup area
// and back. It returns their links by their contents.
func (c *clients) round(recipient string) (links map[string]string, err error) {
	moved := "moved for " + recipient
	sent, err := c.store(url.Values{"file": {recipient}, "m": {recipient}}, recipient)
	if err != nil {
		return nil, err
	}
	back, err := c.store(url.Values{"file": {moved}}, moved)
	if err != nil {
		return nil, err
	}
	file := fmt.Sprintf("/files/%d", back.ID)
	for _, step := range []string{
		"GET " + file, "DELETE " + file, "GET /download/list/backup", "POST " + file + "/restore",
		"GET /download/list",
	} {
		method, path, _ := strings.Cut(step, " ")
		if _, err := c.do(method, path, ""); err != nil {
			return nil, err
		}
	}
	return map[string]string{recipient: sent.LinkURL, moved: back.LinkURL}, nil
}

func (c *clients) store(query url.Values, content string) (envelope.File, error) {
	text, err := c.do("PUT", "/upload?"+query.Encode(), content)
	if err != nil {
		return envelope.File{}, err
	}
	var stored envelope.Body
	if err := json.Unmarshal(text, &stored); err != nil {
		return envelope.File{}, fmt.Errorf("the upload's answer is %s: %w", text, err)
	}
	i := slices.IndexFunc(stored.Files, func(f envelope.File) bool { return f.Name == content }) // others upload too
	if i < 0 {
		return envelope.File{}, fmt.Errorf("the upload's answer lacks the file: %s", text)
	}
	return stored.Files[i], nil
}

// check checks that each file can be fetched by its link, and that its recipient got a
// mail.
func (c *clients) check() {
	c.Helper()
	c.Logf("%d rounds; requests without an answer: %d", c.rounds.Load(), c.lost.Load())
	for _, links := range c.links {
		for content, link := range links {
			if err := fetches(link, content); err != nil {
				c.Error(err)
			}
			if strings.HasPrefix(content, "client") {
				c.eventually("the mail to "+content, func() bool { return len(c.mailed(content)) > 0 })
			}
		}
	}
}

// maxTries is how often a client sends a request.
const maxTries = 60

// do sends a request until it is answered, as a client does. A busy machine answers some with a 503,
// and some of those for which a function has to start with the gateway's 500, which tells why in the
// test's log. Both leave open whether the request was carried out.
func (c *clients) do(method, path, body string) ([]byte, error) {
	key := rand.Text()
	for tries := 1; ; tries++ {
		status, text, err := c.try(method, path, body, key)
		lost := status == http.StatusServiceUnavailable ||
			status == http.StatusInternalServerError && string(text) == `{"message":"Internal Server Error"}`
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusOK, status == http.StatusNotFound && tries > 1 && method != "GET": // an earlier try did it
			return text, nil
		case !lost || tries == maxTries:
			return nil, fmt.Errorf("%s %s: status %d after %d tries: %s", method, path, status, tries, text)
		}
		c.lost.Add(1)
		time.Sleep(time.Second) // as Retry-After says
	}
}

func (c *clients) try(method, path, body, key string) (status int, text []byte, err error) {
	r, err := http.NewRequest(method, c.Base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.SetBasicAuth("alice", boottest.Password)
	r.Header.Set(files.KeyHeader, key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

func fetches(address, content string) error {
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != content {
		return fmt.Errorf("%s gives %q, want %q: %w", address, got, content, err)
	}
	return nil
}
