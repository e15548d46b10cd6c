package main

import (
	"strings"
	"testing"
)

// TestTheCommandSaysWhatIsWrongInTheWordsThatWereTyped has a mistake, and what is said of it.
func TestTheCommandSaysWhatIsWrongInTheWordsThatWereTyped(t *testing.T) {
	t.Parallel()
	service, h := annsService(t)
	h.write("a.txt", []byte("content"))
	link := h.up("a.txt")
	request := h.request("--title", "Photos")
	cut, _, _ := strings.Cut(link, "&")
	for _, k := range []struct {
		args string
		code int
		says string
	}{
		{"up a.txt --password --request " + request, exitUsage, "does not go with --request: if"},
		{"get " + cut, exitRefused, "is missing: put the link in quotes"},
		{"get " + link + "x", exitNoFile, "there is no such link"},
		{"get " + link[:len(link)-1], exitNoFile, "there is no such link"},
		{"up --nothing a.txt", exitUsage, "Try ferry up --help.\n"},
		{"link set 1 own --nothing", exitUsage, "Try ferry link set --help.\n"},
		{"user add --nothing", exitUsage, "Try ferry user add --help.\n"},
		{"nothing", exitUsage, "Try ferry --help.\n"},
	} {
		if r := h.run("", strings.Fields(k.args)...); r.code != k.code || !strings.Contains(r.err, k.says) {
			t.Errorf("ferry %s: code %d, want %d with %q:\n%s", k.args, r.code, k.code, k.says, r.err)
		}
	}
	if r := h.run(""); r.code != exitOK || r.out != h.run("", "--help").out || r.err != "" {
		t.Errorf("ferry alone: code %d: %s%s", r.code, r.out, r.err)
	}
	// A password in the environment is for who calls now, whatever was saved.
	for password, code := range map[string]int{annsPassword: exitOK, "another password": exitPermission, "": exitOK} {
		h.env = append(h.env, "FERRY_PASSWORD="+password)
		h.run("", "ls").want(t, code)
	}
	service.AddUser("bob", "bob's password")
	h.env = append(h.env, "FERRY_PASSWORD=bob's password", "FERRY_USER=bob")
	h.run("", "me").want(t, exitOK, "bob@example.com")
}

func TestAnInboxBesideAMailServerSaysWhereMailsWent(t *testing.T) {
	t.Parallel()
	h := newHome(t, "FERRY_SMTP_URL=smtp://user:secret@mail.example.com:587")
	h.run("", "user", "add", "ann").want(t, exitOK)
	r := h.run("", "inbox")
	if r.want(t, exitOK, "Mails go to the mail server mail.example.com:587"); strings.Contains(r.out+r.err, "secret") {
		t.Errorf("the password is shown: %s", r.err)
	}
}
