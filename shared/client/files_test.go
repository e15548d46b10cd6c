package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/client"
	"ferry/shared/users"
)

func TestFileIsUploadedListedDeletedAndRestored(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	ctx := t.Context()
	f, err := c.Upload(ctx, "some/folder/fe\u0301te.txt", "text/plain", []byte("hello"), client.Delivery{})
	if err != nil || f.Name != "f\u00e9te.txt" || f.Length != 5 || f.ID != 1 || f.Link == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	d, err := c.File(ctx, client.UserArea, f.ID)
	if err != nil ||
		d.Name != f.Name ||
		d.Type != "text/plain" ||
		d.Area != "files" ||
		d.SHA256 == "" ||
		d.CRC64NVME == "" {
		t.Fatalf("%+v, %v", d, err)
	}
	gone, err := c.Delete(ctx, f.ID)
	if err != nil || !strings.Contains(gone.Link, "/backup") {
		t.Fatalf("%+v, %v", gone, err)
	}
	expect.Err(t, "a deleted file", failed(c.File(ctx, client.UserArea, f.ID)), client.ErrNotFound)
	found, err := c.Named(ctx, client.BackupArea, f.Name, 2)
	if err != nil || len(found) != 1 || found[0].ID != f.ID {
		t.Errorf("%+v, %v", found, err)
	}
	expect.Err(t, "a deleted file", failed(c.Named(ctx, client.UserArea, f.Name, 1)), client.ErrNotFound)
	if back, err := c.Restore(ctx, f.ID); err != nil || back.Name != f.Name {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestAllPagesOfAListAreRead(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	const files = 1010
	apitest.Caller{Server: s, Bearer: s.Login("ann", password)}.Fill(files)
	next := int64(files)
	for f, err := range c.Files(t.Context(), client.UserArea) {
		if err != nil || f.ID != next {
			t.Fatalf("%+v, %v, want id %d", f, err, next)
		}
		next--
	}
	if next != 0 {
		t.Errorf("%d files are missing", next)
	}
}

func TestMissingLoginIsReported(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	nobody := connect(t, s, "")
	expect.Err(t, "without a login", failed(nobody.File(t.Context(), client.UserArea, 1)), client.ErrNoLogin)
	wantStatus(t, "with a wrong password", failed(c.Login(t.Context(), "ann", "wrong")), http.StatusUnauthorized)
	bearer, err := c.Login(t.Context(), "ann", password)
	must(t, err)
	must(t, c.Logout(t.Context(), bearer))
	expect.Err(t, "with an ended bearer", failed(using(t, s, bearer).
		File(t.Context(), client.UserArea, 1)), client.ErrNoLogin)
}

func TestAnUploadForNobodyOrWithoutANameIsRefused(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	o := client.PutOptions{Delivery: client.Delivery{To: "nobody"}}
	expect.Err(t, "a session for nobody", failed(c.Put(t.Context(), source(nil), o)), client.ErrUnknownUser)
	if _, err := c.Upload(t.Context(), "..", "", nil, client.Delivery{}); err == nil {
		t.Error("a file named .. was uploaded")
	}
}

func TestUploadWithLostAnswersIsStoredOnce(t *testing.T) {
	t.Parallel()
	cut := cutter(3000, 25)
	s, c := start(t, func(o *client.Options) { o.HTTP, o.Retry.Tries = cut.client(), 40 })
	for i := range 10 {
		f, err := c.Upload(t.Context(), "a", "", bytesOf(uint64(i), 1000), client.Delivery{})
		if err != nil || f.ID == 0 {
			t.Fatal(err)
		}
	}
	stored := 0
	for _, err := range connect(t, s, "ann").Files(t.Context(), client.UserArea) {
		must(t, err)
		stored++
	}
	if cut.cuts == 0 || stored != 10 {
		t.Errorf("%d files are stored after %d cuts, want 10", stored, cut.cuts)
	}
}

// TestAFileThatTheAnswerDoesNotNameIsNotGuessed answers as a service would that does not say what it stored, or
// says something else. The list has a file of that name and length.
func TestAFileThatTheAnswerDoesNotNameIsNotGuessed(t *testing.T) {
	t.Parallel()
	const mine, other = `{"id":7,"name":"a","length":1}`, `{"id":8,"name":"a","length":1}`
	for what, k := range map[string]struct {
		named, listed string
		want          int64 // 0 is an error
	}{
		"an older service":                  {listed: mine},
		"a service that names it":           {named: "7", listed: other + "," + mine, want: 7},
		"one that names another":            {named: "9", listed: other + "," + mine},
		"one that names several":            {named: "7, 8", listed: other + "," + mine},
		"one that names what is no file":    {named: "0", listed: `{"name":"a","length":1}`},
		"one that names it and lists none":  {named: "7"},
		"one that names it in another way":  {named: "07", listed: mine},
		"one whose file has got a new name": {named: "7", listed: `{"id":7,"name":"b","length":1}`, want: 7},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			c := against(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/upload") {
					sent.Add(1)
				}
				if k.named != "" {
					w.Header().Set("Ferry-Files", k.named)
				}
				fmt.Fprintf(w, `{"bearer":"a bearer","files":[%s]}`, k.listed)
			})
			f, err := c.Upload(t.Context(), "a", "", []byte("x"), client.Delivery{})
			if f.ID != k.want || errors.Is(err, client.ErrUnnamed) != (k.want == 0) || sent.Load() != 1 {
				t.Errorf("after %d requests: %+v, %v", sent.Load(), f, err)
			}
		})
	}
}

func TestPasswordIsChanged(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	s.AddUser("new", "temporary password", func(u *users.User) { u.State = users.FirstAccess })
	ctx := t.Context()
	link, err := c.First(ctx, "new", "temporary password")
	must(t, err)
	wantStatus(t, "a short password", c.Change(ctx, link, "", "short"), http.StatusBadRequest)
	must(t, c.Change(ctx, link, "", "one of my own"))
	if _, err := c.Login(ctx, "new", "one of my own"); err != nil {
		t.Error(err)
	}
	if link, err = c.Forgot(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, "a wrong PIN", c.Change(ctx, link, "00000000", "my other password"), http.StatusUnauthorized)
}

func TestWrongAddressIsRecognised(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "files.example.com", "ftp://x", "http://", "http://x/?a=b", "http://user:pass@x/v1", "http://x/files",
	} {
		if _, err := client.New(client.Options{URL: text}); err == nil {
			t.Errorf("%q is taken for a service", text)
		}
	}
	for text, want := range map[string]string{
		"http://x":        "http://x/v1",
		"https://x:1/v1/": "https://x:1/v1",
		"http://x/a/v1":   "http://x/a/v1",
	} {
		if got, err := client.BaseURL(text); got != want || err != nil {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	s := apitest.New(t)
	c := connect(t, s, "x", func(o *client.Options) { o.URL = s.Root + "/inbox/v1" })
	if _, err := c.Login(t.Context(), "x", "y"); err == nil {
		t.Error("another page is taken for a service")
	}
	s.Close()
	if _, err := connect(t, s, "x").Login(t.Context(), "x", "y"); !client.IsNetwork(err) {
		t.Errorf("a service that has ended: %v", err)
	}
}

func TestSenderSeesWhoWasNotified(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	s.AddUser("bob", password)
	f, err := c.Upload(t.Context(), "a", "", []byte("content"), client.Delivery{
		To:     "bob",
		Mail:   []string{"carla@example.com"},
		Notify: true,
	})
	must(t, err)
	d, err := c.Sent(t.Context(), "bob", f.ID)
	if err != nil || !d.Notify || len(d.Notifications) != 1 {
		t.Fatalf("the details are %+v, %v", d, err)
	}
	if n := d.Notifications[0]; n.To != "carla@example.com" ||
		n.Channel != "mail" ||
		n.State != "queued" ||
		n.Created.IsZero() ||
		!n.Sent.IsZero() {
		t.Errorf("the notification is %+v", n)
	}
	expect.Err(t, "a file that was not sent", failed(c.Sent(t.Context(), "bob", 99)), client.ErrNotFound)
}
