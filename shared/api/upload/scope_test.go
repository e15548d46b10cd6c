package upload_test

import (
	"fmt"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/wire"
)

// withToken returns the caller with a token of a scope.
func (c caller) withToken(scope string) caller {
	c.Helper()
	body := fmt.Sprintf(`{"name":"a program","scope":%q}`, scope)
	made := apitest.Read[wire.Token](c.Ask("POST /tokens", body).Want(201))
	c.Bearer = made.Token
	return c
}

func TestATokenThatMayOnlyUploadSeesOnlyWhatItStores(t *testing.T) {
	t.Parallel()
	ann := begin(t)
	ann.post("file=private.txt", "1").Want(200)
	send := func(program caller) []apitest.File {
		return program.post("file=once", "content", "Idempotency-Key", "k-1").Want(200).Files
	}
	program := ann.withToken("upload")
	first, other := send(program), send(ann.withToken("upload"))
	if len(first) != 1 || len(other) != 1 || first[0].Name != "once" || other[0].ID == first[0].ID {
		t.Errorf("two tokens with the same key get %v and %v", first, other)
	}
	expect.Equal(t, "the repeat", send(program), first)
	expect.Equal(t, "files that a token for all sees", len(send(ann.withToken("all"))), 4)
}

func TestATokenThatMayOnlyUploadUsesOnlyTheSessionsThatItBegan(t *testing.T) {
	t.Parallel()
	ann := begin(t)
	program, all := ann.withToken("upload"), ann.withToken("all")
	mine, theirs := program.plan("", 5), ann.plan("", 5)
	for _, request := range []string{"GET %s", "DELETE %s", "POST %s/complete"} {
		program.Ask(fmt.Sprintf(request, theirs.path("")), "").Want(403, "another login")
	}
	program.Ask("POST "+theirs.path("/parts"), `{"numbers":[1]}`).Want(403, "another login")
	ann.withToken("upload").Ask("GET "+mine.path(""), "").Want(403)
	type list struct{ Uploads []session }
	for what, k := range map[string]struct {
		caller
		want int
	}{
		"the token":       {program, 1},
		"another":         {ann.withToken("upload"), 0},
		"the user":        {ann, 2},
		"a token for all": {all, 2},
	} {
		if got := apitest.Read[list](k.Ask("GET /uploads", "").Want(200)); len(got.Uploads) != k.want {
			t.Errorf("%s sees %+v", what, got.Uploads)
		}
	}
	ann.post("file=private.txt", "1").Want(200)
	program.sendAll(mine, "12345")
	done := program.Ask("POST "+mine.path("/complete"), "").Want(200)
	if len(done.Files) != 1 || done.Files[0].Name != "film.mp4" {
		t.Errorf("the answer has %v", done.Files)
	}
	all.Ask("DELETE "+theirs.path(""), "").Want(204)
}
