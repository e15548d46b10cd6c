package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/api/apitest"
	"ferry/shared/auth"
)

const password = "a password to try"

// The texts of the interface specification, to the letter: each response's
// fields, their order and their texts. What varies is written as a pattern.
const (
	moment   = `"time":"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})? [+-]\d{4} \S+ m=\+\d+\.\d{9}"`
	head     = `"apiver":"v1 \(3\.6\.0\)"`
	token    = `[A-Za-z0-9_-]{43}`
	bearerRE = `[A-Za-z0-9_-]{40,}`
)

func failure(status int, phrase string) string {
	return fmt.Sprintf(`\{"status":%d,"description":"%s",%s,%s\}\n`, status, phrase, head, moment)
}

func success(text, rest string) string {
	return fmt.Sprintf(`\{"status":0,"description":"%s",%s,%s,%s\}\n`, text, head, rest, moment)
}

func record(base, id, name, length, path, param string) string {
	return fmt.Sprintf(`\{"id":%s,"name":"%s","length":%s,"modified":\d{13},"linkURL":"%s/%s\?lang=en&%s=%s"\}`, id, name, length, base, path, param, token)
}

func TestResponsesAreThoseOfTheSpecificationToTheLetter(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	s.AddUser("new", password, func(u *auth.User) { u.State = auth.FirstAccess })
	s.AddUser("gone", password, func(u *auth.User) { u.State = auth.Disabled })
	basic := apitest.Basic("alice", password)
	bearer := "Bearer " + s.Login("alice", password)
	base := regexp.QuoteMeta(s.Base)
	change := `"user":"%s","linkURL":"` + base + `/auth/change\?lang=en&k=` + token + `"`
	file := record(base, "1", `é & \\"x\\"\.txt`, "5", "download/file", "k")
	list := success("handlerDownloadList:succsessfully", `"user":"alice","files":\[`+file+`\]`)
	backup := success("handlerDownloadList:succsessfully", `"user":"alice","files":\[`+record(base, "1", `é & \\"x\\"\.txt`, "5", "download/file/backup", "z")+`\]`)
	empty := success("handlerDownloadList:succsessfully", `"user":"alice","files":\[\]`)
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		what, method, path, auth, kind, body string
		status                               int
		want                                 string
	}{
		{"an empty list", "GET", "/download/list", basic, "", "", 200, empty},
		{"an upload", "POST", "/upload?file=%C3%A9+%26+%22x%22.txt", bearer, "text/plain", "hello", 200, list},
		{"a list", "GET", "/download/list", bearer, "", "", 200, list},
		{"the backup list", "GET", "/download/list/backup", basic, "", "", 200, empty},
		{"a deletion", "DELETE", "/files/1", bearer, "", "", 200, backup},
		{"the backup list with a file", "GET", "/download/list/backup", basic, "", "", 200, backup},
		{"a restoration", "POST", "/files/1/restore", bearer, "", "", 200, list},
		{"a login", "POST", "/auth/login", basic, "application/json", "", 200, success("handlerAuthLogin:succsessfully", `"user":"alice","bearer":"`+bearerRE+`"`)},
		{"forget", "GET", "/auth/forget?u=Alice", "", "application/json", "", 200, success("handlerAuthForget:succsessfully", fmt.Sprintf(change, "alice"))},
		{"first access", "POST", "/auth/first", apitest.Basic("new", password), "", "", 200, success("handlerAuthFirst:succsessfully", fmt.Sprintf(change, "new"))},
		{"health", "GET", "/health", "", "", "", 200, fmt.Sprintf(`\{"status":0,"description":"handlerHealth:succsessfully",%s,%s\}\n`, head, moment)},
		{"mails that end", "POST", auth.StopLink("", "en", s.Data.Ports.Key.Stop("ann@example.com")), "", "", "", 200, fmt.Sprintf(`\{"status":0,"description":"handlerNotificationsStop:succsessfully",%s,%s\}\n`, head, moment)},
		{"a wrong password", "POST", "/auth/login", apitest.Basic("alice", "x"), "", "", 401, failure(401, "Unauthorized")},
		{"no parameter", "GET", "/auth/forget", "", "", "", 400, failure(400, "Bad Request")},
		{"a user who is disabled", "GET", "/auth/forget?u=gone", "", "", "", 403, failure(403, "Forbidden")},
		{"a user beyond first access", "POST", "/auth/first", basic, "", "", 403, failure(403, "Forbidden")},
		{"no such file", "DELETE", "/files/7", basic, "", "", 404, failure(404, "Not Found")},
		{"no such path", "GET", "/nothing", "", "", "", 404, failure(404, "Not Found")},
		{"another method", "PATCH", "/upload", "", "", "", 405, failure(405, "Method Not Allowed")},
		{"a download without token", "GET", "/download/file", "", "", "", 400, failure(400, "Bad Request")},
		{"a download with a wrong one", "GET", "/download/file/backup?z=x", "", "", "", 401, failure(401, "Unauthorized")},
		{"a token", "POST", "/oauth2/token", "", form, "grant_type=password&username=alice&password=a+password+to+try", 200,
			`\{"access_token":"` + bearerRE + `","token_type":"Bearer","expires_in":3600,"scope":"` + base + `"\}\n`},
		{"a token for a wrong password", "POST", "/oauth2/token", "", form, "grant_type=password&username=alice&password=x", 401,
			`\{"error":401,"error_description":"Unauthorized","error_uri":"` + base + `"\}\n`},
		{"a token of another grant", "POST", "/oauth2/token", "", form, "grant_type=refresh_token", 400,
			`\{"error":400,"error_description":"Bad Request","error_uri":"` + base + `"\}\n`},
	} {
		headers := []string{"Content-Type", c.kind}
		if c.auth != "" {
			headers = append(headers, "Authorization", c.auth)
		}
		resp := s.Request(c.method, c.path, strings.NewReader(c.body), headers...)
		got := s.Text(resp)
		if resp.StatusCode != c.status || !regexp.MustCompile("^"+c.want+"$").MatchString(got) {
			t.Errorf("%s is answered with %d\n%s, want %d\n%s", c.what, resp.StatusCode, got, c.status, c.want)
		}
	}
}

func TestTroubleOfTheServicesOwnIsAnsweredWithoutItsText(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	s.Calls.Before("table.GetMany", func() error { return fmt.Errorf("the secret text") })
	resp := s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", password))
	body := s.Text(resp)
	if resp.StatusCode != 500 || !regexp.MustCompile("^"+failure(500, "Internal Server Error")+"$").MatchString(body) {
		t.Errorf("the login is answered with %d %s", resp.StatusCode, body)
	}
	if all := fmt.Sprint(body, resp.Header); strings.Contains(all, "secret") {
		t.Errorf("the answer tells the error: %s", all)
	}
	if resp.Header.Get("Ferry-Error") != "" {
		t.Errorf("Ferry-Error is %q", resp.Header.Get("Ferry-Error"))
	}
	if !strings.Contains(s.Log.String(), "the secret text") || !strings.Contains(s.Log.String(), resp.Header.Get("X-Request-Id")) {
		t.Error("the log lacks the error or the request's id")
	}
	resp = s.Request("POST", "/oauth2/token", strings.NewReader("grant_type=password&username=alice&password=x"), "Content-Type", "application/x-www-form-urlencoded")
	want := `{"error":500,"error_description":"Internal server error","error_uri":"` + s.Base + `"}` + "\n"
	if body := s.Text(resp); resp.StatusCode != 500 || body != want {
		t.Errorf("the token endpoint answers %d %s, want %s", resp.StatusCode, body, want)
	}
}

func TestTheTokenEndpointHasTheHeadersOfTheSpecification(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	for body, status := range map[string]int{
		"grant_type=password&username=alice&password=a+password+to+try": 200,
		"grant_type=password&username=alice&password=wrong":             401,
		"grant_type=none": 400,
	} {
		resp := s.Request("POST", "/oauth2/token", strings.NewReader(body), "Content-Type", "application/x-www-form-urlencoded")
		for name, want := range map[string]string{
			"Content-Type": "application/json;charset=UTF-8", "Cache-Control": "no-store", "Pragma": "no-cache",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("with status %d %s is %q, want %q", status, name, got, want)
			}
		}
		if resp.StatusCode != status {
			t.Errorf("status %d, want %d", resp.StatusCode, status)
		}
		if has := len(resp.Header.Values("WWW-Authenticate")) > 0; has != (status == 401) {
			t.Errorf("with status %d WWW-Authenticate is there: %v", status, has)
		}
	}
}

func TestTheLogTellsNoSecret(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	link := s.Put(bearer, "file=x&i=the-message&m=bob@example.com", "hello").Files[0].LinkURL
	s.Request("GET", strings.TrimPrefix(link, s.Base), nil)
	change := s.Decode(s.Request("GET", "/auth/forget?u=alice", nil), 200).LinkURL
	s.Deliver()
	messages, err := s.Service.Inbox.List(t.Context(), 2)
	if err != nil || len(messages) != 2 {
		t.Fatalf("the inbox has %d messages, %v", len(messages), err)
	}
	code := pin(t, messages[0].Text)
	s.Request("POST", strings.TrimPrefix(change, s.Base)+"&p="+code+"&z=a+new+password", nil)
	s.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic("alice", "the-wrong-one"))
	s.Request("POST", "/oauth2/token", strings.NewReader("grant_type=password&username=alice&password=the-wrong-one%zz"), "Content-Type", "application/x-www-form-urlencoded")
	s.Request("GET", "/download/file?k=%zz-the-wrong-one", nil)
	if n := strings.Count(s.Log.String(), "msg=request"); n < 8 {
		t.Fatalf("the log has %d requests:\n%s", n, s.Log)
	}
	_, linkToken, _ := strings.Cut(link, "k=")
	_, changeToken, _ := strings.Cut(change, "k=")
	for what, secret := range map[string]string{
		"a password": password, "a new password": "a+new+password", "a wrong password": "the-wrong-one", "a bearer": bearer,
		"a download token": linkToken, "a change token": changeToken, "a PIN": code, "a query": "u=alice", "a message": "the-message",
		"a credential": strings.TrimPrefix(apitest.Basic("alice", password), "Basic "), "a piece of a form": "%zz",
	} {
		if strings.Contains(s.Log.String(), secret) {
			t.Errorf("the log holds %s:\n%s", what, s.Log)
		}
	}
}

func TestEachResponseIsLabelled(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	seen := map[string]bool{}
	for range 3 {
		resp := s.Request("GET", "/health", nil)
		id := resp.Header.Get("X-Request-Id")
		if len(id) < 8 || seen[id] {
			t.Errorf("the request's id is %q", id)
		}
		seen[id] = true
		for name, want := range map[string]string{"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	if resp := s.Request("DELETE", "/upload", nil); resp.Header.Get("Allow") != "POST, PUT" {
		t.Errorf("Allow is %q", resp.Header.Get("Allow"))
	}
	if resp, err := s.Client().Get(s.Root + "/v2/upload"); err != nil || resp.StatusCode != http.StatusNotFound || resp.Header.Get("Ferry-Error") == "" {
		t.Errorf("another version: %+v, %v", resp, err)
	}
}

func TestHEADHasTheHeadersOfGET(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	for _, path := range []string{"/health", "/openapi.json", "/download/list", "/download/list/backup", "/download/file?k=x", "/nothing"} {
		get := s.Request("GET", path, nil, "Authorization", apitest.Basic("alice", password))
		head := s.Request("HEAD", path, nil, "Authorization", apitest.Basic("alice", password))
		if body := s.Text(head); head.StatusCode != get.StatusCode || body != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s is answered with %d, %q, %v; GET with %d", path, head.StatusCode, body, head.Header, get.StatusCode)
		}
	}
}
