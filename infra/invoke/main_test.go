package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
	"ferry/shared/service"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhoTriesTheFunctionsSeesTheirMailAndHowToSendAnyFile uses this machine's own data in
// place of the stand-ins.
func TestWhoTriesTheFunctionsSeesTheirMailAndHowToSendAnyFile(t *testing.T) {
	t.Parallel()
	d, err := local.Open(t.TempDir(), local.Options{NoSync: true})
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	p, err := boottest.Fill(t.Context(), service.New(d.Ports, service.Settings{}))
	check(t, err)
	var out bytes.Buffer
	check(t, demo(t.Context(), &out, p, map[string]string{}, []string{"local", "start-api", "--port", "3001"}))
	said := regexp.MustCompile(`^LOGIN=demo:(\w+)
FERRY=http://127.0.0.1:3001/v1
.*: FERRY_PASSWORD=(\w+) bin/ferry up --session FILE --url http://127.0.0.1:3001/v1 --user demo
.*: (http://127.0.0.1:\d+/inbox)
$`).FindStringSubmatch(out.String())
	if said == nil || said[1] != said[2] {
		t.Fatalf("it says:\n%s", &out)
	}
	check(t, boottest.Notices(t.Context(), p)) // as a function in a container does
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(said[3])
		check(t, err)
		page, err := io.ReadAll(resp.Body)
		check(t, errors.Join(err, resp.Body.Close()))
		if strings.Contains(string(page), "carla@example.com") && strings.Contains(string(page), "393401234567") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the mail is not shown:\n%s", page)
		}
	}
}
