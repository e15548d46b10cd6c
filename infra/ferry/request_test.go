package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/client"
)

// request makes a request, and returns its link.
func (h *home) request(args ...string) string {
	h.t.Helper()
	r := h.run("", append([]string{"request", "add"}, args...)...)
	r.want(h.t, exitOK, "/v1/requests/in?lang=en&k=in_")
	return strings.TrimSpace(r.out)
}

func TestAGuestsInterruptedUploadIsResumed(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	link, other := h.request(), h.request()
	guest := newHome(t)
	guest.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 4<<20)) // 64 MiB
	up := []string{"up", "big.bin", "--part-size", "5242880", "--request"}
	guest.ended(s, os.Interrupt, append(up, link)...).want(t, exitInterrupt, "run the same command again to resume")
	if r := guest.run("", append(up, other)...); r.code != exitOK || strings.Contains(r.err, "resuming") {
		t.Errorf("by another request: code %d: %s", r.code, r.err)
	}
	guest.run("", append(up, link)...).want(t, exitOK, "resuming the upload of big.bin")
	h.run("", "get", "1", "-o", "copy").want(t, exitOK)
	if h.read("copy") != guest.read("big.bin") {
		t.Error("the file has other bytes")
	}
	guest.ended(s, os.Interrupt, append(up, link)...).want(t, exitInterrupt)
	c := apitest.Caller{Server: s, Bearer: s.Login("ann", annsPassword)}
	for _, q := range apitest.Read[struct{ Requests []client.Request }](c.Ask("GET /requests", "").Want(200)).Requests {
		h.run("", "request", "rm", q.ID).want(t, exitOK)
	}
	wantSentence(t, guest.run("", append(up, link)...), exitPermission, "ended")
}
