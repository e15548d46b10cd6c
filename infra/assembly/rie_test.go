package assembly_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestEachProgramAnswersUnderAWSsOwnEmulator runs the programs under the Lambda
// runtime interface emulator, which is what SAM and AWS's base images run them
// under.
func TestEachProgramAnswersUnderAWSsOwnEmulator(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.Name, func(t *testing.T) { // one after the other: the emulator chooses no free port itself
			it := fixtureStack(t, f)
			environment, err := it.Environment(f.Function)
			if err != nil {
				t.Fatal(err)
			}
			if err := it.Check(emulate(t, f.Function, environment, it.Event())); err != nil {
				t.Error(err)
			}
		})
	}
}

// emulate sends one event to a program under the emulator. The emulator chooses
// no free port itself, and another may take one before it does: then it ends,
// and is started anew.
func emulate(t *testing.T, name string, environment map[string]string, event []byte) []byte {
	t.Helper()
	rie := os.Getenv("FERRY_TEST_RIE")
	if rie == "" {
		t.Skip("needs the emulator: go run ./infra/awslocal -- go test ./infra/assembly")
	}
	for range 5 {
		if answer := emulateOnce(t, rie, name, environment, event); answer != nil {
			return answer
		}
	}
	t.Fatal("the emulator does not answer")
	return nil
}

func emulateOnce(t *testing.T, rie, name string, environment map[string]string, event []byte) []byte {
	t.Helper()
	front, api := free(t), free(t)
	c := exec.CommandContext(t.Context(), rie, "--runtime-interface-emulator-address", front, "--runtime-api-address", api, filepath.Join(programs(), name))
	for k, v := range environment {
		c.Env = append(c.Env, k+"="+v)
	}
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // it is interrupted, or could not start
		close(ended)
	}()
	defer func() {
		_ = c.Process.Signal(os.Interrupt) // so that it ends the program too; it may have ended
		<-ended
	}()
	for range 200 {
		resp, err := http.Post("http://"+front+"/2015-03-31/functions/function/invocations", "application/json", bytes.NewReader(event))
		if err == nil {
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		select {
		case <-ended:
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// free returns an address on loopback that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
