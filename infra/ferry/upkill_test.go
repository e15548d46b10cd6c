package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKilledUploadIsResumed kills client and server again and again, with no
// chance to clean up.
func TestKilledUploadIsResumed(t *testing.T) {
	t.Parallel()
	const (
		size, part  = 96 << 20, 5 << 20
		connections = 2
		kills       = 6
	)
	g, err := openGate()
	must(t, err)
	t.Cleanup(func() { g.Close() })
	data, url := t.TempDir(), "http://"+g.Addr()+"/v1"
	serveAgain := func() *server {
		s := serve(t, data, "--public-url", url, "--fsync", "off")
		g.Lead(strings.TrimSuffix(strings.TrimPrefix(s.base, "http://"), "/v1"))
		return s
	}
	first := serve(t, data) // without a public URL, so that it creates demo
	first.stop(t)
	s := serveAgain()
	h := newHome(t, "FERRY_URL="+url, "FERRY_USER=demo", "FERRY_PASSWORD="+first.password)
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(content)
	h.write("big", content)
	args := []string{"up", "big", "--part-size", "5242880", "--connections", "2", "--json"}
	done := false
	for i := 0; i < kills && !done; i++ {
		cmd := h.command("", args...)
		must(t, cmd.Start())
		before := g.In()
		for wait := int64(random.Uint64()%8+1) * 1 << 20; g.In()-before < wait; time.Sleep(time.Millisecond) {
			if processEnded(cmd.Process.Pid) {
				break
			}
		}
		if i%2 == 1 {
			_ = s.Process.Kill()
			_ = s.Wait()
			s = serveAgain()
			done = cmd.Wait() == nil // it has recovered by itself
			continue
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	r := h.run("", args...)
	var results []uploaded
	if err := json.Unmarshal([]byte(r.out), &results); err != nil || r.code != exitOK || len(results) != 1 {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	if most := int64(size+kills*connections*part) + 1<<20; !done && g.In() > most {
		t.Errorf("%d bytes were sent, want at most %d", g.In(), most)
	}
	if r := h.run("", "get", "big", "-o", "copy"); r.code != exitOK || !strings.Contains(r.err, "crc64nvme") {
		t.Fatalf("code %d: %s", r.code, r.err)
	}
	if got, err := os.ReadFile(filepath.Join(h.dir, "copy")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes back, or they differ: %v", len(got), err)
	}
	if left, _ := os.ReadDir(filepath.Join(h.dir, "cache", "ferry", "uploads")); len(left) != 0 {
		t.Errorf("states left in the cache: %v", left)
	}
	if r := h.run("", "uploads"); !strings.Contains(r.out, "no uploads") {
		t.Errorf("uploads left in the service: %s", r.out)
	}
}

// processEnded reports whether a child that nobody waits for has ended.
func processEnded(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(after, "Z")
}
