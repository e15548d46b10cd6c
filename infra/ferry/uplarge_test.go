package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

// ended starts an upload and ends it with a signal while the service holds its third part.
func (h *home) ended(s *apitest.Server, by os.Signal, args ...string) result {
	h.t.Helper()
	var parts atomic.Int64
	third, over := make(chan struct{}), make(chan struct{})
	handler := s.HTTP.Config.Handler.(*apitest.Handler)
	var whole *http.HandlerFunc
	ready := make(chan struct{})
	whole = handler.Swap(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		n := int64(0)
		if r.Method == http.MethodPut {
			n = parts.Add(1)
		}
		if n == 3 {
			close(third)
		}
		if n >= 3 {
			<-over
		}
		(*whole)(w, r)
	})
	close(ready)
	defer func() { handler.Swap(*whole) }()
	cmd := h.command("", args...)
	return outcome(cmd, func() error {
		must(h.t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		defer close(over)
		select {
		case <-third:
			must(h.t, cmd.Process.Signal(by))
			return <-ended
		case err := <-ended:
			return err
		}
	})
}

// unfinished returns the files with the states of uploads that may be resumed.
func (h *home) unfinished() (names []string) {
	h.t.Helper()
	const dir = "cache/ferry/uploads"
	all, err := os.ReadDir(filepath.Join(h.dir, dir))
	must(h.t, err)
	for _, entry := range all {
		names = append(names, filepath.Join(dir, entry.Name()))
	}
	return names
}

func TestInterruptedUploadIsResumedOrAborted(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 4<<20)) // 64 MiB
	up := []string{"up", "big.bin", "--part-size", "5242880"}
	if r := h.ended(s, os.Interrupt, up...); r.code != exitInterrupt ||
		strings.Count(r.err, "\n") != 1 ||
		!strings.Contains(r.err, "interrupted; run the same command again") ||
		r.out != "" {
		t.Fatalf("code %d: %s%s", r.code, r.out, r.err)
	}
	h.run("", "uploads", "--json").want(t, exitOK, `"name":"big.bin"`)
	h.ended(s, os.Kill, up...) // which leaves no chance to clean up
	state := h.unfinished()[0]
	text := h.read(state)
	h.run("", up...).want(t, exitOK, "resuming the upload of big.bin", "(id 1)")
	if r := h.run("", "get", "1", "-o", "copy"); r.code != exitOK || h.read("copy") != h.read("big.bin") {
		t.Errorf("code %d, or other bytes: %s", r.code, r.err)
	}
	h.write(state, []byte(text)) // as if a crash had left it
	h.run("", "rm", "1")
	h.run("", up...).want(t, exitRefused, "file 1 has been deleted")

	h.ended(s, os.Interrupt, up...).want(t, exitInterrupt)
	id, _, _ := strings.Cut(strings.Split(h.run("", "uploads").out, "\n")[1], " ")
	h.run("", "uploads", "--abort", id).want(t, exitOK)
	h.run("", "uploads", "--abort", id).want(t, exitNoFile)
	if r := h.run("", up...); r.code != exitOK || strings.Contains(r.err, "resuming") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	expect.Equal(t, "what is left", h.unfinished(), nil)
}

func TestAnUploadIsNotResumedWithAnotherPassword(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 4<<20)) // 64 MiB
	h.write("one", []byte("open sesame\n"))
	h.write("two", []byte("open barley\n"))
	up := func(password string) []string {
		return []string{"up", "big.bin", "--part-size", "5242880", "--password-file", password}
	}
	h.ended(s, os.Interrupt, up("one")...).want(t, exitInterrupt)
	state := h.unfinished()[0]
	text := h.read(state)
	if !strings.Contains(text, `"password":"`) || strings.Contains(text, "sesame") {
		t.Errorf("the state is %s", text)
	}
	if r := h.run("", up("two")...); r.code != exitOK || strings.Contains(r.err, "resuming") {
		t.Errorf("with another password: code %d, %s", r.code, r.err)
	}
	h.ended(s, os.Interrupt, up("one")...).want(t, exitInterrupt)
	h.run("", up("one")...).want(t, exitOK, "resuming the upload of big.bin")
	h.ended(s, os.Interrupt, up("one")...).want(t, exitInterrupt)
	h.write("big.bin", bytes.Repeat([]byte("fedcba9876543210"), 4<<20))
	h.run("", up("one")...).want(t, exitOK, "big.bin has changed since the upload of big.bin began, so it starts again")
	h.run("", "uploads", "--json").want(t, exitOK, `"id"`) // the one with the other password, which nobody resumes
}
