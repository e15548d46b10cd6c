package account_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

// beginFirst returns ann, and the credential of new, who has a temporary password.
func beginFirst(t *testing.T) (ann apitest.Caller, temporary string) {
	t.Helper()
	c := apitest.Begin(t)
	c.AddUser("new", apitest.Password, func(u *auth.User) { u.State, u.Lang = auth.FirstAccess, "de" })
	return c, apitest.Basic("new", apitest.Password)
}

func TestOnlyNewUsersHaveFirstAccess(t *testing.T) {
	t.Parallel()
	c, _ := beginFirst(t)
	c.AddUser("off", apitest.Password, func(u *auth.User) { u.State = auth.Disabled })
	for _, name := range []string{"new", "NEW"} {
		e := c.Send("POST /auth/first", "", "Authorization", apitest.Basic(name, apitest.Password)).Want(200)
		if e.User != "new" || !strings.HasPrefix(e.LinkURL, c.Base+"/auth/change?lang=de&k=") {
			t.Errorf("%s: the answer is %s", name, e.Text)
		}
	}
	for credential, status := range map[string]int{
		apitest.Basic("new", "wrong"): 401, apitest.Basic("nobody", apitest.Password): 401, apitest.Basic("off", apitest.Password): 401,
		apitest.Basic("ann", apitest.Password): 403, "Bearer " + c.Bearer: 401, "": 401,
	} {
		c.Send("POST /auth/first", "", "Authorization", credential).Want(status)
	}
}

func TestTemporaryPasswordWorksOnlyForFirstAccess(t *testing.T) {
	t.Parallel()
	c, temporary := beginFirst(t)
	for _, request := range []string{
		"POST /auth/login", "GET /download/list", "GET /download/list/backup", "POST /upload?file=x", "DELETE /files/1", "POST /files/1/restore", "GET /me",
	} {
		c.Send(request, "", "Authorization", temporary).Want(401, "/auth/first")
	}
	c.Send("POST /oauth2/token", passwordGrant("new", apitest.Password), "Content-Type", urlencoded).Want(401)
}
