package web_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
	"ferry/shared/wire"
)

// bundle stores a bundle of files, whose paths and contents alternate, and returns the page of its link.
func (v visitor) bundle(fields string, files ...string) string {
	v.Helper()
	var b bytes.Buffer
	w := bundle.NewWriter(&b)
	for file := range slices.Chunk(files, 2) {
		expect.NoErr(v.TB, w.Add(bundle.Entry{Path: file[0]}, []byte(file[1])))
	}
	expect.NoErr(v.TB, w.Close())
	plan := fmt.Sprintf(`{"name":"trip.zip","bundle":true,"length":%d%s}`, b.Len(), fields)
	id := apitest.Read[struct{ ID string }](v.Ask("POST /uploads", plan).Want(201)).ID
	part := apitest.Read[wire.SignedParts](v.Ask("POST /uploads/"+id+"/parts", `{"numbers":[1]}`).Want(200)).Parts[0]
	v.Send("PUT "+part.URL, b.String()).Want(200)
	return pageOf(v.Ask("POST /uploads/"+id+"/complete", "").Want(200).File().LinkURL)
}

func TestABundlesPageHasATreeWhoseFilesDownloadOneByOne(t *testing.T) {
	v := visit(t)
	page := v.bundle("", "trip/", "", "trip/day 1/a&b.txt", "hello", "trip/day 1/<b>.html", "<p>", "route.gpx", "gpx")
	a := v.opens(
		page,
		200,
		"<bdi>ann</bdi> sends you 3 files",
		"<h2><bdi>trip.zip</bdi></h2>",
		"3 files, ",
		"2 files, 8 B",
		"<span>day 1</span>",
		"&lt;b&gt;.html",
		"-<b>.html",
		"<details open>",
		"Download all",
		`-role="search"`,
		`aria-label="Download a&amp;b.txt"`,
		"-Pictures",
	)
	all := addresses(a, "&entry=")
	expect.Equal(t, "files", len(all), 3)
	expect.Equal(t, "the first", v.open(all[0]).Text, "hello")
	v.send("GET "+page, "", "User-Agent", "Slackbot-LinkExpanding 1.0").Want(200)
	v.wantUses("one entry, not by pages", 1, 0)
	long := strings.Repeat("'", 10_000)
	if n := len(v.open(page + "&lang=" + long + "&claim=" + long).Text); n > 20_000 {
		t.Errorf("a query of 20 kB makes a page of %d bytes", n)
	}
	v.opens(v.bundle("", "photo_\u202egpj.exe", "x", "b", "x"), 200, ">photo_gpj.exe<")
}

func TestABundleOpensWhatIsAloneAndBeginsWithPicturesIfMostAre(t *testing.T) {
	v := visit(t)
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("trip/day 1/%d.txt", i), "x")
	}
	for beside, open := range map[string]int{"read me.txt": 2, "other/a.txt": 1} { // the one within trip, once that is opened
		page := v.open(v.bundle("", append(many, beside, "x")...))
		expect.Equal(
			t,
			"folders that are open beside "+beside,
			strings.Count(page.Text, "<details open>\n<summary>"),
			open,
		)
	}
	v.opens(v.bundle("", "a.png", "x", "b.png", "x", "c.txt", "x"), 200, `<ul class="grid">`, ">List</a>")
	v.opens(v.bundle("", "a.png", "x", "b.txt", "x"), 200, `-<ul class="grid">`, ">Pictures</a>")
}

func TestALargeBundleIsSearchedAndComesInParts(t *testing.T) {
	v := visit(t)
	var files []string
	for i := range 1200 {
		files = append(files, fmt.Sprintf("d%d/Übung %04d.txt", i%30, i), "x")
	}
	page := v.bundle("", files...)
	a := v.opens(
		page,
		200,
		"ann</bdi> sends you files",
		"Search 1200 files",
		"-<details open>",
		"1 to 1000 of 1200",
		"-1100.txt",
	)
	v.opens(addresses(a, "from=1000")[0], 200, "1001 to 1200 of 1200", "Übung 1100.txt", "-0999.txt", `rel="prev"`)
	a = v.opens(
		page+"&q="+url.QueryEscape("üBUNG 119"),
		200,
		"10 files have “üBUNG 119” in their names.",
		"-<details open>",
		"ung 1193.txt",
		"-1093",
	)
	expect.Equal(t, "found", len(addresses(a, "&entry=")), 10)
	v.opens(page+"&q=txt", 200, "The first 1000 files with “txt” in their names")
	v.opens(page+"&q=%3Cb%3E", 200, "No name contains “&lt;b&gt;”", "Show all")
	for _, odd := range []string{
		"from=-1", "from=99999999", "q=" + strings.Repeat("%C3%BC", 300), "picture=7", "view=x",
	} {
		v.open(page + "&" + odd).Want(200)
	}
}

func TestPicturesOfABundleShowThemselvesAndCountNothing(t *testing.T) {
	v := visit(t)
	page := v.bundle("", "p/1.jpg", "one", "p/2.PNG", "two", "a.txt", "x", "p/empty.png", "", "raw.nef", "x",
		"big.jpg", strings.Repeat("x", 4<<20+1), "evil.svg", "<svg><script>")
	v.opens(page, 200, `class="grid"`, `-class="tree"`)
	v.opens(page+"&view=list", 200, "Pictures", `class="tree"`, `-class="grid"`)
	a := v.opens(page+"&view=pictures", 200, `class="grid"`, `alt="p/1.jpg"`, `loading="lazy"`, "<bdi>big.jpg</bdi>",
		"<bdi>empty.png</bdi>")
	previews := addresses(a, "&preview")
	expect.Equal(t, "previews", len(previews), 3)
	expect.Equal(t, "the second", v.open(previews[1]).Text, "two")
	v.wantUses("previews", 0, 0)
	v.opens(
		page+"&picture=2",
		200,
		"Picture 2 of 6",
		"<bdi>2.PNG</bdi>",
		"in <bdi>p</bdi>",
		"picture=1",
		"picture=3",
		"-trip.zip",
	)
	v.opens(page+"&picture=5", 200, "<bdi>big.jpg</bdi>", "no preview", "-<img")
}

func TestAGridOfManyPicturesComesInPages(t *testing.T) {
	v := visit(t)
	var files []string
	for i := range 250 {
		files = append(files, fmt.Sprintf("%03d.jpg", i), "x")
	}
	page := v.bundle("", files...)
	v.opens(page, 200, "Pictures 1 to 200 of 250", "199.jpg", "-200.jpg", "-Previous", "at=200")
	v.opens(page+"&view=pictures&at=999", 200, "Pictures 201 to 250 of 250", `-rel="next"`)
	v.opens(page+"&picture=240", 200, `?at=200&amp;`)
}

func TestAGuardedBundleListsNothingUnasked(t *testing.T) {
	v := visit(t)
	files := []string{"a.txt", "hello", "b.jpg", "picture"}
	limited := v.bundle(`,"downloads":1`, files...)
	v.opens(
		limited,
		200,
		"trip.zip",
		"1 download left",
		"uses one of the downloads",
		"Show the files",
		"-a.txt",
		"-b.jpg",
	)
	a := v.shows(v.post("l", "k", valueOf(limited, "k")), 200, "a.txt", "1 download left", "-&amp;preview", "-Pictures")
	for _, at := range addresses(a, "&entry=") {
		v.open(at).Want(200)
	}
	v.opens(limited, 401, "This link is used up")
	v.opens(limited+"&claim="+valueOf(addresses(a, "claim=")[0], "claim"), 200, "a.txt", "0 downloads left")
	locked := v.bundle(`,"password":"open sesame"`, files...)
	v.opens(locked, 200, "sends you files with a password", "-trip.zip", "-a.txt")
	a = v.shows(v.post("l", "k", valueOf(locked, "k"), "password", "open sesame"), 200, "trip.zip", "a.txt")
	expect.Equal(t, "an entry", v.open(addresses(a, "&entry=a")[0]).Text, "hello")
}
