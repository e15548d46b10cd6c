package local_test

import (
	"regexp"
	"testing"

	"ferry/shared/api/file"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
)

func TestANewUserWithAnOldNameGetsNothingOfTheOldUser(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	change := c.Send("GET /auth/forget?u=ann", "").Want(200).LinkURL
	link := c.Upload("file=a", "one").LinkURL
	c.Deliver()
	messages, err := c.Service.Inbox.List(t.Context(), 1)
	check(t, err)
	pin := regexp.MustCompile(`\b[0-9]{8}\b`).FindString(messages[0].Text)

	check(t, c.Users.Disable(t.Context(), "ann"))
	_, err = file.Service(c.Data.Ports).RemoveAll(t.Context(), "ann")
	check(t, err)
	check(t, c.Users.Remove(t.Context(), "ann"))
	old := apitest.Basic("ann", password)
	c.Send("POST /auth/login", "", "Authorization", old).Want(401)

	c.AddUser("ann", "a password of her own", func(u *auth.User) { u.Email = "another@example.com" })
	c.Ask("GET /download/list", "").Want(401)
	c.Send("GET "+link, "").Want(401)
	c.Send("POST "+change+"&p="+pin+"&z=taken+over+by+the+old", "").Want(401)
	c.Send("POST /auth/login", "", "Authorization", old).Want(401)
	next := apitest.Caller{Server: c.Server, Bearer: c.Login("ann", "a password of her own")}
	apitest.Equal(t, "the id of her first file", next.Upload("file=b", "two").ID, 2)
}
