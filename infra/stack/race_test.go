package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/service"
	"ferry/shared/table/dynamo"
)

// TestManyAtOnceTakeNoMoreThanALinkAllowsFromDynamoDB does what the functions of many requests do,
// each with a service of its own. Who is told to try again does, with the same claim; a function
// that was killed after it took a download looks the same to the next.
func TestManyAtOnceTakeNoMoreThanALinkAllowsFromDynamoDB(t *testing.T) {
	p := onDynamoDB(t)
	alice, err := p.Users().Get(t.Context(), "alice")
	check(t, err)
	f, err := p.Files().Get(t.Context(), alice, blob.Files, 1)
	check(t, err)
	limit := int64(3)
	_, err = p.Links().Edit(t.Context(), p.Files(), f, links.Own, true, links.Change{Limit: &limit})
	check(t, err)

	token := p.Key.File(blob.Files, "alice", 1)
	link, err := p.Links().Find(t.Context(), blob.Files, token, "")
	check(t, err)
	claims := make([]string, 200)
	for i := range claims {
		claims[i], err = p.Links().NewClaim(link)
		check(t, err)
	}
	took := make([]bool, len(claims))
	var all sync.WaitGroup
	for i := range claims {
		all.Go(func() {
			var err error
			if took[i], err = take(t, service.New(p.Ports, p.Settings), token, claims[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	won := 0
	for i, claim := range claims {
		if !took[i] {
			continue
		}
		won++
		if again, err := take(t, service.New(p.Ports, p.Settings), token, claim); !again {
			t.Errorf("a claim that has taken a download gets it no more: %v", err)
		}
	}
	now, err := p.Links().Get(t.Context(), f, links.Own)
	if err != nil || won != 3 || now.Taken != 3 {
		t.Errorf("%d took a download, and the link has given %d: %v", won, now.Taken, err)
	}
}

// onDynamoDB returns a service on a new table, with the user alice and files.
func onDynamoDB(t *testing.T) *service.Service {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/stack")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	check(t, err)
	d, err := boottest.Make(t.Context(), fmt.Sprint("race-", time.Now().UnixNano()))
	check(t, err)
	p := boottest.Service(t, nil)
	cloud := &lambda.Cloud{Config: cfg, Getenv: d.Getenv}
	check(t, cloud.Open(&p.Ports, lambda.Table(dynamo.Open)))
	p, err = boottest.Fill(t.Context(), p)
	check(t, err)
	return p
}

// TestManyGuestsAtOnceSendNoMoreThanARequestAllowsFromDynamoDB does the same with the files and the
// sessions of a request. Who is told to try again does.
func TestManyGuestsAtOnceSendNoMoreThanARequestAllowsFromDynamoDB(t *testing.T) {
	p := onDynamoDB(t)
	alice, err := p.Users().Get(t.Context(), "alice")
	check(t, err)
	made, err := p.Links().NewRequest(t.Context(), alice, links.Request{MaxFiles: 5})
	check(t, err)
	var all sync.WaitGroup
	var begun, stored, lost atomic.Int64
	for i := range 40 {
		by := files.By{
			UserIncarnation: alice.Incarnation,
			Request:         made.ID,
			Guest:           fmt.Sprint(i),
			Source:          fmt.Sprint(i),
		}
		service := service.New(p.Ports, p.Settings).Files()
		all.Go(func() {
			if i%2 == 0 && admitted(t, &lost, func() error {
				_, err := service.BeginSession(t.Context(), by, files.Plan{Owner: "alice", Name: "a", Length: 1}, nil)
				return err
			}) {
				begun.Add(1)
			} else if i%2 == 1 && admitted(t, &lost, func() error { return store(t, service, by) }) {
				stored.Add(1)
			}
		})
	}
	all.Wait()
	now, err := p.Links().Requests(t.Context(), alice)
	check(t, err)
	total := begun.Load() + now[0].Files // some of them may have had no answer
	if total > 5 || total < 5-lost.Load() || now[0].Files < stored.Load() || now[0].Files > stored.Load()+lost.Load() {
		t.Errorf("%d sessions began, %d files were stored, %d had no answer, and the request has %+v",
			begun.Load(), stored.Load(), lost.Load(), now)
	}
}

// noAnswer reports whether an error leaves open what was done: DynamoDB Local answers some of so many too late. A
// client would try again.
func noAnswer(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// admitted repeats do while it is told to try again or gets no answer, which it counts. It reports whether the
// request took it.
func admitted(t *testing.T, lost *atomic.Int64, do func() error) bool {
	for {
		err := do()
		if noAnswer(err) {
			lost.Add(1)
			continue
		}
		if fault.Is(err, fault.Unavailable) {
			continue
		}
		if err != nil && !fault.Is(err, fault.Forbidden) {
			t.Error(err)
		}
		return err == nil
	}
}

func store(t *testing.T, service *files.Service, by files.By) error {
	up, err := service.Begin(t.Context(), "alice", by, 1, files.Sending{})
	if err != nil {
		return err
	}
	if err = up.Add(t.Context(), files.Part{Name: "a", Body: strings.NewReader("1"), Size: 1}); err != nil {
		up.Abort(t.Context())
		return err
	}
	_, err = up.Commit(t.Context(), 0)
	return err
}

// take reports whether a claim has taken a download, and not come too late.
func take(t *testing.T, p *service.Service, token, claim string) (bool, error) {
	service := p.Links()
	for {
		link, err := service.Find(t.Context(), blob.Files, token, claim)
		if err == nil {
			_, err = service.Take(t.Context(), link, claim, claim)
		}
		switch {
		case err == nil:
			return true, nil
		case fault.Is(err, fault.Unauthorized):
			return false, nil
		case !fault.Is(err, fault.Unavailable) && !noAnswer(err): // the same claim takes nothing twice
			return false, err
		}
	}
}
