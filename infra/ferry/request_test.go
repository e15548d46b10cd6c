package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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

func TestPeopleAskForFiles(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("secret", []byte(openSesame+"\n"))
	h.run("", "request", "ls").want(t, exitOK, "no open requests")
	h.request("--title", "The trip", "--expires", "7d", "--files", "3", "--bytes", "2GB", "--password-file", "secret")
	var all []client.Request
	must(t, json.Unmarshal([]byte(h.run("", "request", "ls", "--json").out), &all))
	id := all[0].ID
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"ls", "  0 of 3        0 B of 2.0 GB       yes       The trip\n          http", exitOK},
		{"set ID --title Films --files 0 --expires none", "never             0             0 B of 2.0 GB       yes", exitOK},
		{"set ID --bytes 0 --no-password", "  0 B                 no        Films\n", exitOK},
		{"set ID --message please --json", `"message": "please"`, exitOK},
		{"set ID --password-file secret", "  yes  ", exitOK},
		{"set ID", "say what to change", exitUsage},
		{"set ID --password-file secret --no-password", "can't be used together", exitUsage},
		{"set nothing --title x", "ferry: nothing: there is no open request", exitNoFile},
		{"set ID --files=-1", "--files -1: files must not be negative", exitRefused},
		{"set ID --expires soon", "--expires soon: the parameter expires must be like", exitRefused},
		{"set ID --no-notify", "Films", exitOK},
		{"add --qr --json", "█▀▀▀▀▀█", exitOK},
		{"rm nothing ID", "request ID has ended\nferry: nothing: there is no open request", exitNoFile},
	} {
		args := strings.Fields("request " + strings.ReplaceAll(c.args, "ID", id))
		h.run("", args...).want(t, c.code, strings.ReplaceAll(c.says, "ID", id))
	}
}

func TestAGuestSendsFilesWithoutALogin(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	link := h.request("--title", "Photos")
	guest := newHome(t)
	guest.write("a.txt", []byte("first"))
	guest.write("b/c.txt", []byte("second"))
	for _, c := range []struct {
		args, stdin, says string
		code              int
	}{
		{"up a.txt --by Carla", "", "sending to ann: Photos\na.txt: 5 B\n", exitOK},
		{"up a.txt b --name trip", "", "trip.zip: ", exitOK},
		{"up --each a.txt b --json", "", `"name": "c.txt"`, exitOK},
		{"up - --name in.txt --session", "from a pipe", "in.txt: 11 B\n", exitOK},
		{"up a.txt --mail bob@example.com", "", "with --request you can add files, and nothing else", exitUsage},
		{"up a.txt --to bob", "", "nothing else: --to", exitUsage},
		{"up a.txt --downloads 1", "", "--downloads and --qr do not", exitUsage},
		{"up a.txt --password", "", "it is asked for", exitUsage},
	} {
		r := guest.run(c.stdin, append(strings.Fields(c.args), "--request", link)...)
		if r.want(t, c.code, c.says); strings.Contains(r.out+r.err, "k=") {
			t.Errorf("ferry %s shows a link: %s", c.args, r.out)
		}
	}
	h.run("", "ls", "-l").want(t, exitOK, "  Carla         a.txt\n", "  a guest       trip.zip\n")
	h.run("", "show", "1").want(t, exitOK, "from       Carla\nrequest    ")
	if list := h.run("", "ls").out; strings.Count(list, "a.txt\n") != 2 || strings.Count(list, "\n") != 6 {
		t.Errorf("the maker has\n%s", list)
	}
	guest.run("", "up", "a.txt", "--by", "Carla").want(t, exitUsage, "--by goes with --request")
	wantSentence(t, guest.run("", "up", "a.txt", "--request", "Photos"), exitUsage, "the whole link")
	wantSentence(t, guest.run("", "up", "a.txt", "--request", link+"x"), exitNoFile, "there is no such link")
	if _, err := os.Stat(filepath.Join(guest.dir, "config")); err == nil {
		t.Error("a guest gets settings")
	}
}

func TestAProtectedRequestAsksForItsPasswordOnce(t *testing.T) {
	t.Parallel()
	_, h := annsService(t)
	h.write("secret", []byte(openSesame+"\n"))
	link := h.request("--password-file", "secret")
	guest := newHome(t)
	guest.write("a.txt", []byte("content"))
	up := []string{"up", "a.txt", "--request", link}
	wantSentence(t, guest.run("", up...), exitPermission, "the link needs a password: name a file that has it")
	typed := append(up, "--password-file", "-")
	wantSentence(t, guest.run("wrong\n", typed...), exitPermission, "the password is wrong")
	guest.env = append(guest.env, "FERRY_LINK_PASSWORD="+openSesame)
	guest.run("", up...).want(t, exitOK, "a.txt: 7 B")
	guest.env = guest.env[:len(guest.env)-1]
	guest.run("", up...).want(t, exitOK, "a.txt: 7 B")
	notes, _ := filepath.Glob(filepath.Join(guest.dir, "cache", "ferry", "uploads", "*"))
	if len(notes) != 1 {
		t.Fatalf("the guest keeps %v", notes)
	}
	if info, err := os.Stat(notes[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read %v: %v", info, err)
	}
	must(t, os.Remove(notes[0]))
	guest.run("", up...).want(t, exitPermission, "the link needs a password")
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
