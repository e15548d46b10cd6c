package apitest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ferry/shared/users"
)

// The journey is the script testdata/journey.txt: requests, with the status that each must get. It
// is taken in several ways, each in a file of its own: what is answered and stored (golden_test.go,
// by one process and by the functions), what fails (failure_test.go), and what it costs
// (cost_test.go). walk_test.go takes it, also through a deployed stack.
//
// A step begins with a line "# NAME: STATUS". The lines that follow are as in HTTP, with names that
// are replaced, see walk.expand. A stack does not take a step "in one process", as it or its store
// answers in another way. Instead of a request there can be an action: "! NAME", or "! pass 10m" to
// let time pass.

// step is one step of the journey.
type step struct {
	name          string
	status        int // that the request gets
	do            any // a request, a length of time that passes, or something done
	headers, body string
}

// localRequest is one that a deployed stack does not get.
type localRequest string

const (
	password = "a password to try"
	bearer   = "Authorization: Bearer $bearer"
	form     = "Content-Type: application/x-www-form-urlencoded"
)

func (w *walk) journey() (all []step) {
	script, err := os.ReadFile(filepath.Join("testdata", "journey.txt"))
	check(w, err)
	actions := map[string]func(){
		"addUsers": w.addUsers, "addMore": w.addMore, "trouble": w.trouble, "needLogin": w.needLogin, "guess": w.guess,
		"forgetOften": w.forgetOften, "deliver": w.deliver, "spread": w.spread, "sweep": w.sweep,
	}
	head := regexp.MustCompile(`^(.+?)(?:: (\d+)(, in one process)?)?$`)
	for text := range strings.SplitSeq(strings.TrimPrefix(string(script), "# "), "\n# ") {
		title, rest, _ := strings.Cut(text, "\n")
		rest, body, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
		what, headers, _ := strings.Cut(rest, "\n")
		m := head.FindStringSubmatch(title)
		s := step{name: m[1], do: what, headers: headers, body: body}
		s.status, _ = strconv.Atoi(m[2]) // an action has none
		action, isAction := strings.CutPrefix(what, "! ")
		span, passes := strings.CutPrefix(action, "pass ")
		switch {
		case m[3] != "":
			s.do = localRequest(what)
		case passes:
			s.do, err = time.ParseDuration(span)
			check(w, err)
		case isAction:
			s.do = actions[action]
		}
		all = append(all, s)
	}
	return all
}

func (w *walk) addUsers() {
	w.AddUser("alice", password, func(u *users.User) { u.Quota, u.Phone = 1000, "+393351234567" })
	w.AddUser("bob", password, func(u *users.User) { u.Lang, u.KeepDays, u.BackupDays = "fr", 5, 6 })
	w.AddUser("new", password, func(u *users.User) { u.State = users.FirstAccess })
	w.AddUser("gone", password)
	check(w, w.Users.Disable(w.Context(), "gone"))
}

// trouble lets the table fail. The answer does not say why, but the log does.
func (w *walk) trouble() {
	if w.InStack() {
		return
	}
	w.Calls.Before("table.GetMany", func() error { return errors.New("the text of trouble") })
	w.ask(500, "POST /v1/auth/login", "Authorization: ${basic alice}", "")
	w.ask(500, "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=x")
	w.Calls.Before("table.GetMany", nil)
	if n := len(regexp.MustCompile(`msg=request id=[0-9a-f]{16} .*the text of trouble`).
		FindAllString(w.Log.String(), -1)); n != 2 {
		w.Errorf("the log has the text with the request's id %d times", n)
	}
}

func (w *walk) needLogin() {
	const requests = `
		POST /v1/auth/first
		POST /v1/upload?file=x
		GET /v1/download/list
		GET /v1/download/list/backup
		GET /v1/files/1
		DELETE /v1/files/1
		POST /v1/files/1/restore
		POST /v1/uploads
		GET /v1/uploads
		GET /v1/uploads/x
		DELETE /v1/uploads/x
		POST /v1/uploads/x/parts
		POST /v1/uploads/x/complete
		PATCH /v1/files/1
		POST /v1/files/1/links
		PATCH /v1/files/1/links/own
		DELETE /v1/files/1/links/own
		POST /v1/files/1/links/own/renew
		GET /v1/tokens
		POST /v1/tokens
		DELETE /v1/tokens
		DELETE /v1/tokens/x
		POST /v1/me/password
		GET /v1/requests
		POST /v1/requests
		PATCH /v1/requests/x
		DELETE /v1/requests/x`
	for request := range strings.SplitSeq(strings.TrimSpace(requests), "\n") {
		w.ask(401, strings.TrimSpace(request), "", "")
	}
}

func (w *walk) forgetOften() {
	for _, status := range []int{200, 200, 429} {
		w.ask(status, "GET /v1/auth/forget?u=alice", "", "")
	}
}

func (w *walk) guess() {
	for i, status := range []int{401, 401, 401, 401, 401, 429, 429} {
		w.ask(status, "POST /v1/auth/login", fmt.Sprintf("Authorization: ${basic alice:%d}", i), "")
	}
}

func (w *walk) addMore() {
	w.AddUser("dora", password)
	w.AddUser("eve", password)
	w.AddUser("fay", password, func(u *users.User) { u.State = users.FirstAccess })
	w.AddUser("quentin", password, func(u *users.User) { u.Quota = 1 << 20 })
	if w.crowd != nil {
		w.crowd()
	}
}
