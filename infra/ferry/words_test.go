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
	link := strings.TrimSpace(h.run("", "up", "a.txt", "-q").out)
	request := h.request("--title", "Photos")
	h.run("", "share", "1", "--downloads", "1").want(t, exitOK)
	cut, _, _ := strings.Cut(link, "&")
	for _, k := range []struct {
		args string
		code int
		says string
	}{
		{"up a.txt --mail foo", exitRefused, "a.txt: --mail foo: the parameter m"},
		{"up a.txt --sms 12", exitRefused, "a.txt: --sms 12: the parameter c"},
		{"up a.txt --to nobody", exitUnknown, "--to nobody: "},
		{"up a.txt --expires soon", exitRefused, "--expires soon: "},
		{"share 1 --mail a@example.com --mail foo", exitRefused, "--mail a@example.com, foo: "},
		{"request add --files=-5", exitRefused, "--files -5: "},
		{"up a.txt --session --part-size=6GiB", exitRefused, "--part-size 6GiB: "},
		{"up a.txt --password --request " + request, exitUsage, "does not go with --request: if"},
		{"up a.txt --downloads 0", exitUsage, "--downloads 0: it is at least 1"},
		{"share 1 --downloads=-3", exitUsage, "--downloads -3: it is at least 1"},
		{"link set 1 own --downloads 0", exitOK, ""},
		{"get " + cut, exitRefused, "is missing: put the link in quotes"},
		{"get " + link + "x", exitNoFile, "there is no such link"},
		{"get " + link[:len(link)-1], exitNoFile, "there is no such link"},
		{"up a.txt --request " + request + "x", exitNoFile, "there is no such link"},
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

func TestOperatorsReadWhatTheyTyped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	run := func(args string) result { return h.run("", append(strings.Fields(args), "--data", h.dir+"/data")...) }
	run("user add ann").want(t, exitOK)
	for _, args := range []string{"user show nobody", "user edit nobody --quota 5GB", "user reset nobody", "user disable nobody", "user enable nobody"} {
		wantSentence(t, run(args), exitUnknown, "there is no user nobody")
	}
	run("inbox").want(t, exitOK, "Nothing was sent yet", "Where ferry serve has a mail server (--smtp), mails go there")
	h.env = append(h.env, "FERRY_SMTP_URL=smtp://user:secret@mail.example.com:587")
	r := run("inbox")
	if r.want(t, exitOK, "Mails go to the mail server mail.example.com:587"); strings.Contains(r.out+r.err, "secret") {
		t.Errorf("the password is shown: %s", r.err)
	}
}
