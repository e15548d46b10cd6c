package web_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
)

func TestAGuestSeesWhatIsAskedForAndWhatHasArrived(t *testing.T) {
	t.Parallel()
	v := visit(t)
	_, page := v.request(`{"title":"<b>Photos","message":"</p>all","bytes":2000000,"files":3,"expires":"7d"}`)
	token := valueOf(page, "k")
	a := v.opens(page, 200, "<bdi>ann</bdi> asks you for files", "&lt;b&gt;Photos", "&lt;/p&gt;all", "Ends <time", "3 more files",
		"Up to 2 MB", `data-room="2000000"`, `action="v1/requests/in?k=`, `lang="en"`, "-<b>Photos", "-What you have sent")
	v.has("the title", allOf(a.Text, "<title>(.*)</title>")[0], "-"+token, "-Photos")
	form := "v1/requests/in?" + strings.TrimPrefix(page, "r?")
	v.leads(v.upload(form, "by", "Tom <i>", "@a<b>.jpg", "123", "@b.txt", "1"), "../../r?k="+token+"&lang=en&sent=2")
	v.opens(page+"&sent=2", 200, "Your files are with <bdi>ann</bdi>", "a&lt;b&gt;.jpg", "3 B", "Send more", `-type="file"`)
	v.opens(page, 200, "What you have sent", "b.txt", "1 more file<")
	v.another(desk).opens(page, 200, "-What you have sent", "-b.txt")
	got := apitest.Read[struct{ By string }](v.Ask("GET /files/1", "").Want(200))
	apitest.Equal(t, "who sent it", got.By, "Tom <i>")
	for query, fields := range map[string][]string{
		"failed=400&k=" + token + "&lang=en&parameter=by":       {"by", strings.Repeat("x", 101), "@c", "1"},
		"failed=400&k=" + token + "&lang=en&parameter=password": {"password", "x", "@c", "1"},
		"failed=400&k=" + token + "&lang=en":                    {"by", "x"},
		"failed=413&k=" + token + "&lang=en":                    {"@c", strings.Repeat("x", 2_100_000)},
	} {
		v.leads(v.upload(form, fields...), "../../r?"+query)
		v.opens("r?"+query, 200, `role="alert"`, "asks you for files")
	}
	v.upload(form, "@c.txt", "1")
	v.opens(page, 200, "Everything that was asked for has arrived", "c.txt", `-type="file"`)
}

func TestAProtectedRequestAsksForItsPasswordOnce(t *testing.T) {
	t.Parallel()
	v := visit(t)
	_, page := v.request(`{"title":"Secret","password":"open sesame"}`)
	token := valueOf(page, "k")
	v.opens(page, 200, "You are asked for files", `name="k" value="`+token, "-Secret", "-ann<", `-role="alert"`)
	v.has("the log", v.Log.String(), "-login refused") // for opening the page
	wrong := v.post("r", "k", token, "lang", "en", "password", "wrong")
	v.shows(wrong, 401, "This is not the password", `role="alert"`, "language=de", `-wrong"`)
	v.leads(v.post("r", "k", token, "lang", "en", "password", "open sesame"), "r?k="+token+"&lang=en")
	v.opens(page, 200, "<bdi>ann</bdi> asks you", "Secret")
	v.leads(v.upload("v1/requests/in?k="+token, "@a.txt", "1"), "../../r?k="+token+"&sent=1")
	v.another(desk).opens(page, 200, "-Secret")
	v.send("POST r", "k="+token, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site").Want(403)
}

func TestADeadRequestSaysWhy(t *testing.T) {
	t.Parallel()
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
