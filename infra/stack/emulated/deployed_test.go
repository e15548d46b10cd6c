package emulated

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/boot/boottest"
	"ferry/shared/notify"
	"ferry/shared/service"
)

// root is the directory of the module.
const root = "../../.."

// TestADeployedStack builds the functions once for all its tests.
func TestADeployedStack(t *testing.T) {
	t.Parallel()
	if os.Getenv(AddressVariable) == "" {
		t.Skip("needs an emulator of AWS: go run ./infra/awslocal -- go test ./infra/stack/emulated")
	}
	c := openCloud(t, root)
	for name, test := range map[string]func(*testing.T, *Cloud){
		"sends a link to its recipients by itself, once":             links,
		"tells the sender of a file that a mail bounced":             bounce,
		"retries what cannot be sent":                                retry,
		"keeps what was not sent as dead letters until a redrive":    deadLetters,
		"is swept on its schedule":                                   sweep,
		"moves the bytes of a file after it has answered":            moves,
		"finds by its sweep what the stream lost":                    lostByStream,
		"makes its link key once":                                    linkKey,
		"has memory for the largest upload":                          largestUpload,
		"has memory and time for a session of 10,000 parts":          manyParts,
		"keeps working while an upgrade is deployed and rolled back": upgrade,
		"keeps its data when it is deleted":                          deletion,
		"lets pages of all origins use what is signed":               pages,
		"shows its pages as its parameters say":                      look,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// openCloud builds the functions of a version and uploads them to the emulator.
func openCloud(t *testing.T, checkout string) *Cloud {
	t.Helper()
	c, err := Open(t.Context(), root, checkout)
	check(t, err)
	return c
}

// deployed is the stack of a test.
type deployed struct {
	*testing.T
	*Stack
	config aws.Config
	ports  *service.Service
}

// deploy deploys a stack with these parameters and with the users and files of
// boottest.
func deploy(t *testing.T, c *Cloud, parameters map[string]string) *deployed {
	t.Helper()
	d := deployEmpty(t, c, parameters)
	var err error
	d.ports, err = Fill(t.Context(), c.Config, d.Deployed, boottest.Log(t))
	check(t, err)
	return d
}

func deployEmpty(t *testing.T, c *Cloud, parameters map[string]string) *deployed {
	t.Helper()
	s, err := c.Deploy(t.Context(), "deployed-"+strings.ToLower(rand.Text()[:8]), parameters)
	check(t, err)
	d := &deployed{T: t, Stack: s, config: c.Config}
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pause stops the events of a function, or resumes them.
func (d *deployed) pause(function string, paused bool) {
	d.Helper()
	check(d, d.Pause(d.Context(), d.ID(function), paused))
}

// invoke calls a function, which must not fail, and returns its answer.
func (d *deployed) invoke(function string, event []byte) []byte {
	d.Helper()
	answer, err := d.Answer(d.Context(), function, event)
	check(d, err)
	return answer
}

// patience is how long a test waits for what happens by itself.
const patience = 20 * time.Minute

// eventually waits until something is true, and fails with its name if it is not.
func (d *deployed) eventually(what string, is func() bool) {
	d.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			d.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// sent returns when no notice is waiting whose recipient ends in to.
func (d *deployed) sent(ctx context.Context, to string) error {
	for {
		waiting := 0
		for n, err := range notify.Waiting(ctx, d.ports.Table) {
			if err != nil {
				return err
			}
			if strings.HasSuffix(n.To, to) {
				waiting++
			}
		}
		if waiting == 0 {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
