package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/notify"
)

func TestTheFilesPageSaysWhatBecameOfEachFile(t *testing.T) {
	v := visit(t).login("ann")
	v.opens("files", 200, "No files yet", "kept here for 30 days", "-<table", `-class="quota"`)
	link := v.Upload("file=plain.txt", "x").LinkURL
	v.Upload("file=to-bob.txt&m=bob@b%C3%BCcher.example&m=carla@example.com", "x")
	v.Upload("file=soon.txt&m=bob@example.com&expires=30h", "x")
	v.Deliver()
	v.Upload("file=waiting.txt&m=bob@example.com", "x")
	v.Upload("file=limited.txt&downloads=1", "x")
	v.Ask("DELETE /files/5/links/own", "").Want(200)
	v.As("bob").Upload("file=from-bob.txt&d=ann", "x")
	v.Get(link)
	v.Get(link)
	request, _ := v.request(`{"title":"x"}`)
	v.Send("PUT "+request.LinkURL+"&file=guest.txt&by=Tom", "x", "User-Agent", "curl/8").Want(200)
	rows := map[string]string{}
	for _, row := range allOf(v.open("files").Text, `(?s)(<tr[^>]*>\n<td class="pick">.*?</tr>)`) {
		rows[allOf(row, `aria-label="Choose ([^"]*)"`)[0]] = strings.ReplaceAll(row, "</span><span>", "")
	}
	for name, texts := range map[string][]string{
		"plain.txt": {"state good", "Downloaded twice"}, "to-bob.txt": {"bob@bücher.example\u2069 and 1 more", "Sent"},
		"soon.txt":    {"state warn", "Not downloaded yet"},
		"waiting.txt": {"Being sent"}, "limited.txt": {"Ended"}, "from-bob.txt": {"from \u2068bob\u2069", "New"},
		"guest.txt": {"from \u2068Tom\u2069, by request", "New"},
	} {
		v.has("the row of "+name, rows[name], texts...)
	}
	v.opens("files?request="+request.ID, 200, "guest.txt", "-plain.txt")
	v.Clock.Advance(31 * time.Hour)
	v.opens("files", 200, "plain.txt", "-soon.txt")
}

func TestAMessageThatFailedIsCorrectedAndSentAgain(t *testing.T) {
	v := visit(t).login("ann")
	v.InProcess("it delivers what waits")
	expect.NoErr(
		t,
		v.Data.Table.Write(t.Context(), notify.Suppress("typo@example.com", notify.AddressBounced, "", time.Now())),
	)
	f := v.Upload(
		"file=plan.pdf&m=typo@example.com&m=bob@example.com&i=Here+it+is&downloads=3&lang=en",
		"x",
		"Ferry-Link-Password",
		"",
	)
	sent, panel := fmt.Sprint("send?sent=", f.ID), fmt.Sprint("files?id=", f.ID)
	v.opens(sent, 200, "Sent to 2 people", "0 of 2 people reached", "data-waits", "-no such address")
	v.Deliver()
	v.opens(sent, 200, "1 of 2 people reached", "There is no such address.",
		">Correct and send again</button>", `value="typo@example.com"`, "data-waits")
	page := v.opens(panel, 200, "There is no such address.", `value="typo@example.com"`)
	link := allOf(page.Text, `name="link" value="([^"]*)"`)[0]
	send := func(to, next string) apitest.Answer {
		return v.post("files", "id", fmt.Sprint(f.ID), "link", link, "to", to, "next", next)
	}
	for _, next := range []string{sent, panel} {
		v.shows(send("typo@", next), 200, `value="typo@"`, `role="alert">`, "aria-invalid")
	}
	v.Clock.Advance(time.Second) // so that the next message is the newest
	v.leads(send(" carla@example.com ", sent), sent)
	v.Deliver()
	v.opens(sent, 200, "2 of 2 people reached", "carla@example.com", "-typo@example.com", "-Correct and send")
	record := v.Ask(fmt.Sprint("GET /files/", f.ID), "").Want(200).Text
	v.has("the record", record, `"downloads":3`, "carla@example.com", "-typo@example.com")
	v.has("the new message", v.Mail(), "> Here it is", "Downloads allowed: 3")
	v.shows(send("dora@example.com", "https://evil.example/"), 200, "-evil.example") // that link is gone
	again := fmt.Sprint("/files/", f.ID, "/links")
	ended := allOf(record, `"id":"([^"]*)","state":"[^"]*","channel":"mail","to":"carla`)[0]
	v.Ask("DELETE "+again+"/"+ended, "").Want(200)
	v.Ask("POST "+again, `{"instead":"`+ended+`","m":"dora@example.com"}`).Want(409, "has ended")
}

func TestTheFilesPageIsSearchedSortedAndComesInPages(t *testing.T) {
	v := visit(t).login("ann")
	for i := range 60 {
		v.Upload(fmt.Sprintf("file=n%02d.txt", i), strings.Repeat("x", i%7+1))
	}
	v.Upload("file=ÜBUNG.pdf&expires=1h", strings.Repeat("x", 100))
	for query, begins := range map[string]string{
		"": "ÜBUNG.pdf n59.txt n58.txt", "sort=old": "n00.txt n01.txt", "sort=name": "n00.txt n01.txt", "sort=size": "ÜBUNG.pdf n55.txt",
		"sort=ends": "ÜBUNG.pdf", "from=50": "n10.txt n09.txt", "search=%C3%BCb": "ÜBUNG.pdf", "sort=x&from=-7": "ÜBUNG.pdf n59.txt", "from=9999": "",
	} {
		names := allOf(v.open("files?"+query).Text, `aria-label="Choose ([^"]*\.[a-z]*)"`)
		if got := strings.Join(names, " "); !strings.HasPrefix(got, begins) {
			t.Errorf("%q lists %s", query, got)
		}
	}
	v.opens("files?search=txt&sort=size", 200, `value="txt"`, "1 to 50 of 60", `aria-sort="descending"`,
		`href="files?from=50&amp;search=txt&amp;sort=size" rel="next"`)
	v.opens("files?after=30&before=45-40", 200, "1 to 29 of the older files", "n28.txt", "-of 29",
		`href="files?after=40&amp;before=45&amp;from=last" rel="prev"`)
	v.opens("files?from=last", 200, "51 to 61 of 61", "n00.txt")
	v.opens("files?search=%3Cb%3E", 200, "No name contains “&lt;b&gt;”", "Search the backup")
}

func TestAFilesPanelHasItsLinksAndForms(t *testing.T) {
	v := visit(t).login("ann")
	link := v.Upload(
		"file="+url.QueryEscape(`<b>"x".txt`)+"&m=bob@b%C3%BCcher.example&expires=10d&i=%3Ci%3Eall",
		"hello",
	).LinkURL
	v.Deliver()
	v.Ask("POST /files/1/links", `{"downloads":3,"password":"open sesame","expires":"2d"}`).Want(201)
	v.opens(
		"files?id=1&search=x",
		200,
		`class="split"`,
		`<tr aria-current="true">`,
		`<h1 id="panel"><bdi>&lt;b&gt;&#34;x&#34;.txt</bdi>`,
		`-<b>"`,
		"bob@bücher.example",
		"Sent",
		"Your own link",
		"Another link",
		"0 of 3 downloads",
		"with a password",
		strings.ReplaceAll(link, "&", "&amp;"),
		"CRC64NVME",
		`data-call="PATCH v1/files/1"`,
		`data-call="DELETE v1/files/1"`,
		`data-call="POST v1/files/1/links"`,
		`data-call="PATCH v1/files/1/links/own"`,
		`data-call="POST v1/files/1/links/own/renew"`,
		`href="files?search=x"`,
		"In 7 days",
		"Remove the password",
		`src="qr?`,
		`-">Never<`,
	)
	v.opens(
		pageOf(v.LinksOf(v.Newest("ann"))[1]),
		200,
		`<blockquote dir="auto">&lt;i&gt;all`,
		`<bdi>&lt;b&gt;&#34;x&#34;.txt</bdi>`,
		`-<b>"`,
		"-<i>all",
	)
	for _, query := range []string{"id=2", "id=x", "id=-1", "id=1&area=backup", "id=1%2Flinks", "id=.."} {
		v.opens("files?"+query, 404, "no longer here")
	}
	v.another(desk).login("bob").open("files?id=1").Want(404)
	v.Ask("DELETE /files/1", "").Want(200)
	v.opens(
		"files?deleted=1,x,-",
		200,
		"1 file is in the backup area now.",
		"Undo",
		`<input type="hidden" name="id" value="1">`,
	)
	v.opens("files?area=backup", 200, "<h1>Backup</h1>", "for 90 days", "Gone")
	v.opens(
		"files?area=backup&id=1",
		200,
		`data-call="POST v1/files/1/restore"`,
		`data-call="DELETE v1/files/1?area=backup"`,
		"for good",
		"-Send it to more",
	)
}

func TestEveryCallOfAPageIsOneOfTheInterface(t *testing.T) {
	v := visit(t).login("ann")
	v.Upload("file=a.txt", "x")
	v.Ask("POST /uploads", `{"name":"half.bin","length":100}`).Want(201)
	v.request(`{"title":"x"}`)
	calls := 0
	for _, page := range []string{"files", "files?id=1", "requests", "requests?new=1"} {
		a := v.opens(page, 200, "allow scripts", "-style=", "-onclick")
		for _, call := range regexp.MustCompile(`data-call="([A-Z]+) (v1/[^"]*)"`).FindAllStringSubmatch(a.Text, -1) {
			if calls++; call[1] == "DELETE" {
				continue
			}
			request := call[1] + " " + call[2]
			if got := v.send(request, "{}", "Origin", v.Root, "Sec-Fetch-Site", "same-origin"); got.Code >= 404 {
				t.Errorf("%s: %d", request, got.Code)
			}
		}
	}
	if calls < 9 {
		t.Errorf("only %d calls were found", calls)
	}
	v.opens("files", 200, "Not finished", "half.bin", `data-call="DELETE v1/uploads/`)
}
