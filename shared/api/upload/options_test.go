package upload_test

import (
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

func TestAFormsPasswordProtectsTheLinksOfItsFiles(t *testing.T) {
	t.Parallel()
	c := begin(t)
	password := formPart{disposition: `name="password"`, content: "open sesame"}
	for what, parts := range map[string][]formPart{
		"before": append([]formPart{password}, someFiles("a", "b")...),
		"after":  append(someFiles("c", "d"), password),
	} {
		for _, f := range c.form("", parts).Want(200).Files[:2] {
			c.Send("GET "+f.LinkURL, "").Want(401, "password")
			if a := c.Send("GET "+f.LinkURL, "", "Ferry-Link-Password", "open sesame"); a.Code != 302 {
				t.Errorf("%s the files: status %d", what, a.Code)
			}
		}
	}
	empty := formPart{disposition: `name="password"`}
	open := c.form("", append(someFiles("e"), empty)).Want(200).File()
	apitest.Equal(t, "the bytes", c.Get(open.LinkURL), "e")
}

func TestAFormRefusesWhatMayBeALimit(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for _, name := range []string{"downloads", "expires", "expire", "pasword", "Password"} {
		field := formPart{disposition: `name="` + name + `"`, content: "3"}
		c.form("", append(someFiles("a"), field)).Want(400).WantHeaders("Ferry-Parameter", name)
	}
	long := formPart{disposition: `name="password"`, content: strings.Repeat("é", 129)}
	c.form("", append(someFiles("a"), long)).Want(400, "128 characters")
	c.wantNothing("a form that is refused")
	other := formPart{disposition: `name="comment"`, content: "3"}
	c.form("", append(someFiles("a"), other)).Want(200)
}

func TestAnAddressThatMayHaveALimitIsRefused(t *testing.T) {
	t.Parallel()
	c := begin(t)
	for query, want := range map[string]int{
		"download=1": 400, "Downloads=1": 400, "expiry=7d": 400, "expires=": 400, "downloads=": 400,
		"password=x": 400, "pasword=x": 400, "notify2=1": 400,
		"exp=1": 200, "description=1": 200, "x=y": 200,
	} {
		if a := c.post("file=a&"+query, "1"); a.Code != want {
			t.Errorf("%s: status %d, want %d", query, a.Code, want)
		}
	}
	c.Ask("POST /uploads?downloads=3", `{"name":"a","length":1}`).Want(400, "downloads")
	c.Ask("GET /uploads?limits=3", "").Want(400, "limits")
	c.Ask("GET /tokens?x=3", "").Want(400, "x")
}
