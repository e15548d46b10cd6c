package web_test

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/bundle"
	"ferry/shared/wire"
)

// bundle stores a bundle of files, whose paths and contents alternate, and returns its link.
func (s sharer) bundle(fields string, files ...string) string {
	s.Helper()
	var b bytes.Buffer
	w := bundle.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		apitest.Must(s.TB, w.Add(bundle.Entry{Path: files[i]}, []byte(files[i+1])))
	}
	apitest.Must(s.TB, w.Close())
	plan := fmt.Sprintf(`{"name":"trip.zip","bundle":true,"length":%d%s}`, b.Len(), fields)
	id := apitest.Read[struct{ ID string }](s.Ask("POST /uploads", plan).Want(201)).ID
	part := apitest.Read[wire.SignedParts](s.Ask("POST /uploads/"+id+"/parts", `{"numbers":[1]}`).Want(200)).Parts[0]
	s.Send("PUT "+part.URL, b.String()).Want(200)
	return s.Ask("POST /uploads/"+id+"/complete", "").Want(200).File().LinkURL
}

// addresses returns what the attributes of a page lead to, if that has a word.
func addresses(a apitest.Answer, word string) (all []string) {
	for _, found := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(a.Text, -1) {
		if at := html.UnescapeString(found[1]); strings.Contains(at, word) {
			all = append(all, at)
		}
	}
	return all
}

func TestABundlesPageHasATreeWhoseFilesDownloadOneByOne(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.bundle("", "trip/", "", "trip/day 1/a&b.txt", "hello", "trip/day 1/<b>.html", "<p>", "route.gpx", "gpx")
	a := s.page(link).Want(200)
	wantTexts(t, a, "<bdi>ann</bdi> sends you 3 files", "<h2><bdi>trip.zip</bdi></h2>", "3 files, ", "2 files, 8 B",
		"<span>day 1</span>",
		"&lt;b&gt;.html", "-<b>.html", "<details open>", "Download all", "-role=\"search\"",
		`aria-label="Download a&amp;b.txt"`, "-Pictures")
	all := addresses(a, "&entry=")
	apitest.Equal(t, "files", len(all), 3)
	apitest.Equal(t, "the first", s.Send("GET "+s.Root+"/"+all[0], "", browser...).Want(200).Text, "hello")
	s.wantUses("one entry", link, 1, 0)
	long := strings.Repeat("'", 10_000)
	if n := len(s.page(link + "&lang=" + long + "&claim=" + long).Text); n > 20_000 {
		t.Errorf("a query of 20 kB makes a page of %d bytes", n)
	}
	wantTexts(t, s.page(s.bundle("", "photo_\u202egpj.exe", "x", "b", "x")).Want(200), ">photo_gpj.exe<")
	s.page(link)
	s.page(link, "User-Agent", "Slackbot-LinkExpanding 1.0").Want(200)
	s.wantUses("pages, one of them to a robot", link, 1, 0)
}

func TestALargeBundleIsSearchedAndComesInParts(t *testing.T) {
	t.Parallel()
	s := begin(t)
	var files []string
	for i := range 1200 {
		files = append(files, fmt.Sprintf("d%d/Übung %04d.txt", i%30, i), "x")
	}
	link := s.bundle("", files...)
	a := s.page(link).Want(200)
	wantTexts(t, a, "ann</bdi> sends you files", "Search 1200 files", "-<details open>", "1 to 1000 of 1200",
		"-1100.txt")
	next := addresses(a, "from=1000")
	apitest.Equal(t, "next", len(next), 1)
	wantTexts(t, s.page(next[0]).Want(200), "1001 to 1200 of 1200", "Übung 1100.txt", "-0999.txt", `rel="prev"`)
	a = s.page(link + "&q=" + url.QueryEscape("üBUNG 119")).Want(200)
	wantTexts(t, a, "10 files have “üBUNG 119” in their names.", "-<details open>", "ung 1193.txt", "-1093")
	apitest.Equal(t, "found", len(addresses(a, "&entry=")), 10)
	wantTexts(t, s.page(link+"&q=txt").Want(200), "The first 1000 files with “txt” in their names")
	wantTexts(t, s.page(link+"&q=%3Cb%3E").Want(200), "No name contains “&lt;b&gt;”", "Show all")
	for _, odd := range []string{"from=-1", "from=99999999", "from=x", "q=" + strings.Repeat("%C3%BC", 300),
		"picture=7", "view=x"} {
		s.page(link + "&" + odd).Want(200)
	}
}

func TestPicturesOfABundleShowThemselvesAndCountNothing(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.bundle("", "p/1.jpg", "one", "p/2.PNG", "two", "a.txt", "x", "p/empty.png", "", "raw.nef", "x",
		"big.jpg", strings.Repeat("x", 4<<20+1), "evil.svg", "<svg><script>")
	wantTexts(t, s.page(link).Want(200), "Pictures", `class="tree"`, "-class=\"grid\"")
	a := s.page(link + "&view=pictures").Want(200)
	wantTexts(t, a, `class="grid"`, `alt="p/1.jpg"`, `loading="lazy"`, "<bdi>big.jpg</bdi>", "<bdi>empty.png</bdi>")
	previews := addresses(a, "&preview")
	apitest.Equal(t, "previews", len(previews), 3)
	apitest.Equal(t, "the second", s.Send("GET "+s.Root+"/"+previews[1], "", browser...).Want(200).Text, "two")
	s.Send("GET "+s.Root+"/"+previews[2], "", browser...).Want(200).WantHeaders(
		"Content-Type", "image/svg+xml", "Content-Security-Policy", "sandbox; default-src 'none'",
		"X-Content-Type-Options", "nosniff")
	s.wantUses("previews", link, 0, 0)
	one := s.page(link + "&picture=2").Want(200)
	wantTexts(t, one, "Picture 2 of 6", "<bdi>2.PNG</bdi>", "in <bdi>p</bdi>", "picture=1", "picture=3", "-trip.zip")
	wantTexts(t, s.page(link+"&picture=5").Want(200), "<bdi>big.jpg</bdi>", "no preview", "-<img")
	wantTexts(t, s.page(s.bundle("", "1.jpg", "one", "2.jpg", "two")).Want(200), `class="grid"`)
}

func TestAGridOfManyPicturesComesInPages(t *testing.T) {
	t.Parallel()
	s := begin(t)
	var files []string
	for i := range 250 {
		files = append(files, fmt.Sprintf("%03d.jpg", i), "x")
	}
	link := s.bundle("", files...)
	wantTexts(t, s.page(link).Want(200), "Pictures 1 to 200 of 250", "199.jpg", "-200.jpg", "-Previous", "at=200")
	wantTexts(t, s.page(link+"&view=pictures&at=999").Want(200), "Pictures 201 to 250 of 250", "-rel=\"next\"")
	wantTexts(t, s.page(link+"&picture=240").Want(200), `?at=200&amp;`)
}

func TestAGuardedBundleListsNothingUnasked(t *testing.T) {
	t.Parallel()
	s := begin(t)
	files := []string{"a.txt", "hello", "b.jpg", "picture"}
	limited := s.bundle(`,"downloads":1`, files...)
	wantTexts(t, s.page(limited).Want(200), "trip.zip", "1 download left", "uses one of the downloads",
		"Show the files", "-a.txt", "-b.jpg")
	a := s.post("l", url.Values{"k": {tokenOf(limited)}}).Want(200)
	wantTexts(t, a, "a.txt", "1 download left", "-&amp;preview", "-Pictures")
	s.Send("GET "+limited+"&entry=b.jpg&preview", "").Want(403, "no preview")
	for _, at := range addresses(a, "&entry=") {
		s.Send("GET "+s.Root+"/"+at, "", browser...).Want(200)
	}
	wantTexts(t, s.page(limited).Want(401), "This link is used up")
	claim := addresses(a, "claim=")[0]
	_, query, _ := strings.Cut(claim, "?")
	wantTexts(t, s.page("l?"+query).Want(200), "a.txt", "0 downloads left")

	locked := s.bundle(`,"password":"open sesame"`, files...)
	wantTexts(t, s.page(locked).Want(200), "sends you files with a password", "-trip.zip", "-a.txt")
	a = s.post("l", url.Values{"k": {tokenOf(locked)}, "password": {"open sesame"}}).Want(200)
	wantTexts(t, a, "trip.zip", "a.txt")
	apitest.Equal(t, "an entry", s.Send("GET "+s.Root+"/"+addresses(a, "&entry=a")[0], "", browser...).Want(200).Text,
		"hello")
}
