package stack

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"ferry/shared/api"
	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/fault"
	"ferry/shared/links"
	"ferry/shared/table/dynamo"
)

// TestManyAtOnceTakeNoMoreThanALinkAllowsFromDynamoDB does what the functions of many requests do,
// each with a service of its own. Who is told to try again does, with the same claim; a function
// that was killed after it took a download looks the same to the next.
func TestManyAtOnceTakeNoMoreThanALinkAllowsFromDynamoDB(t *testing.T) {
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/stack")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	check(t, err)
	d, err := boottest.Make(t.Context(), fmt.Sprint("race-", time.Now().UnixNano()))
	check(t, err)
	p := boottest.Ports(t, nil)
	cloud := &lambda.Cloud{Config: cfg, Getenv: d.Getenv}
	check(t, cloud.Open(p, lambda.Table(dynamo.Open)))
	check(t, boottest.Fill(t.Context(), p))
	alice, err := auth.NewUsers(p.Table, p.Now).Get(t.Context(), "alice")
	check(t, err)
	f, err := file.Service(p).Get(t.Context(), alice, blob.Files, 1)
	check(t, err)
	limit := int64(3)
	_, err = file.Links(p).Edit(t.Context(), file.Service(p), f, links.Own, true, links.Change{Limit: &limit})
	check(t, err)

	token := p.Key.File(blob.Files, "alice", 1)
	link, err := file.Links(p).Find(t.Context(), blob.Files, token)
	check(t, err)
	claims := make([]string, 200)
	for i := range claims {
		claims[i], err = file.Links(p).NewClaim(link)
		check(t, err)
	}
	took := make([]bool, len(claims))
	var all sync.WaitGroup
	for i := range claims {
		all.Go(func() {
			var err error
			if took[i], err = take(t, p.Clone(), token, claims[i]); err != nil {
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
		if again, err := take(t, p.Clone(), token, claim); !again {
			t.Errorf("a claim that has taken a download gets it no more: %v", err)
		}
	}
	now, err := file.Links(p).Get(t.Context(), f, links.Own)
	if err != nil || won != 3 || now.Taken != 3 {
		t.Errorf("%d took a download, and the link has given %d: %v", won, now.Taken, err)
	}
}

// take reports whether a claim has taken a download, and not come too late.
func take(t *testing.T, p *api.Ports, token, claim string) (bool, error) {
	service := file.Links(p)
	for {
		link, err := service.FindFor(t.Context(), blob.Files, token, claim)
		if err == nil {
			_, err = service.Take(t.Context(), link, claim)
		}
		switch {
		case err == nil:
			return true, nil
		case fault.Is(err, fault.Unauthorized):
			return false, nil
		case !fault.Is(err, fault.Unavailable):
			return false, err
		}
	}
}
