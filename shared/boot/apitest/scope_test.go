package apitest_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/identity"
)

// scopes says which scopes may use a route; anybody is one that checks no login.
var scopes = map[string]string{
	"GET /auth/change": "anybody", "POST /auth/change": "anybody", "POST /auth/first": "anybody", "GET /auth/forget": "anybody", "POST /auth/login": "anybody",
	"GET /download/file": "anybody", "HEAD /download/file": "anybody",
	"GET /download/file/backup": "anybody", "HEAD /download/file/backup": "anybody",
	"GET /health": "anybody", "HEAD /health": "anybody", "GET /openapi.json": "anybody", "HEAD /openapi.json": "anybody",
	"GET /notifications/stop": "anybody", "POST /notifications/stop": "anybody",
	"POST /oauth2/revoke": "anybody", "POST /oauth2/token": "anybody",

	"GET /download/list": "download all login", "HEAD /download/list": "download all login",
	"GET /download/list/backup": "download all login", "HEAD /download/list/backup": "download all login",
	"GET /files/{id}": "download all login", "HEAD /files/{id}": "download all login", "GET /me": "download all login",

	"POST /upload": "upload all login", "PUT /upload": "upload all login", "PUT /upload/{name}": "upload all login",
	"POST /uploads": "upload all login", "GET /uploads": "upload all login", "HEAD /uploads": "upload all login",
	"GET /uploads/{id}": "upload all login", "HEAD /uploads/{id}": "upload all login", "DELETE /uploads/{id}": "upload all login",
	"POST /uploads/{id}/parts": "upload all login", "POST /uploads/{id}/complete": "upload all login",

	"PATCH /files/{id}": "all login", "POST /files/{id}/links": "all login", "PATCH /files/{id}/links/{n}": "all login",
	"DELETE /files/{id}/links/{n}": "all login", "POST /files/{id}/links/own/renew": "all login",
	"DELETE /files/{id}": "all login", "POST /files/{id}/restore": "all login",
	"GET /tokens": "all login", "HEAD /tokens": "all login", "DELETE /tokens": "all login", "DELETE /tokens/{id}": "all login",

	"POST /requests": "all login", "GET /requests": "all login", "HEAD /requests": "all login",
	"PATCH /requests/{id}": "all login", "DELETE /requests/{id}": "all login",
	"GET /requests/in": "anybody", "HEAD /requests/in": "anybody", "POST /requests/in": "anybody", "PUT /requests/in": "anybody",

	"POST /tokens": "login", "POST /me/password": "login",
}

func TestEachScopeAllowsItsRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.InProcess("it makes tokens in the table")
	seen := map[string]bool{}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			if e.Prefix == "" { // a page asks the interface
				continue
			}
			route := r.Method + " " + r.Path
			seen[route] = true
			allowed, known := scopes[route]
			if !known {
				t.Errorf("%s is not in the table of this test", route)
				continue
			}
			for _, scope := range identity.Scopes() {
				u, err := c.Users.Get(t.Context(), "ann")
				expect.NoErr(t, err)
				token, _, err := c.Service.Tokens().Make(t.Context(), u, identity.APIToken{Name: "a", Scope: scope})
				expect.NoErr(t, err)
				a := c.Send(strings.NewReplacer("{id}", "1", "{name}", "a", "{n}", "own").Replace(route), "", "Authorization", "Bearer "+token)
				want := allowed == "anybody" || strings.Contains(allowed, string(scope))
				if refused := a.Code == 403; refused == want {
					t.Errorf("with the scope %s, %s: status %d (%s)", scope, route, a.Code, a.Header.Get("Ferry-Error"))
				}
				if a.Code == 401 && allowed != "anybody" {
					t.Errorf("with the scope %s, %s: the token is refused", scope, route)
				}
				expect.NoErr(t, c.Service.Tokens().Revoke(t.Context(), token))
			}
		}
	}
	for route := range scopes {
		if !seen[route] {
			t.Errorf("%s does not exist", route)
		}
	}
}
