package web_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/users"
)

func TestTheRequestsPageShowsWhatWasAskedForAndHasArrived(t *testing.T) {
	v := visit(t).login("ann")
	v.opens("requests", 200, "No requests yet", "A request is a link through which people without an account")
	made, _ := v.request(`{"title":"<b>Photos","message":"</p>all","files":7,"bytes":2000000000,"expires":"7d","password":"open sesame"}`)
	v.opens("requests?made="+made.ID, 200, "Your request is ready: <bdi>&lt;b&gt;Photos</bdi>",
		`value="`+strings.ReplaceAll(
			made.LinkURL,
			"&",
			"&amp;",
		)+`" readonly`, "-<b>Photos", "&lt;/p&gt;all", "7 of 7 files left",
		"2 GB of 2 GB left", "with a password", "Nothing has arrived yet", "state good")
	v.Ask("PATCH /requests/"+made.ID, `{"password":"","files":3}`).Want(200)
	for _, name := range []string{"a.jpg", "b.mp4", "c.txt"} {
		v.Send("PUT "+made.LinkURL+"&file="+name+"&by=%3Ci%3ETom", "x", "User-Agent", "curl/8").Want(200)
	}
	v.opens(
		"requests",
		200,
		"3 files, 3 B arrived",
		"a.jpg",
		`href="files?id=1"`,
		"from <bdi>&lt;i&gt;Tom</bdi>",
		"Full",
		"files?request="+made.ID,
		"-Your request is ready",
	)
	v.another(desk).login("bob").opens("requests", 200, "No requests yet")
}

func TestARequestIsMadeAndChangedByAForm(t *testing.T) {
	v := visit(t).login("ann")
	v.opens("requests?new=1", 200, `data-call="POST v1/requests?lang=en"`, `data-then="requests?made={id}"`,
		"Mail me when files arrive", `value="100"`, `data-unit="1000000000"`)
	made, _ := v.request(`{"title":"x","bytes":1500000000,"password":"open sesame"}`)
	v.opens("requests?id="+made.ID, 200, `data-call="PATCH v1/requests/`+made.ID, `value="1.5"`, "Remove the password")
	v.open("requests?id=x").Want(404)
	v.another(desk).login("bob").open("requests?id=" + made.ID).Want(404)
	v.Add("eve", func(u *users.User) { u.Email = "" })
	v.another(desk).login("eve").opens("requests?new=1", 200, "-Mail me")
}

func TestAGuestSeesWhatIsAskedForAndWhatHasArrived(t *testing.T) {
	v := visit(t)
	_, page := v.request(`{"title":"<b>Photos","message":"</p>all","bytes":2000000,"files":3,"expires":"7d"}`)
	token := valueOf(page, "k")
	a := v.opens(
		page,
		200,
		"<bdi>ann</bdi> asks you for files",
		"&lt;b&gt;Photos",
		"&lt;/p&gt;all",
		"Ends <time",
		"3 more files",
		"Up to 2 MB",
		`data-room="2000000"`,
		`action="v1/requests/in?k=`,
		`lang="en"`,
		"-<b>Photos",
		"-What you have sent",
	)
	v.has("the title", allOf(a.Text, "<title>(.*)</title>")[0], "-"+token, "-Photos")
	form := "v1/requests/in?" + strings.TrimPrefix(page, "r?")
	v.leads(v.upload(form, "by", "Tom <i>", "@a<b>.jpg", "123", "@b.txt", "1"), "../../r?k="+token+"&lang=en&sent=2")
	v.opens(
		page+"&sent=2",
		200,
		"Your files are with <bdi>ann</bdi>",
		"a&lt;b&gt;.jpg",
		"3 B",
		"Send more",
		`-type="file"`,
	)
	v.opens(page, 200, "What you have sent", "b.txt", "1 more file<")
	v.another(desk).opens(page, 200, "-What you have sent", "-b.txt")
	got := apitest.Read[struct{ By, LinkURL string }](v.Ask("GET /files/1", "").Want(200))
	expect.Equal(t, "who sent it", got.By, "Tom <i>")
	v.opens(pageOf(got.LinkURL), 200, "<h1>A picture for you</h1>")
	for query, fields := range map[string][]string{
		"failed=400&k=" + token + "&lang=en&parameter=by": {"by", strings.Repeat("x", 101), "@c", "1"},
		"failed=413&k=" + token + "&lang=en":              {"@c", strings.Repeat("x", 2_100_000)},
	} {
		v.leads(v.upload(form, fields...), "../../r?"+query)
		v.opens("r?"+query, 200, `role="alert"`, "asks you for files")
	}
	v.upload(form, "@c.txt", "1")
	v.opens(page, 200, "Everything that was asked for has arrived", "c.txt", `-type="file"`)
}

func TestAProtectedRequestAsksForItsPasswordOnce(t *testing.T) {
	v := visit(t)
	_, page := v.request(`{"title":"Secret","password":"open sesame"}`)
	token := valueOf(page, "k")
	v.opens(
		page,
		200,
		"You are asked for files",
		`name="k" value="`+token,
		"-Secret",
		"-ann<",
		"-ann ",
		"-asks you",
		`-role="alert"`,
	)
	v.has("the log", v.Log.String(), "-login refused") // for opening the page
	v.shows(v.post("r", "k", token, "lang", "en", "password", "wrong"), 401,
		"This is not the password", `role="alert"`, "language=de", `-wrong"`)
	v.leads(v.post("r", "k", token, "lang", "en", "password", "open sesame"), "r?k="+token+"&lang=en")
	v.opens(page, 200, "<bdi>ann</bdi> asks you", "Secret")
	v.leads(v.upload("v1/requests/in?k="+token, "@a.txt", "1"), "../../r?k="+token+"&sent=1")
	v.another(desk).opens(page, 200, "-Secret")
}

func TestADeadRequestSaysWhy(t *testing.T) {
	v := visit(t)
	ended, withdrawn := v.request(`{}`)
	_, expired := v.request(`{"expires":"1h"}`)
	v.Ask("DELETE /requests/"+ended.ID, "").Want(204)
	v.Clock.Advance(2 * time.Hour)
	for page, title := range map[string]string{
		withdrawn: "This request was withdrawn", expired: "This request has ended", "r?k=in_x": "There is no such request",
	} {
		v.opens(page, 401, title, "What you can do", `-type="file"`)
	}
	v.opens("r", 400, "There is no such request")
	token := valueOf(withdrawn, "k")
	v.leads(v.upload("v1/requests/in?k="+token, "@a", "1"), "../../r?failed=401&k="+token)
}
