package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
	"ferry/shared/wire"
)

const openSesame = "open sesame"

// protect gives the file with id 1 the password openSesame, and a limit of downloads unless that is "0".
func protect(t *testing.T, s *apitest.Server, downloads string) {
	t.Helper()
	c := apitest.Caller{Server: s, Bearer: s.Login("ann", annsPassword)}
	c.Ask("PATCH /files/1/links/own", `{"downloads": `+downloads+`, "password": "`+openSesame+`"}`).Want(200)
}

func TestAProtectedLinkIsDownloadedWithItsPassword(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("a.txt", []byte("content"))
	link := h.up("a.txt")
	protect(t, s, "1")
	stranger := newHome(t)
	wantSentence(t, stranger.run("", "get", link), exitPermission, "the link needs a password: name a file that has it with --password-file")
	wantSentence(t, stranger.run("wrong\n", "get", link, "--password-file", "-"), exitPermission, "the password is wrong")
	stranger.run("", "get", link, "--password-file", "none").want(t, exitNoFile, "none")
	stranger.run("", "get", link, "--password-file", "/dev/null").want(t, exitUsage, "is empty")
	stranger.run(openSesame+"\n", "get", link, "--password-file", "-").want(t, exitOK, "a.txt: 7 B")
	wantSentence(t, stranger.run(openSesame+"\n", "get", link, "-f", "--password-file", "-"), exitPermission, "this link is used up")
	protect(t, s, "0")
	stranger.write("secret", []byte(openSesame+"\n"))
	for _, env := range []string{"FERRY_LINK_PASSWORD=" + openSesame, "FERRY_LINK_PASSWORD_FILE=secret"} {
		stranger.env = append(stranger.env, env)
		stranger.run("", "get", link, "-o", "-").prints(t, exitOK, "content")
		stranger.env = stranger.env[:len(stranger.env)-1]
	}
}

func TestAPersonIsAskedForThePassword(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("a.txt", []byte("content"))
	link := h.up("a.txt")
	protect(t, s, "2")
	stranger := newHome(t)
	typing := func(lines ...string) (said string) {
		ours, theirs := terminal(t)
		cmd := stranger.command("", "get", "-f", link)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		start(t, cmd)
		theirs.Close() // then reading ends with the command
		for more := make([]byte, 1024); ; {
			n, err := ours.Read(more)
			if said += string(more[:n]); err != nil {
				return said
			}
			if !strings.HasSuffix(said, "Password of the link: ") {
				continue
			}
			if len(lines) == 0 {
				t.Fatalf("it asks again: %s", said)
			}
			_, err = ours.WriteString(lines[0] + "\n")
			must(t, err)
			lines = lines[1:]
		}
	}
	if said := typing("one", "two", "three"); strings.Count(said, "Password of the link: ") != 3 || !strings.Contains(said, "the password is wrong") {
		t.Errorf("three wrong passwords: %s", said)
	}
	if said := typing("wrong", openSesame); !strings.Contains(said, "Wrong password.") || stranger.read("a.txt") != "content" {
		t.Errorf("the right password: %s", said)
	}
}

func TestAnInterruptedGetOfALimitedLinkGoesOnForNothing(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	h.write("big.bin", bytes.Repeat([]byte("0123456789abcdef"), 12<<20)) // 192 MiB
	link := h.up("big.bin")
	protect(t, s, "1")
	stranger := newHome(t, "FERRY_LINK_PASSWORD="+openSesame)
	cmd := stranger.command("", "get", link)
	begun := outcome(cmd, func() error {
		must(t, cmd.Start())
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if info, err := os.Stat(filepath.Join(stranger.dir, "big.bin.part")); err == nil && info.Size() > 0 {
				break
			}
		}
		must(t, cmd.Process.Kill())
		return cmd.Wait()
	})
	if _, err := os.Stat(filepath.Join(stranger.dir, "big.bin.part.json")); err != nil {
		t.Skipf("it was too fast to be interrupted: %s", begun.err)
	}
	stranger.env = stranger.env[1:]
	stranger.run("", "get", link).want(t, exitOK, "verified")
	if stranger.read("big.bin") != h.read("big.bin") {
		t.Error("the file has other bytes")
	}
	wantSentence(t, stranger.run("", "get", link, "-f"), exitPermission, "this link is used up")
}

func TestPeopleShareFilesWithLimits(t *testing.T) {
	t.Parallel()
	service, h := annsService(t)
	h.write("a.txt", []byte("first"))
	h.write("b.txt", []byte("second"))
	h.write("secret", []byte(openSesame+"\n"))
	h.write("blank", []byte(" open \n"))
	takeSteps(t, h.run, "links.txt", service.Root)
	h.run("", "share", "1", "--expires", "60d").want(t, exitRefused, "--expires 60d: the parameter expires is later than the file's own")
	for _, args := range [][]string{{"up", "b.txt", "--qr", "-q"}, {"share", "1", "--qr"}, {"share", "1", "--qr", "--json"}} {
		if r := h.run("", args...); r.code != exitOK || !strings.Contains(r.err, "█▀▀▀▀▀█") || strings.Contains(r.out, "█") {
			t.Errorf("%v: %s%s", args, r.out, r.err)
		}
	}
}

func TestPatternsNameFiles(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	for _, name := range []string{"a.txt", "b.txt", "a[1].txt", "a1.txt", "c.pdf"} {
		h.write(name, []byte("content of "+name))
		h.run("", "up", name, "-q").want(t, exitOK)
	}
	h.run("", "up", "a.txt", "-q").want(t, exitOK) // id 6
	s.AddUser("bob", annsPassword)
	for _, k := range []struct {
		args, out, err string
		code           int
	}{
		{"ls *.pdf", "\n       5  ", "", exitOK},
		{"ls a[1].txt --json", `[
  {"id":3,`, "", exitOK},
		{"ls ?.txt", "\n       6  ", "", exitOK},
		{"ls *.zip", "no files", "ferry: there is no such file: *.zip", exitNoFile},
		{"ls [ a1.txt", "\n       4  ", "no such file: [", exitNoFile},
		{"ls -l 5", "EXPIRES           DOWNLOADS  FROM", "", exitOK},
		{"ls -l --json c.*", `"uploader":""`, "", exitOK},
		{"get *.zip", "", "ferry: there is no such file: *.zip", exitNoFile},
		{"get ?.txt c.pdf -o got/", "", "got/b.txt: 16 B", exitOK},
		{"get a[1].txt -o one", "", "one: 19 B", exitOK},
		{"get c.* -o two", "", "two: 16 B", exitOK},
		{"rm a[1].txt", "", "a[1].txt (id 3) is in the backup area\n", exitOK},
		{"rm a*.txt --json", `"id": 1,`, "a.txt (id 6) is in the backup area\na1.txt (id 4) is in the backup area\na.txt (id 1)", exitOK},
		{"rm a*.txt", "", "there is no such file: a*.txt", exitNoFile},
		{"restore a[0-9].txt", "", "a1.txt (id 4) is restored", exitOK},
	} {
		r := h.run("", strings.Fields(k.args)...)
		if r.code != k.code || !strings.Contains(r.out, k.out) || !strings.Contains(r.err, k.err) {
			t.Errorf("ferry %s: code %d, want %d:\n%s%s", k.args, r.code, k.code, r.out, r.err)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(h.dir, "got")); len(files) != 3 {
		t.Errorf("the patterns bring %v", files)
	}
}

func TestAListSaysWhoSentAFileAndHowOftenItWasFetched(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	s.AddUser("bob", annsPassword)
	bob := newHome(t)
	bob.login(s, "bob")
	bob.write("a.txt", []byte("content"))
	bob.run("", "up", "a.txt", "--to", "ann", "-q", "--expires", "2d").want(t, exitOK)
	h.run("", "get", "a.txt").want(t, exitOK)
	fields := func() []string {
		lines := strings.Split(h.run("", "ls", "-l").out, "\n")
		return strings.Fields(lines[min(1, len(lines)-1)])
	}
	expect.Eventually(func() bool { f := fields(); return len(f) > 7 && f[7] == "1" })
	if f := fields(); len(f) != 10 || f[7] != "1" || f[8] != "bob" || f[9] != "a.txt" || f[5] != time.Now().Add(48*time.Hour).Format(time.DateOnly) {
		t.Errorf("the line is %q", f)
	}
}

func TestALongListHasABound(t *testing.T) {
	t.Parallel()
	s, h := annsService(t)
	apitest.Caller{Server: s, Bearer: s.Login("ann", annsPassword)}.Fill(205)
	r := h.run("", "ls", "-l")
	if r.code != exitOK || strings.Count(r.out, "\n") != 1+200 || !strings.Contains(r.err, "the newest 200 files") || !strings.Contains(r.out, "\n       6  ") {
		t.Errorf("code %d, %d lines: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
}

// TestCommandsHaveAFlagForEachOption: the fields of flags cannot be made from the list of options.
func TestCommandsHaveAFlagForEachOption(t *testing.T) {
	t.Parallel()
	flags := map[string]bool{}
	for _, n := range walk(kong.Must(&commands{}, vars()).Model.Node) {
		for _, f := range n.Flags {
			flags[n.Path()+" --"+f.Name] = true
		}
	}
	for _, o := range new(client.Delivery).Options() {
		commands := []string{"up"}
		if o.Is&wire.Limit != 0 {
			commands = append(commands, "share", "link set")
		}
		for _, command := range commands {
			if o.Flag != "" && !flags[command+" --"+o.Flag] {
				t.Errorf("ferry %s has no flag --%s", command, o.Flag)
			}
		}
	}
}
