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

// startService starts a service with the user ann in a temporary folder.
func startService() (url, dir string, end func()) {
	dir, err := os.MkdirTemp("", "ferry-example-")
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	url = "http://" + server.Listener.Addr().String() + "/v1"
	data, err := local.Open(filepath.Join(dir, "data"), local.Options{
		Hash: users.Params{Memory: 64, Time: 1, Threads: 1}, Now: time.Now, NoSync: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := local.NewService(data.Ports, service.Settings{PublicURL: url}, local.ServiceOptions{From: "Ferry <ferry@localhost>", Grace: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	hash, err := data.Ports.Hasher.Hash(context.Background(), password)
	if err != nil {
		log.Fatal(err)
	}
	ann := users.User{Name: "ann", Password: hash, State: users.Active, Lang: "en"}
	if err := (&users.Service{Table: data.Table, Now: time.Now}).Add(context.Background(), ann); err != nil {
		log.Fatal(err)
	}
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
	if err != nil {
		log.Fatal(err)
	}
	file, err := c.Upload(ctx, "hello.txt", "text/plain", []byte("Hello, Ferry\n"), client.Delivery{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Name, file.Length)

	if _, err := c.Copy(ctx, file.Link, os.Stdout, client.Verify{}); err != nil {
		log.Fatal(err)
	}
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
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(path, make([]byte, 12_000_000), 0o600); err != nil {
		log.Fatal(err)
	}

	disk, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
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
	if err != nil {
		log.Fatal(err)
	}
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
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		if _, err := c.Upload(ctx, name, "", []byte(name), client.Delivery{}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := c.Delete(ctx, 2); err != nil { // to the backup area
		log.Fatal(err)
	}

	for _, area := range []client.Area{client.UserArea, client.BackupArea} {
		for f, err := range c.Files(ctx, area) {
			if err != nil {
				log.Fatal(err)
			}
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
	if err != nil {
		log.Fatal(err)
	}
	file, err := c.Upload(ctx, "report.txt", "", []byte("all is well\n"), client.Delivery{})
	if err != nil {
		log.Fatal(err)
	}

	got, err := c.Fetch(ctx, file.Link, client.FetchOptions{Path: dir})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(filepath.Base(got.Path), "verified by", got.Verified)
	// Output: report.txt verified by [sha-256 crc64nvme]
}

// Errors of the service are of type *Error.
func ExampleError() {
	url, _, end := startService()
	defer end()
	c, err := client.New(client.Options{URL: url, User: "ann", Password: "a long password"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Upload(context.Background(), "a.txt", "", []byte("a"), client.Delivery{To: "nobody"})
	fmt.Println(client.StatusOf(err), err)
	// Output: 400 the parameter d is not a user name
}
