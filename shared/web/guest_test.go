package web_test

import (
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/wire"
)

// asked makes a request of ann's, and returns it with the address of its page.
func (v visitor) asked(json string) (wire.Request, string) {
	v.Helper()
	made := apitest.Read[wire.Request](v.As("ann").Ask("POST /requests", json).Want(201))
	_, query, _ := strings.Cut(made.LinkURL, "?")
	return made, "r?" + query
}

func TestAGuestSeesWhatIsAskedForAndWhatHasArrived(t *testing.T) {
	t.Parallel()
	v := visit(t)
	_, at := v.asked(`{"title":"<b>Photos","message":"</p>all","bytes":2000000,"files":3,"expires":"7d"}`)
	page := v.get(at).Want(200)
	wantTexts(t, page, "<bdi>ann</bdi> asks you for files", "&lt;b&gt;Photos", "&lt;/p&gt;all", "Ends <time",
		"3 more files", "Up to 2 MB",
		`data-room="2000000"`, `action="v1/requests/in?k=`, `lang="en"`, "-<b>Photos", "-What you have sent")
	title, _, _ := strings.Cut(page.Text, "</title>")
	if _, token, _ := strings.Cut(at, "&k="); strings.Contains(title, token) || strings.Contains(title, "Photos") {
		t.Errorf("the title says too much: %s", title)
	}
	form := "v1/requests/in?" + strings.TrimPrefix(at, "r?")
	a := v.upload(form, "by", "Tom <i>", "@a<b>.jpg", "123", "@b.txt", "1")
	_, token, _ := strings.Cut(at, "&k=")
	v.to("a form", a, "../../r?k="+token+"&lang=en&sent=2")
	wantTexts(t, v.get(at+"&sent=2").Want(200), "Your files are with <bdi>ann</bdi>", "a&lt;b&gt;.jpg", "3 B",
		"Send more", "-type=\"file\"")
	wantTexts(t, v.get(at).Want(200), "What you have sent", "b.txt", "1 more file<")
	wantTexts(t, v.another(v.agent).get(at).Want(200), "-What you have sent", "-b.txt")
	got := apitest.Read[struct{ By string }](v.As("ann").Ask("GET /files/1", "").Want(200))
	apitest.Equal(t, "who sent it", got.By, "Tom <i>")
	for query, fields := range map[string][]string{
		"failed=400&k=" + token + "&lang=en&parameter=by":       {"by", strings.Repeat("x", 101), "@c", "1"},
		"failed=400&k=" + token + "&lang=en&parameter=password": {"password", "x", "@c", "1"},
		"failed=400&k=" + token + "&lang=en":                    {"by", "x"},
		"failed=413&k=" + token + "&lang=en":                    {"@c", strings.Repeat("x", 2_100_000)},
	} {
		v.to(query, v.upload(form, fields...), "../../r?"+query)
		wantTexts(t, v.get("r?"+query).Want(200), `role="alert"`, "asks you for files")
	}
	v.upload(form, "@c.txt", "1")
	wantTexts(t, v.get(at).Want(200), "Everything that was asked for has arrived", "c.txt", "-type=\"file\"")
}

func TestAProtectedRequestAsksForItsPasswordOnce(t *testing.T) {
	t.Parallel()
	v := visit(t)
	_, at := v.asked(`{"title":"Secret","password":"open sesame"}`)
	_, token, _ := strings.Cut(at, "&k=")
	wantTexts(t, v.get(at).Want(200), "You are asked for files", `name="k" value="`+token, "-Secret", "-ann",
		`-role="alert"`)
	if log := v.Log.String(); strings.Contains(log, "login refused") {
		t.Errorf("opening the page counts as a refused login:\n%s", log)
	}
	a := v.post("r", "k", token, "lang", "en", "password", "wrong").Want(401)
	wantTexts(t, a, "This is not the password", `role="alert"`, "language=de", "-wrong\"")
	v.to("the password", v.post("r", "k", token, "lang", "en", "password", "open sesame"), "r?k="+token+"&lang=en")
	wantTexts(t, v.get(at).Want(200), "<bdi>ann</bdi> asks you", "Secret")
	v.to("a form", v.upload("v1/requests/in?k="+token, "@a.txt", "1"), "../../r?k="+token+"&sent=1")
	wantTexts(t, v.another(v.agent).get(at).Want(200), "-Secret")
	v.send("POST r", "k="+token, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site",
		"cross-site").Want(403)
}

func TestADeadRequestSaysWhy(t *testing.T) {
	t.Parallel()
	v := visit(t)
	ended, atEnded := v.asked(`{}`)
	_, atExpired := v.asked(`{"expires":"1h"}`)
	v.As("ann").Ask("DELETE /requests/"+ended.ID, "").Want(204)
	v.Clock.Advance(2 * time.Hour)
	for at, want := range map[string]string{
		atEnded: "This request was withdrawn", atExpired: "This request has ended", "r?k=in_x": "There is no such request",
	} {
		wantTexts(t, v.get(at).Want(401), want, "What you can do", "-type=\"file\"")
	}
	wantTexts(t, v.get("r").Want(400), "There is no such request")
	_, token, _ := strings.Cut(atEnded, "&k=")
	v.to("a form", v.upload("v1/requests/in?k="+token, "@a", "1"), "../../r?failed=401&k="+token)
}
