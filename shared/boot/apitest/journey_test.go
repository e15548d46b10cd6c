package apitest_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

// The journey is one table of requests, with the status that each must get. It is taken in
// several ways, each in a file of its own: what is answered and stored (golden_test.go, by one
// process and by the functions), what fails (failure_test.go), and what it costs
// (cost_test.go). walk_test.go takes it, also through a deployed stack.

// step is one step of the journey.
type step struct {
	name          string
	status        int // that the request gets
	do            any // a request, a length of time that passes, or something done
	headers, body string
}

// localRequest is one that a deployed stack answers in another way, or its store does.
type localRequest string

// The journey's headers. Names with $ are learned from earlier answers, see learn.
const (
	bearer = "Authorization: Bearer $bearer"
	typed  = "\nContent-Type: application/json"
	form   = "Content-Type: application/x-www-form-urlencoded"
	inForm = "Content-Type: multipart/form-data; boundary=b"
	parts  = bearer + "\n" + inForm
	page   = "Accept: text/html\nSec-Fetch-Mode: navigate"
)

const password = "a password to try"

func basic(name string) string { return basicOf(name, password) }

func basicOf(name, password string) string { return "Authorization: " + apitest.Basic(name, password) }

// part returns a file of a form.
func part(name string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\nhello " + name + "\r\n"
}

func (w *walk) journey() []step {
	return slices.Concat(
		[]step{{"users are added", 0, w.addUsers, "", ""}},
		w.pages(), w.logins(), w.uploads(), w.downloads(), w.areas(), w.sessions(), w.mails(), w.passwords(), w.endOfFiles(),
		w.tokens(), w.shares(), w.requests(), w.more(), w.site(),
	)
}

func (w *walk) addUsers() {
	w.AddUser("alice", password, func(u *auth.User) { u.Quota, u.Phone = 1000, "+393351234567" })
	w.AddUser("bob", password, func(u *auth.User) { u.Lang, u.KeepDays, u.BackupDays = "fr", 5, 6 })
	w.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	w.AddUser("gone", password)
	check(w, w.Users.Disable(w.Context(), "gone"))
}

func (w *walk) pages() []step {
	return []step{
		{"a page of welcome", 200, "GET /", "", ""},
		{"health", 200, "GET /v1/health", "", ""},
		{"health, head alone", 200, "HEAD /v1/health", "", ""},
		{"the description", 200, "GET /v1/openapi.json", "", ""},
		{"the description, head alone", 200, "HEAD /v1/openapi.json", "", ""},
		{"no such path", 404, "GET /v1/nothing", "", ""},
		{"no such path, head alone", 404, "HEAD /v1/nothing", "", ""},
		{"no such version", 404, "GET /v2/upload", "", ""},
		{"another method", 405, "PATCH /v1/upload", "", ""},
		{"a preflight", 204, localRequest("OPTIONS /v1/upload"), "Origin: https://app.example\nAccess-Control-Request-Method: POST", ""},
		{"a preflight of another origin", 204, localRequest("OPTIONS /v1/upload"), "Origin: https://evil.example\nAccess-Control-Request-Method: POST", ""},
		{"a page of a known origin", 200, localRequest("GET /v1/health"), "Origin: https://app.example", ""},
	}
}

func (w *walk) logins() []step {
	return []step{
		{"a login", 200, "POST /v1/auth/login", basic("Alice"), ""},
		{"a login without credentials", 401, "POST /v1/auth/login", "", ""},
		{"a login with a wrong password", 401, "POST /v1/auth/login", basicOf("alice", "the-wrong-one"), ""},
		{"a login of a disabled user", 401, "POST /v1/auth/login", basic("gone"), ""},
		{"a login in first access", 401, "POST /v1/auth/login", basic("new"), ""},
		{"a token", 200, "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=a+password+to+try"},
		{"a token for a wrong password", 401, "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=the-wrong-one"},
		{"a token for a broken form", 400, "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=the-wrong-one%zz"},
		{"a token of another grant", 400, "POST /v1/oauth2/token", form, "grant_type=refresh_token"},
		{"a token for no form", 400, "POST /v1/oauth2/token", typed, "{}"},
		{"trouble of the service's own", 0, w.trouble, "", ""},
		{"what needs a login", 0, w.needLogin, "", ""},
	}
}

// trouble lets the table fail. The answer does not say why, but the log does.
func (w *walk) trouble() {
	if w.InStack() {
		return
	}
	w.Calls.Before("table.GetMany", func() error { return errors.New("the text of trouble") })
	w.ask(500, "POST /v1/auth/login", basic("alice"), "")
	w.ask(500, "POST /v1/oauth2/token", form, "grant_type=password&username=alice&password=x")
	w.Calls.Before("table.GetMany", nil)
	if n := len(regexp.MustCompile(`msg=request id=[0-9a-f]{16} .*the text of trouble`).FindAllString(w.Log.String(), -1)); n != 2 {
		w.Errorf("the log has the text with the request's id %d times", n)
	}
}

func (w *walk) needLogin() {
	for _, request := range []string{
		"POST /v1/auth/first", "POST /v1/upload?file=x", "GET /v1/download/list", "GET /v1/download/list/backup", "GET /v1/files/1",
		"DELETE /v1/files/1", "POST /v1/files/1/restore", "POST /v1/uploads", "GET /v1/uploads", "GET /v1/uploads/x",
		"DELETE /v1/uploads/x", "POST /v1/uploads/x/parts", "POST /v1/uploads/x/complete",
		"PATCH /v1/files/1", "POST /v1/files/1/links", "PATCH /v1/files/1/links/own", "DELETE /v1/files/1/links/own",
		"POST /v1/files/1/links/own/renew", "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens", "DELETE /v1/tokens/x", "POST /v1/me/password",
		"GET /v1/requests", "POST /v1/requests", "PATCH /v1/requests/x", "DELETE /v1/requests/x",
	} {
		w.ask(401, request, "", "")
	}
}

func (w *walk) uploads() []step {
	return []step{
		{"an empty list", 200, "GET /v1/download/list", bearer, ""},
		{"a list with a wrong bearer", 401, "GET /v1/download/list", "Authorization: Bearer x", ""},
		{"a list with a wrong limit", 400, "GET /v1/download/list?limit=x", bearer, ""},
		{"an upload", 200, "POST /v1/upload?file=%C3%A9+%26+%22x%22.txt", bearer + "\nContent-Type: text/plain", "hello"},
		{"an upload by PUT with SHA-256", 200, "PUT /v1/upload?file=digest&lang=it", basic("alice") + "\nRepr-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:", "hello"},
		{"an upload with another SHA-256", 400, "PUT /v1/upload?file=digest", bearer + "\nRepr-Digest: sha-256=:AAAAul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:", "hello"},
		{"an upload of a form", 200, "POST /v1/upload", parts, part("a.txt") + part("b.txt") + "--b--\r\n"},
		{"an upload of a form without a file", 400, "POST /v1/upload", parts, "--b--\r\n"},
		{"an upload of half a form", 400, "POST /v1/upload", parts, part("a.txt")},
		{"an upload without a name", 400, "POST /v1/upload", bearer, "hello"},
		{"an upload to another who is to be told", 200, "POST /v1/upload?file=to+bob&d=bob&m=ann@example.com&c=%2B393351234568&i=It+is+%3Chere%3E&notify=1&lang=de", bearer, "for bob"},
		{"an upload to a user who is not there", 400, "POST /v1/upload?file=x&d=nobody", bearer, "x"},
		{"an upload with a wrong number", 400, "POST /v1/upload?file=x&c=12", bearer, "x"},
		{"an upload with a wrong address", 400, "POST /v1/upload?file=x&m=nowhere", bearer, "x"},
		{"an upload that is too large", 413, "POST /v1/upload?file=x", bearer, strings.Repeat("x", 1001)},
		{"an upload with a key", 200, "POST /v1/upload?file=key", bearer + "\nIdempotency-Key: one", "once"},
		{"the same with the same key", 200, "POST /v1/upload?file=key", bearer + "\nIdempotency-Key: one", "once"},
		{"another with the same key", 409, "POST /v1/upload?file=other", bearer + "\nIdempotency-Key: one", "once"},
		{"an upload to somebody who is not there", 200, "POST /v1/upload?file=lost&m=nobody@example.com", bearer, "lost"},
		{"a list of two", 200, "GET /v1/download/list?limit=2", bearer, ""},
		{"the next two", 200, "GET /v1/download/list?limit=2&after=5", basic("alice"), ""},
		{"a list, head alone", 200, "HEAD /v1/download/list", bearer, ""},
		{"a file's record", 200, "GET /v1/files/1", bearer, ""},
		{"a record, head alone", 200, "HEAD /v1/files/1", bearer, ""},
		{"a record of a file for another", 200, "GET /v1/files/1?d=bob", bearer, ""},
		{"no such record", 404, "GET /v1/files/77", bearer, ""},
		{"a record of another area", 400, "GET /v1/files/1?area=x", bearer, ""},
		{"messages are sent", 0, w.deliver, "", ""},
		{"the inbox", 200, localRequest("GET /inbox"), "", ""},
		{"the inbox for programs", 200, localRequest("GET /inbox"), "Accept: application/json", ""},
	}
}

func (w *walk) downloads() []step {
	return []step{
		{"a file by its recipient's link", 200, "GET $sent", "", ""},
		{"the receipt is sent", 0, w.deliver, "", ""},
		{"a record of a file of which others were told", 200, "GET /v1/files/1?d=bob", bearer, ""},
		{"a list to take a link from", 200, "GET /v1/download/list?limit=1&after=2", bearer, ""},
		{"a file", 200, "GET $file", "", ""},
		{"a file, head alone", 200, "HEAD $file", "", ""},
		{"a file's page", 303, "GET $file", page + "\nUser-Agent: Slackbot 1.0", ""},
		{"a file's envelope", 200, "GET $file", "Accept: application/json", ""},
		{"a file's preview", 303, "GET $file", "User-Agent: WhatsApp/2.23.20.0", ""},
		{"a part of a file", 206, "GET $file", "Range: bytes=1-2", ""},
		{"no part of a file", 416, "GET $file", "Range: bytes=9-", ""},
		{"a file that is known", 304, "GET $file", "If-None-Match: $etag", ""},
		{"a download without a token", 400, "GET /v1/download/file", "", ""},
		{"a download with a wrong one", 401, "GET /v1/download/file?k=%25zz-the-wrong-one", "", ""},
		{"a download with a broken one", 400, localRequest("GET /v1/download/file?k=%zz-the-wrong-one"), "", ""},
		{"a page of a wrong one", 303, "GET /v1/download/file?k=x&lang=es", page + "\nUser-Agent: curl/8", ""},
	}
}

func (w *walk) areas() []step {
	return []step{
		{"a deletion", 200, "DELETE /v1/files/1", bearer, ""},
		{"a file that was deleted", 401, "GET /v1/download/file?k=$k", "", ""},
		{"a deletion of what is not there", 404, "DELETE /v1/files/77", bearer, ""},
		{"a deletion of no number", 400, "DELETE /v1/files/x", bearer, ""},
		{"the backup list", 200, "GET /v1/download/list/backup", bearer, ""},
		{"the backup list, head alone", 200, "HEAD /v1/download/list/backup", bearer, ""},
		{"a file of the backup area", 200, "GET $file", "", ""},
		{"a download there with a wrong token", 401, "GET /v1/download/file/backup?z=x", "", ""},
		{"a download there with a wrong token, head alone", 401, "HEAD /v1/download/file/backup?z=x", "", ""},
		{"a download there without one", 400, "HEAD /v1/download/file/backup", "", ""},
		{"a record of the backup area", 200, "GET /v1/files/1?area=backup", bearer, ""},
		{"a restoration", 200, "POST /v1/files/1/restore", bearer, ""},
		{"a backup link after the restoration", 401, "GET /v1/download/file/backup?z=$z", "", ""},
		{"a file that was restored", 200, "GET /v1/download/file?k=$k", "", ""},
		{"a restoration of what is not there", 404, "POST /v1/files/1/restore", bearer, ""},
	}
}

func (w *walk) sessions() []step {
	return []step{
		{"a session", 201, "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: two", `{"name":"s.bin","length":5,"type":"text/plain","c":"+393351234569","notify":true}`},
		{"a session of a negative length", 400, "POST /v1/uploads", bearer + typed, `{"name":"s.bin","length":-1}`},
		{"sessions", 200, "GET /v1/uploads", bearer, ""},
		{"a session is shown", 200, "GET /v1/uploads/$session", bearer, ""},
		{"no such session", 404, "GET /v1/uploads/x", bearer, ""},
		{"a completion too early", 400, "POST /v1/uploads/$session/complete", bearer, ""},
		{"where a part goes", 200, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1]}`},
		{"where no part goes", 400, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[2]}`},
		{"a part of another length", 400, localRequest("PUT $part"), "", "part"},
		{"a part", 200, "PUT $part", "", "parts"},
		{"a part with another signature", 403, localRequest("PUT ${part}x"), "", "parts"},
		{"a session with its part", 200, "GET /v1/uploads/$session", bearer, ""},
		{"a completion", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"a completion once more", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"a session that is done cannot be ended", 409, "DELETE /v1/uploads/$session", bearer, ""},
		{"another session", 201, "POST /v1/uploads", bearer + typed, `{"name":"s.bin","length":5,"d":"bob"}`},
		{"it is ended", 204, "DELETE /v1/uploads/$session", bearer, ""},
	}
}

func (w *walk) mails() []step {
	return []step{
		{"stopping mails", 200, "GET $stop", "", ""},
		{"a page for stopping mails", 303, "GET $stop", page, ""},
		{"mails that end", 200, "POST $stop", "", ""},
		{"mails that come again", 200, "POST $stop", form, "undo=1"},
		{"a page of mails that end", 303, "POST $stop", page, ""},
		{"a wrong token for mails", 401, "POST /v1/notifications/stop?t=x", "", ""},
		{"an upload to somebody who wants no mails", 200, "POST /v1/upload?file=x&m=alice@example.com", bearer, "x"},
		{"what is due is sent", 0, w.deliver, "", ""},
	}
}

func (w *walk) passwords() []step {
	return []step{
		{"first access", 200, "POST /v1/auth/first", basic("new"), ""},
		{"a look at the change link", 200, "POST $change", "", ""},
		{"the page of a change link", 303, "GET $change", page, ""},
		{"a change link without a page", 405, "GET $change", "", ""},
		{"a password that is too short", 400, "POST $change&z=short", "", ""},
		{"a first password", 200, "POST $change", form, "z=a+password+of+mine"},
		{"a change link that was used", 401, "POST $change&z=a+password+of+mine", "", ""},
		{"first access of a user beyond it", 403, "POST /v1/auth/first", basic("alice"), ""},
		{"forget without a user", 400, "GET /v1/auth/forget", "", ""},
		{"forget of nobody", 401, "GET /v1/auth/forget?u=nobody", "", ""},
		{"forget of a disabled user", 403, "GET /v1/auth/forget?u=gone", "", ""},
		{"forget", 200, "GET /v1/auth/forget?u=Alice", "", ""},
		{"the PIN is sent", 0, w.deliver, "", ""},
		{"a change without the PIN", 403, "POST $change&z=another+password", "", ""},
		{"a change with a wrong PIN", 401, "POST $change&p=00000000&z=another+password", "", ""},
		{"a change", 200, "POST $change&p=$pin&z=another+password", "", ""},
		{"a bearer of before the change", 401, "GET /v1/download/list", bearer, ""},
		{"a login with the new password", 200, "POST /v1/auth/login", basicOf("alice", "another password"), ""},
		{"forget, too often", 0, w.forgetOften, "", ""},
		{"logins with a wrong password, too many", 0, w.guess, "", ""},
		{"bob's login", 200, "POST /v1/auth/login", basic("bob"), ""},
		{"bob's list", 200, "GET /v1/download/list", bearer, ""},
		{"a bearer is revoked", 200, "POST /v1/oauth2/revoke", form, "token=$bearer"},
		{"no bearer is revoked", 400, "POST /v1/oauth2/revoke", form, ""},
		{"a bearer that was revoked", 401, "GET /v1/download/list", bearer, ""},
	}
}

func (w *walk) forgetOften() {
	for _, status := range []int{200, 200, 429} {
		w.ask(status, "GET /v1/auth/forget?u=alice", "", "")
	}
}

func (w *walk) guess() {
	for i, status := range []int{401, 401, 401, 401, 401, 429, 429} {
		w.ask(status, "POST /v1/auth/login", basicOf("alice", fmt.Sprint(i)), "")
	}
}

func (w *walk) endOfFiles() []step {
	return []step{
		{"events go to their webhook", 0, w.spread, "", ""},
		{"files expire", 0, 31 * 24 * time.Hour, "", ""},
		{"a file that has expired", 401, localRequest("GET /v1/download/file?k=$k"), "", ""},
		{"a sweep", 0, w.sweep, "", ""},
		{"files expire in the backup area", 0, 91 * 24 * time.Hour, "", ""},
		{"another sweep", 0, w.sweep, "", ""},
		{"a sweep of nothing", 0, w.sweep, "", ""},
	}
}

// more has what differs in calls to the stores. In the account of its user there can be many
// files: see crowd.
func (w *walk) more() []step {
	const (
		pdf    = bearer + "\nContent-Type: application/pdf"
		robot  = "User-Agent: Slackbot 1.0"
		sha256 = `"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"` // of hello
	)
	return []step{
		{"more users are added", 0, w.addMore, "", ""},
		{"login", 200, "POST /v1/auth/login", basic("dora"), ""},
		{"token", 200, "POST /v1/oauth2/token", form, "grant_type=password&username=dora&password=a+password+to+try"},
		{"end of a token", 200, "POST /v1/oauth2/revoke", form, "token=$bearer"},
		{"login with a wrong password", 401, "POST /v1/auth/login", basicOf("dora", "the-wrong-one"), ""},
		{"login with failures on record", 200, "POST /v1/auth/login", basic("dora"), ""},
		{"first access of another", 200, "POST /v1/auth/first", basic("fay"), ""},
		{"forgotten password, with its mail", 200, "GET /v1/auth/forget?u=eve", "", ""},
		{"its PIN is sent", 0, w.deliver, "", ""},
		{"check of a PIN", 200, "POST $change&p=$pin", "", ""},
		{"change of a forgotten password", 200, "POST $change&p=$pin&z=another+password", "", ""},
		{"account", 200, "GET /v1/me", bearer + "\nX-Request-Id: the-callers-own", ""},

		{"upload", 200, "POST /v1/upload?file=report.pdf", pdf, "hello"},
		{"download by link", 200, "GET $file", "User-Agent: curl/8", ""},
		{"upload with an Idempotency-Key", 200, "POST /v1/upload?file=report.pdf", pdf + "\nIdempotency-Key: 1", "hello"},
		{"upload with one text message", 200, "POST /v1/upload?file=report.pdf&c=%2B12015550123&i=hello", pdf, "hello"},
		{"upload with one mail", 200, "POST /v1/upload?file=report.pdf&m=carla@example.com&i=hello", pdf, "hello"},
		{"its mail is sent", 0, w.deliver, "", ""},
		{"page of a link, for browsers", 303, "GET $file", page + "\nUser-Agent: curl/8", ""},
		{"record of a file with one recipient", 200, "GET /v1/files/$id", bearer, ""},
		{"page that ends mails to an address", 200, "GET $stop", "", ""},
		{"end of mails to an address", 200, "POST $stop", "", ""},
		{"end of mails once more", 200, "POST $stop", "", ""},
		{"mails again", 200, "POST $stop", form, "undo=1"},
		{"mails that come anyway", 200, "POST $stop", form, "undo=1"},
		{"upload with a receipt", 200, "POST /v1/upload?file=report.pdf&notify=1", pdf, "hello"},
		{"a robot's page", 303, "GET $file", robot + "\n" + page, ""},
		{"a robot's download", 303, "GET $file", robot, ""},
		{"first download, with its receipt", 200, "GET $file", "User-Agent: curl/8", ""},
		{"the receipt of the first download is sent", 0, w.deliver, "", ""},
		{"next download, after its receipt", 200, "GET $file", "User-Agent: curl/8", ""},
		{"upload of two files with a mail each", 200, "POST /v1/upload?m=bob@example.com", parts, part("1") + part("2") + "--b--\r\n"},
		{"upload to another user", 200, "POST /v1/upload?file=x&d=fay", bearer, "hello"},
		{"record of a file that was sent", 200, "GET /v1/files/1?d=fay", bearer, ""},
		{"upload to another user with a key", 200, "POST /v1/upload?file=x&d=fay", bearer + "\nIdempotency-Key: 2", "hello"},
		{"the same to another user", 200, "POST /v1/upload?file=x&d=fay", bearer + "\nIdempotency-Key: 2", "hello"},
		{"upload under a quota", 200, "POST /v1/upload?file=x&d=quentin", bearer, "hello"},
		{"upload under a quota with a key", 200, "POST /v1/upload?file=x&d=quentin", bearer + "\nIdempotency-Key: 3", "hello"},
		{"upload that fails with a key", 400, "POST /v1/upload?file=x&d=nobody", bearer + "\nIdempotency-Key: 4", "hello"},
		{"upload with an unknown bearer", 401, "POST /v1/upload?file=x", "Authorization: Bearer AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQFhbGljZQ", "hello"},

		{"session: begin", 201, "POST /v1/uploads", bearer + typed, `{"name":"film.mp4","length":600000000}`},
		{"session: URLs of 3 parts", 200, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1,2,3]}`},
		{"session: state", 200, "GET /v1/uploads/$session", bearer, ""},
		{"list of one open session", 200, "GET /v1/uploads", bearer, ""},
		{"session: end", 204, "DELETE /v1/uploads/$session", bearer, ""},
		{"session that has ended", 404, "GET /v1/uploads/$session", bearer, ""},
		{"session with a mail", 201, "POST /v1/uploads", bearer + typed, `{"name":"x","length":5,"m":"bob@example.com"}`},
		{"session with a key", 201, "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: 5", `{"name":"x","length":5,` + sha256 + `}`},
		{"the same session", 201, "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: 5", `{"name":"x","length":5,` + sha256 + `}`},
		{"another session with its key", 409, "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: 5", `{"name":"x","length":6}`},
		{"URL of its part", 200, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1]}`},
		{"its part", 200, "PUT $part", "", "hello"},
		{"its part once more", 200, "PUT $part", "", "hello"},
		{"completion with a hash", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"state of a session that is complete", 200, "GET /v1/uploads/$session", bearer, ""},
		{"session that fails with a key", 400, "POST /v1/uploads", bearer + typed + "\nIdempotency-Key: 6", `{"name":"x","length":5,"d":"nobody"}`},
		{"session for another user", 201, "POST /v1/uploads", bearer + typed, `{"name":"x","length":5,"d":"fay"}`},
		{"URL of the other's part", 200, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1]}`},
		{"the other's part", 200, "PUT $part", "", "hello"},
		{"completion for another user", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"that completion once more", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"session beyond a quota", 413, "POST /v1/uploads", bearer + typed, `{"name":"x","length":5000000,"d":"quentin"}`},
		{"session under a quota", 201, "POST /v1/uploads", bearer + typed, `{"name":"x","length":5,"d":"quentin"}`},
		{"session with no room left", 413, "POST /v1/uploads", bearer + typed, `{"name":"x","length":1048563,"d":"quentin"}`},
		{"URL of a part under a quota", 200, "POST /v1/uploads/$session/parts", bearer + typed, `{"numbers":[1]}`},
		{"part under a quota", 200, "PUT $part", "", "hello"},
		{"completion under a quota", 200, "POST /v1/uploads/$session/complete", bearer, ""},
		{"session that is to end, under a quota", 201, "POST /v1/uploads", bearer + typed, `{"name":"x","length":5,"d":"quentin"}`},
		{"end of a session under a quota", 204, "DELETE /v1/uploads/$session", bearer, ""},

		{"list of 100 files", 200, "GET /v1/download/list?limit=100", bearer, ""},
		{"list with a password", 200, "GET /v1/download/list?limit=100", basic("dora"), ""},
		{"delete, to the backup area", 200, "DELETE /v1/files/$id", bearer, ""},
		{"list of 100 files in the backup area", 200, "GET /v1/download/list/backup?limit=100", bearer, ""},
		{"download from the backup area", 200, "GET $file", "User-Agent: curl/8", ""},
		{"restore", 200, "POST /v1/files/$id/restore", bearer, ""},
		{"delete once more", 200, "DELETE /v1/files/$id", bearer, ""},
		{"purge from the backup area", 200, "DELETE /v1/files/$id?area=backup", bearer, ""},
	}
}

// site has the pages that need a login or show what is stored.
func (w *walk) site() []step {
	const (
		browser = page + "\nUser-Agent: Mozilla/5.0 Firefox/143.0"
		known   = browser + "\nCookie: $cookie"
		own     = "\nSec-Fetch-Site: same-origin\n" + form
	)
	return []step{
		{"page: the first one", 303, "GET /", browser, ""},
		{"page: none", 404, "GET /nothing", browser, ""},
		{"page: the account, without a login", 303, "GET /account", browser, ""},
		{"page: login", 200, "GET /login", browser, ""},
		{"a file of all pages", 200, "GET /$asset", browser + "\nAccept-Encoding: gzip", ""},
		{"page: login with a wrong password", 401, "POST /login", browser + own, "user=dora&password=the-wrong-one"},
		{"page: login by a form", 303, "POST /login", browser + own, "user=dora&password=a+password+to+try"},
		{"page: a form of another site", 403, "POST /account", known + "\nSec-Fetch-Site: same-site\n" + form, "do=token&name=x&scope=all"},
		{"page: the account", 200, "GET /account", known, ""},
		{"page: to send", 200, "GET /send", known, ""},
		{"page: the files", 200, "GET /files", known, ""},
		{"page: the requests", 200, "GET /requests", known, ""},
		{"a list for a page", 200, "GET /v1/download/list?limit=1", known, ""},
		{"a file to show", 200, "POST /v1/upload?file=shown.txt", known + "\nSec-Fetch-Site: same-origin", "hello"},
		{"page: what was sent", 200, "GET /send?sent=$id", known, ""},
		{"page: the files, and one of them", 200, "GET /files?id=$id", known, ""},
		{"page: a link", 200, "GET /l?k=$shown", browser, ""},
		{"page: a QR code", 200, "GET /qr?k=$shown", browser, ""},
		{"a bundle to show", 200, "POST /v1/upload?bundle=tree.zip", known + "\nAccept: application/json\nSec-Fetch-Site: same-origin\n" + inForm, part("d/a.txt") + part("c") + "--b--\r\n"},
		{"page: a bundle", 200, "GET /l?k=$tree", browser, ""},
		{"a request to show", 201, "POST /v1/requests", known + "\nSec-Fetch-Site: same-origin" + typed, `{"title":"x"}`},
		{"page: a link, to whoever is logged in", 200, "GET /l?k=$shown", known, ""},
		{"page: the requests, and one of them", 200, "GET /requests?id=$request", known, ""},
		{"page: a request", 200, "GET /r?k=$in", browser, ""},
		{"page: a link that leads nowhere", 401, "GET /l?k=x", browser, ""},
		{"page: a new token", 201, "POST /account", known + own, "do=token&name=build&scope=upload"},
		{"page: the account with a token", 200, "GET /account", known, ""},
		{"page: the mails of an address", 200, "GET /stop?t=$mails", browser, ""},
		{"page: the mails of an address are stopped", 303, "POST /stop", browser + own, "t=$mails"},
		{"page: logout", 303, "POST /logout", known + own, ""},
		{"a list for a page without its login", 401, "GET /v1/download/list", known, ""},
		{"page: who has forgotten a password", 200, "GET /forgot", browser, ""},
		{"page: a forgotten password", 303, "POST /forgot", browser + own, "user=eve"},
		{"the code is sent", 0, w.deliver, "", ""},
		{"page: the code and a new password", 200, "GET /password?k=$reset&u=eve", browser, ""},
		{"page: a new password", 303, "POST /password", browser + own, "k=$reset&user=eve&code=$pin&new=password+of+mine"},
	}
}

func (w *walk) tokens() []step {
	const token = "Authorization: Bearer $token"
	return []step{
		{"another login of bob", 200, "POST /v1/auth/login", basic("bob"), ""},
		{"login of a device", 201, "POST /v1/tokens", basic("bob") + typed, `{"name":"host","scope":"login"}`},
		{"first use of a token in a day", 200, "GET /v1/me", token, ""},
		{"next use of a token", 200, "GET /v1/me", token, ""},
		{"new token", 201, "POST /v1/tokens", token + typed, `{"name":"backup of the office","scope":"upload","expires":"30d"}`},
		{"upload with a token", 200, "POST /v1/upload?file=x", token, "hello"},
		{"a list that the token's scope does not allow", 403, "GET /v1/download/list", token, ""},
		{"a token that a token cannot make", 403, "POST /v1/tokens", token + typed, `{"name":"x","scope":"all"}`},
		{"a token of no scope", 400, "POST /v1/tokens", bearer + typed, `{"name":"x","scope":"x"}`},
		{"list of tokens", 200, "GET /v1/tokens", bearer, ""},
		{"list of tokens, head alone", 200, "HEAD /v1/tokens", bearer, ""},
		{"end of one token", 204, "DELETE /v1/tokens/$tokenID", bearer, ""},
		{"end of it once more", 404, "DELETE /v1/tokens/$tokenID", bearer, ""},
		{"a token that has ended", 401, "GET /v1/uploads", token, ""},
		{"another device", 201, "POST /v1/tokens", bearer + typed, `{"name":"phone","scope":"login"}`},
		{"end of the token by itself", 200, "POST /v1/oauth2/revoke", form, "token=$token"},
		{"new password for a wrong one", 403, "POST /v1/me/password", bearer + typed, `{"old":"the-wrong-one","new":"another password"}`},
		{"new password", 204, "POST /v1/me/password", bearer + typed, `{"old":"a password to try","new":"another password"}`},
		{"a bearer of before the new password", 401, "GET /v1/me", bearer, ""},
		{"end of all tokens", 204, "DELETE /v1/tokens", basicOf("bob", "another password"), ""},
	}
}

func (w *walk) shares() []step {
	const secret = "User-Agent: curl/8\nFerry-Link-Password: open sesame"
	bob := basicOf("bob", "another password")
	return []step{
		{"upload of a file with limits", 200, "POST /v1/upload?file=x&expires=2d&downloads=2&m=carla@example.com", bob + "\n" + secret, "hello"},
		{"a limit that is misspelt", 400, "POST /v1/upload?file=x&download=2", bob, "hello"},
		{"a guarded link without its password", 401, "GET $file", "User-Agent: curl/8", ""},
		{"a guarded link with a wrong password", 401, "GET $file", "User-Agent: curl/8\nFerry-Link-Password: x", ""},
		{"a guarded link's page", 303, "GET $file", page + "\nUser-Agent: Slackbot 1.0", ""},
		{"a guarded link with its password", 302, "GET $file", secret, ""},
		{"first download by a claim", 200, "GET $claim", "User-Agent: curl/8", ""},
		{"next download by a claim", 206, "GET $claim", "User-Agent: curl/8\nRange: bytes=1-2", ""},
		{"what a page needs to know", 200, "GET $claim&about", "User-Agent: curl/8", ""},
		{"a wrong claim", 401, "GET $file&claim=x", "User-Agent: curl/8", ""},
		{"one more link", 201, "POST /v1/files/$id/links", bob + typed, `{"downloads":1}`},
		{"one more link, by mail", 201, "POST /v1/files/$id/links", bob + typed, `{"m":"dan@example.com","i":"have a look"}`},
		{"a file with several links", 200, "GET /v1/files/$id", bob, ""},
		{"a link gets other limits", 200, "PATCH /v1/files/$id/links/own", bob + typed, `{"downloads":5,"password":""}`},
		{"a link is ended", 200, "DELETE /v1/files/$id/links/own", bob, ""},
		{"no such link", 404, "DELETE /v1/files/$id/links/x", bob, ""},
		{"a link that was ended", 401, "GET $file", "User-Agent: curl/8", ""},
		{"a link is made anew", 200, "POST /v1/files/$id/links/own/renew", bob, ""},
		{"a file gets another name and expiry", 200, "PATCH /v1/files/$id", bob + typed, `{"name":"y.txt","expires":"3d"}`},
		{"upload of a bundle", 200, "POST /v1/upload?bundle=b.zip", bob + "\nContent-Type: multipart/form-data; boundary=b", part("d/a.txt") + part("c") + "--b--\r\n"},
		{"a bundle's entries", 200, "GET $file&entries", "User-Agent: curl/8", ""},
		{"download of an entry", 200, "GET $file&entry=d/a.txt", "User-Agent: curl/8", ""},
		{"no such entry", 404, "GET $file&entry=x", "User-Agent: curl/8", ""},
		{"files by their name", 200, "GET /v1/download/list?search=Y.T&limit=5", bob, ""},
	}
}

func (w *walk) requests() []step {
	const guest, plan = "Ferry-Guest: $guest", `{"name":"film.mp4","length":5,"by":"Carla"}`
	const inParts = "Authorization: Bearer $in\nFerry-Guest: $guest"
	bob := basicOf("bob", "another password")
	return []step{
		{"a request that is misspelt", 400, "POST /v1/requests", bob + typed, `{"file":9}`},
		{"a request", 201, "POST /v1/requests", bob + typed, `{"title":"Photos","message":"All of them","expires":"7d","files":9,"bytes":1000,"notify":true}`},
		{"list of requests", 200, "GET /v1/requests", bob, ""},
		{"list of requests, head alone", 200, "HEAD /v1/requests", bob, ""},
		{"what a guest sees", 200, "GET $asked", "", ""},
		{"what a guest sees, head alone", 200, "HEAD $asked", "", ""},
		{"the page of a request", 303, "GET $asked", page, ""},
		{"a wrong token of a request", 401, "GET /v1/requests/in?k=in_x", "", ""},
		{"a guest's file", 200, "PUT $asked&file=a.jpg&by=Carla", guest, "hello"},
		{"a guest's next file", 200, "PUT $asked&file=b.jpg", guest, "hello"},
		{"what this guest has sent", 200, "GET $asked", guest, ""},
		{"a guest's form", 200, "POST $asked", guest + "\nContent-Type: multipart/form-data; boundary=b", part("c.txt") + "--b--\r\n"},
		{"a guest's form on a page", 303, "POST $asked", page + "\n" + guest + "\nContent-Type: multipart/form-data; boundary=b", part("d.txt") + "--b--\r\n"},
		{"a guest's bundle", 200, "POST $asked&bundle=b.zip", guest + "\nContent-Type: multipart/form-data; boundary=b", part("d/a.txt") + "--b--\r\n"},
		{"a guest who wants more", 400, "PUT $asked&file=a&m=dan@example.com", guest, "hello"},
		{"a guest's session", 201, "POST /v1/uploads", inParts + typed, plan},
		{"a guest's session that wants more", 400, "POST /v1/uploads", inParts + typed, `{"name":"a","length":5,"m":"dan@example.com"}`},
		{"where a guest's part goes", 200, "POST /v1/uploads/$session/parts", inParts + typed, `{"numbers":[1]}`},
		{"a guest's part", 200, "PUT $part", "", "hello"},
		{"a guest's session is complete", 200, "POST /v1/uploads/$session/complete", inParts, ""},
		{"a guest's list", 401, "GET /v1/download/list", inParts, ""},
		{"what guests have sent", 200, "GET /v1/download/list?limit=2", bob, ""},
		{"what a guest has sent", 200, "GET /v1/files/$id", bob, ""},
		{"ten minutes for more to arrive", 0, 10 * time.Minute, "", ""},
		{"the maker is told what has arrived", 0, w.deliver, "", ""},
		{"a request takes less", 200, "PATCH /v1/requests/$request", bob + typed, `{"files":2,"password":"open sesame"}`},
		{"a protected request", 401, "GET $asked", guest, ""},
		{"a request that is full", 403, "PUT $asked&file=c", "Ferry-Link-Password: open sesame", "hello"},
		{"end of a request", 204, "DELETE /v1/requests/$request", bob, ""},
		{"no such request", 404, "PATCH /v1/requests/$request", bob + typed, "{}"},
		{"a request that has ended", 401, "PUT $asked&file=c", guest, "hello"},
	}
}

func (w *walk) addMore() {
	w.AddUser("dora", password)
	w.AddUser("eve", password)
	w.AddUser("fay", password, func(u *auth.User) { u.State = auth.FirstAccess })
	w.AddUser("quentin", password, func(u *auth.User) { u.Quota = 1 << 20 })
	if w.crowd != nil {
		w.crowd()
	}
}
