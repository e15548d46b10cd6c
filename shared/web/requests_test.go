package web_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/wire"
)

func TestTheRequestsPageShowsWhatWasAskedForAndHasArrived(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	wantTexts(t, s.page("requests", "Cookie", cookie).Want(200), "No requests yet",
		"A request is a link through which people without an account")
	made := apitest.Read[wire.Request](s.Ask("POST /requests",
		`{"title":"<b>Photos","message":"</p>all",
		"files":7,"bytes":2000000000,"expires":"7d","password":"open sesame"}`).Want(201))
	a := s.page("requests?made="+made.ID, "Cookie", cookie).Want(200)
	wantTexts(t, a, "Your request is ready: <bdi>&lt;b&gt;Photos</bdi>", `value="`+strings.ReplaceAll(made.LinkURL,
		"&", "&amp;")+`" readonly`,
		"-<b>Photos", "&lt;/p&gt;all", "7 of 7 files left", "2 GB of 2 GB left", "with a password",
		"Nothing has arrived yet", "state good")
	s.Ask("PATCH /requests/"+made.ID, `{"password":"","files":3}`).Want(200)
	for _, name := range []string{"a.jpg", "b.mp4", "c.txt"} {
		s.Send("PUT "+made.LinkURL+"&file="+name+"&by=%3Ci%3ETom", "x", "User-Agent", "curl/8").Want(200)
	}
	a = s.page("requests", "Cookie", cookie).Want(200)
	wantTexts(t, a, "3 files, 3 B arrived", "a.jpg", `href="files?id=1"`, "from <bdi>&lt;i&gt;Tom</bdi>", "Full",
		"files?request="+made.ID, "-Your request is ready")
	wantTexts(t, s.page("requests", "Cookie", s.cookie("bob")).Want(200), "No requests yet")
}

func TestARequestIsMadeAndChangedByAForm(t *testing.T) {
	t.Parallel()
	s := begin(t)
	cookie := s.cookie("ann")
	wantTexts(t, s.page("requests?new=1", "Cookie", cookie).Want(200), `data-call="POST v1/requests?lang=en"`,
		`data-then="requests?made={id}"`,
		"Mail me when files arrive", `value="100"`, `data-unit="1000000000"`)
	made := apitest.Read[wire.Request](s.Ask("POST /requests",
		`{"title":"x","bytes":1500000000,"password":"open sesame"}`).Want(201))
	wantTexts(t, s.page("requests?id="+made.ID, "Cookie", cookie).Want(200), `data-call="PATCH v1/requests/`+made.ID,
		`value="1.5"`, "Remove the password")
	s.page("requests?id=x", "Cookie", cookie).Want(404)
	s.page("requests?id="+made.ID, "Cookie", s.cookie("bob")).Want(404)
	s.Add("eve", func(u *auth.User) { u.Email = "" })
	wantTexts(t, s.page("requests?new=1", "Cookie", s.cookie("eve")).Want(200), "-Mail me")
}
