package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/bundle"
	"ferry/shared/service"
	"ferry/shared/wire"
)

// pack returns a bundle of files, whose names and contents alternate.
func pack(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := bundle.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		e := bundle.Entry{
			Path:       files[i],
			Modified:   time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
			Executable: strings.HasSuffix(files[i], ".sh"),
		}
		expect.NoErr(t, w.Add(e, []byte(files[i+1])))
	}
	expect.NoErr(t, w.Close())
	return b.String()
}

// bundle stores a bundle in a session, and returns its link.
func (s sharer) bundle(fields, content string) apitest.Answer {
	s.Helper()
	plan := fmt.Sprintf(`{"name":"tree.zip","bundle":true,"length":%d%s}`, len(content), fields)
	id := apitest.Read[struct{ ID string }](s.Ask("POST /uploads", plan).Want(201)).ID
	part := apitest.Read[wire.SignedParts](s.Ask("POST /uploads/"+id+"/parts", `{"numbers":[1]}`).Want(200)).Parts[0]
	s.Send("PUT "+part.URL, content).Want(200)
	return s.Ask("POST /uploads/"+id+"/complete", "")
}

func (s sharer) entries(link string) (all []wire.Entry, next string) {
	s.Helper()
	a := s.Send("GET "+link, "").Want(200)
	next = strings.TrimSuffix(strings.TrimPrefix(a.Header.Get("Link"), "<"), `>; rel="next"`)
	return apitest.Read[wire.Entries](a).Entries, next
}

func TestABundleIsListedAndGivesEachOfItsFiles(t *testing.T) {
	t.Parallel()
	s := begin(t)
	tree := pack(
		t,
		"tree/",
		"",
		"tree/a.txt",
		"hello",
		"tree/run.sh",
		"#!/bin/sh",
		"tree/ü & 日本.html",
		"<p>",
		"tree/empty",
		"",
	)
	link := s.bundle("", tree).Want(200).File().LinkURL
	expect.Equal(t, "the archive", s.Get(link), tree)
	all, next := s.entries(link + "&entries")
	if len(all) != 5 || next != "" || all[0].Path != "tree/" || !all[2].Executable || all[1].Length != 5 ||
		tree[all[1].Offset:all[1].Offset+5] != "hello" || all[1].CRC32 != "3610a686" || all[1].Modified.Year() != 2026 {
		t.Errorf("the entries are %+v", all)
	}
	for path, want := range map[string]string{"tree/a.txt": "hello", "tree/ü & 日本.html": "<p>", "tree/empty": ""} {
		expect.Equal(t, path, s.Get(link+"&entry="+url.QueryEscape(path)), want)
	}
	a := s.Send("GET "+link+"&entry=tree/%C3%BC%20%26%20%E6%97%A5%E6%9C%AC.html", "").Want(200)
	a.WantHeaders(
		"Content-Type",
		"text/html; charset=utf-8",
		"X-Content-Type-Options",
		"nosniff",
		"Content-Security-Policy",
		"sandbox; default-src 'none'",
	)
	if d := a.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment;") ||
		!strings.Contains(d, "%E6%97%A5") {
		t.Errorf("the disposition is %q", d)
	}
	s.Send("GET "+link+"&entry=tree/a.txt", "", "Range", "bytes=1-2").
		Want(206).
		WantHeaders("Content-Range", "bytes 1-2/5")
	tag := s.Send("HEAD "+link+"&entry=tree/a.txt", "").Want(200).WantHeaders("Content-Length", "5").Header.Get("ETag")
	s.Send("GET "+link+"&entry=tree/a.txt", "", "If-None-Match", tag).Want(304)
	s.Send("GET "+link+"&entry=tree/run.sh", "", "If-None-Match", tag).Want(200)
	for _, path := range []string{"tree/", "tree/x", "", "tree"} {
		s.Send("GET "+link+"&entry="+path, "").Want(404)
	}
	about := s.Send("GET "+link+"&about", "").Want(200)
	wantText(t, about, `"bundle":true`, `"entries":5`)
	wantText(t, s.Ask("GET /files/1", ""), `"entries":5`)
	plain := s.share("a.txt", "hello")
	s.Send("GET "+plain+"&entries", "").Want(400, "not a bundle")
	s.Send("GET "+plain+"&entry=a", "").Want(400, "not a bundle")
}

func TestManyEntriesComeInPages(t *testing.T) {
	t.Parallel()
	s := begin(t)
	var files []string
	for i := range 2500 {
		files = append(files, fmt.Sprintf("%04d", i), "")
	}
	link := s.bundle("", pack(t, files...)).Want(200).File().LinkURL
	seen, pages := 0, 0
	for next := link + "&entries"; next != ""; pages++ {
		var all []wire.Entry
		all, next = s.entries(next)
		for _, e := range all {
			if e.Path != fmt.Sprintf("%04d", seen) {
				t.Fatalf("entry %d is %s", seen, e.Path)
			}
			seen++
		}
	}
	if seen != 2500 || pages != 3 {
		t.Errorf("%d entries in %d pages", seen, pages)
	}
	s.Send("GET "+link+"&entries&after=-1", "").Want(400)
}

func TestASessionWhoseFileIsNoBundleIsRefused(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.bundle("", strings.Repeat("hello ", 20)).Want(400, "not a ZIP archive")
	s.bundle("", pack(t, "a", "hello")[:80]).Want(400, "ZIP")
	s.bundle("", strings.ReplaceAll(pack(t, "xx/a", "hello"), "xx/a", "../a")).Want(400, "../a")
	expect.Equal(t, "the files", len(s.Ask("GET /download/list", "").Want(200).Files), 0)
	expect.Equal(t, "the objects", len(s.Files()), 0)
}

func TestEntriesCountAsOneDownloadInAnHour(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("the functions remember the source, from a link of another test with the same token")
	link := s.bundle("", pack(t, "a", "1", "b", "2", "c", "3")).Want(200).File().LinkURL
	s.entries(link + "&entries")
	s.Send("HEAD "+link+"&entry=a", "")
	s.wantDownloads("a list", link, 0)
	for range 2 {
		for _, path := range []string{"a", "b", "c"} {
			s.Get(link + "&entry=" + path)
		}
	}
	s.wantDownloads("all entries twice", link, 1)
	s.Send("GET "+link+"&entry=a&preview", "").Want(200)
	s.wantDownloads("a preview", link, 1)
}

func TestEntriesOfAGuardedLinkNeedAClaim(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.bundle(`,"downloads":1`, pack(t, "dir/a b", "1", "c", "2")).Want(200).File().LinkURL
	s.entries(s.claimOf(link, "&entries="))
	expect.Equal(t, "what is left", *s.links("1")[0].Left, 1)
	s.Send("HEAD "+link+"&entries=", "").Want(302)
	s.Send("HEAD "+link+"&entry=c", "").Want(302)
	s.Send("GET "+s.claimOf(link, "&entry=typo"), "").Want(404)
	expect.Equal(t, "what is left after a mistyped one", *s.links("1")[0].Left, 1)
	one := s.claimOf(link, "&entry=dir%2Fa+b")
	expect.Equal(t, "an entry", s.Get(one), "1")
	expect.Equal(t, "what is left", *s.links("1")[0].Left, 0)
	expect.Equal(t, "another by the same claim", s.Get(strings.Replace(one, "dir%2Fa+b", "c", 1)), "2")
	s.Send("GET "+link+"&entry=c", "").Want(401)
	s.Send("GET "+one, "", "User-Agent", "Slackbot 1.0").Want(303)

	locked := s.bundle(`,"password":"open sesame"`, pack(t, "a", "1")).Want(200).File().LinkURL
	s.Send("GET "+locked+"&entries", "").Want(401)
	s.Send("GET "+locked+"&entry=a", "").Want(401)
	s.Send("GET "+locked+"&entry=a&preview", "", "Ferry-Link-Password", "open sesame").Want(403)
	all := apitest.Read[wire.Entries](s.Send("GET "+locked+"&entries", "", "Ferry-Link-Password", "open sesame").
		Want(200)).Entries
	expect.Equal(t, "the entries", len(all), 1)
	s.Send("GET "+locked+"&entry=a", "", "Ferry-Link-Password", "open sesame").Want(302)
}

func TestRequestsForABundleDoNotUseUpItsLink(t *testing.T) {
	t.Parallel()
	s := begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.LinkBytes = 2000 })
	tree := pack(t, "a", strings.Repeat("x", 400), "b", "1")
	link := s.bundle("", tree).Want(200).File().LinkURL
	s.entries(link + "&entries")
	for range 30 {
		s.Send("HEAD "+link+"&entry=a", "").Want(200)
		s.Send("HEAD "+link+"&entries", "").Want(200)
		s.Send("GET "+link+"&entry=x", "").Want(404)
		s.Send("GET "+link+"&entry=b", "", "Range", "bytes=7-9").Want(416)
	}
	s.Clock.Advance(time.Hour)
	for range 8 { // ten times the file may be given in an hour
		expect.Equal(t, "the archive", s.Get(link), tree)
	}
}

func TestAnEntryHasACleanName(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.bundle("", pack(t, "photo_\u202egpj.exe", "1", "x/   ", "2")).Want(200).File().LinkURL
	for path, want := range map[string]string{"photo_%E2%80%AEgpj.exe": "photo_gpj.exe", "x/%20%20%20": "file"} {
		s.Send("GET "+link+"&entry="+path, "").Want(200).WantHeaders("Content-Disposition", wire.Attachment(want),
			"Last-Modified", "Fri, 01 May 2026 12:00:00 GMT")
	}
}

func TestALargeEntryLeadsToTheStoresCopy(t *testing.T) {
	t.Parallel()
	s := begin(t)
	get := s.redirecting()
	link := s.bundle("", pack(t, "a", "hello", "b", "1")).Want(200).File().LinkURL
	for range 2 {
		if w := get(link+"&entry=a", "192.0.2.1:1", ""); w.Code != 302 ||
			w.Header().Get("Location") != "https://store.example.com/x" {
			t.Errorf("status %d, headers %v", w.Code, w.Header())
		}
	}
	s.wantDownloads("two redirects to one address", link, 1)
	if w := get(link+"&entry=b", "192.0.2.1:1", ""); w.Code != 200 || w.Body.String() != "1" {
		t.Errorf("a small entry: status %d", w.Code)
	}
	s.Send("HEAD "+link+"&entry=a", "").Want(200)
}

func TestADamagedBundleIsNotSentAsGood(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.InProcess("it damages objects")
	link := s.bundle("", pack(t, "a", "hello", "b", "world")).Want(200).File().LinkURL
	for what, k := range map[string]struct {
		old, new string
		want     int
	}{
		"the directory":    {old: "PK\x01\x02", new: "PK\x01\x03", want: 500}, // nobody has asked for it yet
		"an entry's bytes": {old: "hello", new: "jello", want: 409},
		"a local header":   {old: "PK\x03\x04\x14\x00\x00\x08\x00", new: "PK\x03\x04\x14\x00\x01\x08\x00", want: 409},
	} {
		link := link
		if k.want == 500 {
			link = s.bundle("", pack(t, "a", "hello", "c", what)).Want(200).File().LinkURL
		}
		s.damage(k.old, k.new)
		if a := s.Send("GET "+link+"&entry=a", ""); a.Code != k.want || strings.Contains(a.Text, "jello") {
			t.Errorf("%s: status %d, %s", what, a.Code, a.Text)
		}
		s.damage(k.new, k.old)
	}
	expect.Equal(t, "an entry", s.Get(link+"&entry=a"), "hello")
}

// damage changes bytes of all objects.
func (s sharer) damage(old, new string) {
	s.Helper()
	for _, key := range s.Objects(blob.Files) {
		r, err := s.Data.Disk.Open(s.Context(), blob.Files, key)
		expect.NoErr(s.TB, err)
		text, err := io.ReadAll(r)
		expect.NoErr(s.TB, errors.Join(err, r.Close()))
		s.replace(key, bytes.Replace(text, []byte(old), []byte(new), 1))
	}
}
