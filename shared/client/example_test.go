package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"ferry/shared/boot/local"
	"ferry/shared/client"
	"ferry/shared/service"
	"ferry/shared/users"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// startService starts a service with the user ann in a temporary folder.
func startService() (url, dir string, end func()) {
	dir, err := os.MkdirTemp("", "ferry-example-")
	check(err)
	server := httptest.NewUnstartedServer(nil)
	url = "http://" + server.Listener.Addr().String() + "/v1"
	data, err := local.Open(filepath.Join(dir, "data"), local.Options{
		Hash: users.Params{
			Memory:  64,
			Time:    1,
			Threads: 1,
		}, Now: time.Now, NoSync: true, Log: slog.New(slog.DiscardHandler),
	})
	check(err)
	s, err := local.NewService(data.Ports, service.Settings{PublicURL: url}, local.ServiceOptions{
		From:  "Ferry <ferry@localhost>",
		Grace: time.Hour,
	})
	check(err)
	hash, err := data.Ports.Hasher.Hash(context.Background(), password)
	check(err)
	ann := users.User{Name: "ann", Password: hash, State: users.Active, Lang: "en"}
	check((&users.Service{Table: data.Table, Now: time.Now}).Add(context.Background(), ann))
	server.Config.Handler = s.Handler()
	server.Start()
	return url, dir, func() {
		server.Close()
		_ = data.Close()
		_ = os.RemoveAll(dir)
	}
}

// Upload a small file, and download it by its link, which needs no login.
func Example() {
	url, _, end := startService()
	defer end()
	ctx := context.Background()

	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	check(err)
	file, err := c.Upload(ctx, "hello.txt", "text/plain", []byte("Hello, Ferry\n"), client.Delivery{})
	check(err)
	fmt.Println(file.Name, file.Length)

	_, err = c.Copy(ctx, file.Link, os.Stdout, client.Verify{})
	check(err)
	// Output:
	// hello.txt 13
	// Hello, Ferry
}

// Upload a file of any size so that it can be resumed: keep the session's id,
// and give it to the next Put if one fails.
func ExampleClient_Put() {
	url, dir, end := startService()
	defer end()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	check(err)
	path := filepath.Join(dir, "disk.img")
	check(os.WriteFile(path, make([]byte, 12_000_000), 0o600))

	disk, err := os.Open(path)
	check(err)
	defer disk.Close()
	session := "" // from where it was kept
	file, err := c.Put(ctx, client.Source{Name: "disk.img", Length: 12_000_000, Content: disk}, client.PutOptions{
		Session:  session,
		PartSize: 5 << 20,
		Began: func(s client.Session) error {
			fmt.Println(s.Parts, "parts")
			session = s.ID // keep it
			return nil
		},
	})
	check(err)
	fmt.Println(file.Name, file.Length)
	// Output:
	// 3 parts
	// disk.img 12000000
}

// List an area, newest first. Pages are fetched as they are needed.
func ExampleClient_Files() {
	url, _, end := startService()
	defer end()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	check(err)
	for _, name := range []string{"one", "two", "three"} {
		_, err := c.Upload(ctx, name, "", []byte(name), client.Delivery{})
		check(err)
	}
	_, err = c.Delete(ctx, 2) // to the backup area
	check(err)

	for _, area := range []client.Area{client.UserArea, client.BackupArea} {
		for f, err := range c.Files(ctx, area) {
			check(err)
			fmt.Println(area, f.ID, f.Name)
		}
	}
	// Output:
	// files 3 three
	// files 1 one
	// backup 2 two
}

// Download into a folder. Fetch resumes what an earlier one has left.
func ExampleClient_Fetch() {
	url, dir, end := startService()
	defer end()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	check(err)
	file, err := c.Upload(ctx, "report.txt", "", []byte("all is well\n"), client.Delivery{})
	check(err)

	got, err := c.Fetch(ctx, file.Link, client.FetchOptions{Path: dir})
	check(err)
	fmt.Println(filepath.Base(got.Path), "verified by", got.Verified)
	// Output: report.txt verified by [sha-256 crc64nvme]
}

// Errors of the service are of type *Error.
func ExampleError() {
	url, _, end := startService()
	defer end()
	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	check(err)
	_, err = c.Upload(context.Background(), "a.txt", "", []byte("a"), client.Delivery{To: "nobody"})
	fmt.Println(client.StatusOf(err), err)
	// Output: 400 the parameter d is not a user name
}
