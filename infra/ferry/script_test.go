package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // another client of the table

	"ferry/shared/boot/apitest"
	"ferry/shared/table/sqlite"
	"ferry/shared/users"
)

// scene is where a script plays.
type scene struct {
	*testscript.TestScript
	t       testing.TB
	service *apitest.Server
	served  *server
	asked   chan string // of the stand-in for AWS
}

// TestTheCommandDoesAsItsScriptsSay runs testdata/script. Each script has a folder and a home of its own, and its data
// in $FERRY_DATA. It can say this besides testscript's own commands:
//
//	ferry ARGS                           runs the command, which must succeed
//	exits CODE [NAME=VALUE] ferry ARGS   runs it with variables, and compares its exit code
//	until PATTERN ferry ARGS             runs it until it prints that
//	says LINE...                         compares all that it told on standard error
//	sentence TEXT                        it told one sentence, and the text is part of that
//	keep NAME PATTERN                    sets a variable to what the pattern's group finds in what it printed or told
//	as NAME                              goes on in another home
//	service                              starts a service at $ROOT with its data in $DATA and the users ann, bob and new,
//	                                     who is in first access
//	login NAME                           logs in there as ann or bob, in a home of that name
//	later DURATION                       moves that service's clock
//	log                                  prints that service's log
//	serve ARGS                           starts ferry serve at $ADDR, whose URL is $URL, and prints its greeting
//	end                                  ends that, and tells its log
//	answers STATUS METHOD URL HEADER...  sends a request, compares the status, and prints the answer
//	sql FILE STATEMENT                   changes a table
//	outbox                               fills the table with notices: $WAITING, $FAILED and $PIN
//	aws                                  starts a stand-in for AWS
//	asked WHAT...                        compares what it was asked for first
func TestTheCommandDoesAsItsScriptsSay(t *testing.T) {
	t.Parallel()
	commands := map[string]func(s *scene, args ...string){
		"ferry":    func(s *scene, args ...string) { s.exits(append([]string{"0", "ferry"}, args...)...) },
		"exits":    (*scene).exits,
		"until":    (*scene).until,
		"says":     (*scene).says,
		"sentence": (*scene).sentence,
		"keep":     (*scene).keep,
		"as":       (*scene).as,
		"service":  (*scene).begin,
		"login":    (*scene).login,
		"later":    (*scene).later,
		"log":      (*scene).printLog,
		"serve":    (*scene).serve,
		"end":      (*scene).end,
		"answers":  (*scene).answers,
		"sql":      (*scene).sql,
		"outbox":   (*scene).outbox,
		"aws":      (*scene).aws,
		"asked":    (*scene).wasAsked,
	}
	p := testscript.Params{Dir: "testdata/script", Cmds: map[string]func(*testscript.TestScript, bool, []string){}}
	for name, do := range commands {
		p.Cmds[name] = func(ts *testscript.TestScript, negated bool, args []string) {
			if negated {
				ts.Fatalf("%s cannot be negated", name)
			}
			s := ts.Value("scene").(*scene)
			s.TestScript = ts
			do(s, args...)
		}
	}
	p.Setup = func(e *testscript.Env) error {
		e.Values["scene"] = &scene{t: e.T().(testing.TB)}
		e.Vars = append(e.Vars, asFerry+"=1", "TEST_BINARY="+os.Args[0], "FERRY_DATA="+filepath.Join(e.WorkDir, "data"))
		e.Vars = append(e.Vars, homeIn(e.WorkDir)...)
		return nil
	}
	testscript.Run(t, p)
}

// exits runs the command with the variables before it.
func (s *scene) exits(args ...string) {
	at := slices.Index(args, "ferry")
	words := args[at+1:]
	err := s.Exec("env", slices.Concat(args[1:at], []string{program(words)}, words)...)
	code := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
	} else {
		s.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		s.Fatalf("the exit code is %d", code)
	}
}

func (s *scene) until(args ...string) {
	is := regexp.MustCompile("(?m)" + args[0])
	eventually(s.t, &strings.Builder{}, func() bool {
		s.exits(append([]string{"0"}, args[1:]...)...)
		return is.MatchString(s.ReadFile("stdout"))
	})
}

// slow is what a transfer tells only if it takes some time.
var slow = regexp.MustCompile(`(?m) in \d+:\d\d, [\d.]+ .?B/s|^.*: \d+% of .*\n`)

func (s *scene) says(lines ...string) {
	said := strings.ReplaceAll(slow.ReplaceAllString(s.ReadFile("stderr"), ""), os.Args[0], "ferry")
	if want := strings.Join(lines, "\n") + "\n"; said != want {
		s.Fatalf("it says\n%s, not\n%s", said, want)
	}
}

func (s *scene) sentence(text ...string) {
	said := s.ReadFile("stderr")
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "ferry: ") || !strings.Contains(said, text[0]) {
		s.Fatalf("this is not one sentence with %s", text)
	}
}

func (s *scene) keep(args ...string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(s.ReadFile("stdout") + s.ReadFile("stderr"))
	if found == nil {
		s.Fatalf("it prints no %s", args[0])
	}
	s.Setenv(args[0], found[1])
}

func (s *scene) as(name ...string) {
	s.set(homeIn(filepath.Join(s.Getenv("WORK"), "homes", name[0]))...)
}

func (s *scene) set(variables ...string) {
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		s.Setenv(name, value)
	}
}

func (s *scene) begin(...string) {
	s.service = apitest.New(s.t)
	s.service.AddUser("ann", annsPassword)
	s.service.AddUser("bob", annsPassword)
	s.service.AddUser("new", "temporary password", func(u *users.User) { u.State = users.FirstAccess })
	s.set("ROOT="+s.service.Root, "DATA="+s.service.Dir)
}

func (s *scene) login(name ...string) {
	s.as(name...)
	s.exits("0", "FERRY_PASSWORD="+annsPassword, "ferry", "login", s.service.Root, "--user", name[0])
}

func (s *scene) later(span ...string) {
	d, err := time.ParseDuration(span[0])
	s.Check(err)
	s.service.Clock.Advance(d)
}

func (s *scene) printLog(...string) { io.WriteString(s.Stdout(), s.service.Log.String()) }

func (s *scene) serve(args ...string) {
	s.served = serve(s.t, s.Getenv("FERRY_DATA"), args...)
	s.set("ADDR="+s.served.addr, "URL="+s.served.base)
	io.WriteString(s.Stdout(), s.served.greeting)
}

func (s *scene) end(...string) {
	if code := s.served.stop(s.t); code != exitOK {
		s.Fatalf("the service ends with %d: %s", code, s.served.errs)
	}
	s.served.errs.WriteTo(s.Stderr())
}

func (s *scene) answers(args ...string) {
	r, err := http.NewRequestWithContext(s.t.Context(), args[1], args[2], nil)
	s.Check(err)
	for _, header := range args[3:] {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	own := http.Transport{DisableKeepAlives: true} // a test that ends closes the idle connections of the default one
	resp, err := own.RoundTrip(r)
	s.Check(err)
	defer resp.Body.Close()
	io.Copy(s.Stdout(), resp.Body)
	if fmt.Sprint(resp.StatusCode) != args[0] {
		s.Fatalf("the status is %s", resp.Status)
	}
}

func (s *scene) sql(args ...string) {
	db, err := sql.Open("sqlite", s.MkAbs(args[0]))
	s.Check(err)
	_, err = db.Exec(args[1])
	s.Check(errors.Join(err, db.Close()))
}

func (s *scene) outbox(...string) {
	db, err := sqlite.Open(filepath.Join(s.Getenv("FERRY_DATA"), "table.sqlite"), sqlite.Options{NoSync: true})
	s.Check(err)
	waiting, failed, pin := fillOutbox(s.t, db)
	s.Check(db.Close())
	s.set("WAITING="+waiting, "FAILED="+failed, "PIN="+pin)
}

func (s *scene) aws(...string) {
	var environment []string
	environment, s.asked = inAWS(s.t)
	s.set(environment...)
}

func (s *scene) wasAsked(want ...string) {
	all := ""
	for len(s.asked) > 0 {
		all += <-s.asked + "|"
	}
	if !strings.HasPrefix(all, strings.Join(want, "|")) {
		s.Fatalf("it was asked for %s", all)
	}
}
