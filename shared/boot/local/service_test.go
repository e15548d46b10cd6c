package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ferry/shared/blob"
	"ferry/shared/blob/disk"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/table"
	"ferry/shared/users"
)

// TestAnUploadListsTheNewestHundredFilesAndItsOwn lets an upload take its id, and then
// lets others finish first.
func TestAnUploadListsTheNewestHundredFilesAndItsOwn(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	var last apitest.Answer
	c.Calls.Before("blob.Create", sync.OnceValue(func() error {
		c.Calls.Before("blob.Create", nil)
		c.Fill(104)
		last = c.Ask("POST /upload?file=quick", "x").Want(200)
		return nil
	}))
	slow := c.Ask("POST /upload?file=slow", "x").Want(200)
	if n := len(last.Files); n != 100 || last.Files[0].ID != 106 || last.Files[99].ID != 7 {
		t.Errorf("the answer has %d files, from %d to %d", n, last.Files[0].ID, last.Files[n-1].ID)
	}
	if n := len(slow.Files); n != 101 || slow.Files[n-1].Name != "slow" || slow.Files[n-1].ID != 1 {
		t.Errorf("the slow one's answer has %d files and ends in %+v", n, slow.Files[n-1])
	}
	c.Ask("POST /upload?file=z", "x").
		WantHeaders("Link", `<`+c.Base+`/download/list?lang=en&limit=100&after=8>; rel="next"`)
}

func TestANewUserWithAnOldNameGetsNothingOfTheOldUser(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	change := c.Send("GET /auth/forget?u=ann", "").Want(200).LinkURL
	link := c.Upload("file=a", "one").LinkURL
	pin := regexp.MustCompile(`\b[0-9]{8}\b`).FindString(c.Mail())

	expect.NoErr(t, c.Users.Disable(t.Context(), "ann"))
	_, err := c.Service.Files().RemoveAll(t.Context(), "ann")
	expect.NoErr(t, err)
	expect.NoErr(t, c.Users.Remove(t.Context(), "ann"))
	old := apitest.Basic("ann", password)
	c.Send("POST /auth/login", "", "Authorization", old).Want(401)

	c.AddUser("ann", "a password of her own", func(u *users.User) { u.Email = "another@example.com" })
	c.Ask("GET /download/list", "").Want(401)
	c.Send("GET "+link, "").Want(401)
	c.Send("POST "+change+"&p="+pin+"&z=taken+over+by+the+old", "").Want(401)
	c.Send("POST /auth/login", "", "Authorization", old).Want(401)
	next := apitest.Caller{Server: c.Server, Bearer: c.Login("ann", "a password of her own")}
	expect.Equal(t, "the id of her first file", next.Upload("file=b", "two").ID, 2)
}

func TestHeadOfALargeFileIsNotRedirected(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t, func(set *service.Settings, _ *local.ServiceOptions) { set.RedirectOver = 3 })
	link := c.Upload("file=x", "large").LinkURL
	c.Calls.Reset()
	c.Send("HEAD "+link, "").Want(200).WantHeaders("Content-Length", "5")
	c.Send("GET "+link, "", "Accept", "application/json").Want(200)
	expect.Equal(t, "addresses of the store for HEAD and the record", c.Calls.Reset()["blob.SignGet"], 0)
	c.Send("GET "+link, "")
	expect.Equal(t, "addresses of the store for GET", c.Calls.Reset()["blob.SignGet"], 1)
}

func TestACountAndItsEventDoNotNeedEachOther(t *testing.T) {
	t.Parallel()
	for refused, want := range map[int]struct {
		events int // one is that of the upload
		link   string
	}{1: {2, `"expires":`}, 2: {1, `"downloads":1`}} {
		s := apitest.New(t, apitest.Listening)
		s.CountAtOnce()
		file := s.Begin().Upload("file=x", "x")
		tries := 0
		s.Calls.Before("table.Write", func() error {
			if tries++; tries == refused {
				return table.ErrBusy
			}
			return nil
		})
		s.Get(file.LinkURL)
		expect.Equal(t, "events", len(s.Events()), want.events)
		s.Close() // writes counts that wait
		for _, link := range apitest.Open(t, s.Dir).Partitions("link#") {
			if !strings.Contains(link, want.link) {
				t.Errorf("write %d was refused, and the link is %s", refused, link)
			}
		}
	}
}

func TestNoFileIsWrittenAfterTheTableFailedToSync(t *testing.T) {
	t.Parallel()
	d, err := local.Open(t.TempDir(), local.Options{})
	expect.NoErr(t, err)
	defer d.Close()
	failed := errors.New("the disk failed")
	d.Table.Failed().Store(&failed)
	_, err = d.Disk.Create(
		t.Context(),
		blob.Files,
		"alice/x",
		strings.NewReader(strings.Repeat("x", 2*disk.MaxSmall)),
		-1,
	)
	expect.Err(t, "a large file", err, failed)
}

func TestTheWebhookSecretIsMadeOnceAndReadableOnlyByItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	all := make([]string, 8)
	for i := range all {
		wg.Go(func() {
			text, _, err := local.WebhookSecret(dir)
			if err != nil {
				t.Error(err)
			}
			all[i] = text
		})
	}
	wg.Wait()
	for _, text := range all {
		if _, err := notify.ParseWebhookSecrets(text); err != nil || text != all[0] {
			t.Errorf("%q, %v", text, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "webhook.secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are there", len(entries))
	}
}
