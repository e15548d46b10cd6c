package apitest_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/identity"
)

// scopes says which scopes may use a route, before the paths of these routes with their methods; anybody is
// one that checks no login.
const scopes = `
anybody
  /auth/change GET POST
  /auth/first POST
  /auth/forget GET
  /auth/login POST
  /download/file GET HEAD
  /download/file/backup GET HEAD
  /health GET HEAD
  /openapi.json GET HEAD
  /notifications/stop GET POST
  /oauth2/revoke POST
  /oauth2/token POST
  /requests/in GET HEAD POST PUT
download all login
  /download/list GET HEAD
  /download/list/backup GET HEAD
  /files/{id} GET HEAD
  /me GET
upload all login
  /upload POST PUT
  /upload/{name} PUT
  /uploads POST GET HEAD
  /uploads/{id} GET HEAD DELETE
  /uploads/{id}/parts POST
  /uploads/{id}/complete POST
all login
  /files/{id} PATCH DELETE
  /files/{id}/links POST
  /files/{id}/links/{n} PATCH DELETE
  /files/{id}/links/own/renew POST
  /files/{id}/restore POST
  /tokens GET HEAD DELETE
  /tokens/{id} DELETE
  /requests POST GET HEAD
  /requests/{id} PATCH DELETE
login
  /tokens POST
  /me/password POST
`

// allowing returns the scopes by the routes.
func allowing() map[string]string {
	all, allowed := map[string]string{}, ""
	for line := range strings.SplitSeq(strings.TrimSpace(scopes), "\n") {
		route, isRoute := strings.CutPrefix(line, "  ")
		if !isRoute {
			allowed = line
			continue
		}
		path, methods, _ := strings.Cut(route, " ")
		for _, method := range strings.Fields(methods) {
			all[method+" "+path] = allowed
		}
	}
	return all
}

func TestEachScopeAllowsItsRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	c.InProcess("it makes tokens in the table")
	scopes, seen := allowing(), map[string]bool{}
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
				a := c.Send(strings.NewReplacer("{id}", "1", "{name}", "a", "{n}", "own").
					Replace(route), "", "Authorization", "Bearer "+token)
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
