package web_test

import (
	"strings"
	"testing"

	"ferry/shared/auth"
)

func TestTheRequestsPageShowsWhatWasAskedForAndHasArrived(t *testing.T) {
	t.Parallel()
	v := visit(t).login("ann")
	v.opens("requests", 200, "No requests yet", "A request is a link through which people without an account")
	made, _ := v.request(`{"title":"<b>Photos","message":"</p>all","files":7,"bytes":2000000000,"expires":"7d","password":"open sesame"}`)
	v.opens("requests?made="+made.ID, 200, "Your request is ready: <bdi>&lt;b&gt;Photos</bdi>",
		`value="`+strings.ReplaceAll(made.LinkURL, "&", "&amp;")+`" readonly`, "-<b>Photos", "&lt;/p&gt;all", "7 of 7 files left",
		"2 GB of 2 GB left", "with a password", "Nothing has arrived yet", "state good")
	v.Ask("PATCH /requests/"+made.ID, `{"password":"","files":3}`).Want(200)
	for _, name := range []string{"a.jpg", "b.mp4", "c.txt"} {
		v.Send("PUT "+made.LinkURL+"&file="+name+"&by=%3Ci%3ETom", "x", "User-Agent", "curl/8").Want(200)
	}
	v.opens("requests", 200, "3 files, 3 B arrived", "a.jpg", `href="files?id=1"`, "from <bdi>&lt;i&gt;Tom</bdi>", "Full",
		"files?request="+made.ID, "-Your request is ready")
	v.another(desk).login("bob").opens("requests", 200, "No requests yet")
}

func TestARequestIsMadeAndChangedByAForm(t *testing.T) {
	t.Parallel()
	v := visit(t).login("ann")
	v.opens("requests?new=1", 200, `data-call="POST v1/requests?lang=en"`, `data-then="requests?made={id}"`,
		"Mail me when files arrive", `value="100"`, `data-unit="1000000000"`)
	made, _ := v.request(`{"title":"x","bytes":1500000000,"password":"open sesame"}`)
	v.opens("requests?id="+made.ID, 200, `data-call="PATCH v1/requests/`+made.ID, `value="1.5"`, "Remove the password")
	v.open("requests?id=x").Want(404)
	v.another(desk).login("bob").open("requests?id=" + made.ID).Want(404)
	v.Add("eve", func(u *auth.User) { u.Email = "" })
	v.another(desk).login("eve").opens("requests?new=1", 200, "-Mail me")
}
