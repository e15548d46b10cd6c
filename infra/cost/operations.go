package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"ferry/shared/api/file"
	"ferry/shared/blob"
	"ferry/shared/client"
	"ferry/shared/files"
	"ferry/shared/table"

	"ferry/shared/auth"
	"ferry/shared/notify"
)

// The sizes of the files that are counted, in bytes.
const (
	small  = 100_000
	medium = 1 << 20
	large  = 5 << 20 // more than passes through a function
	// parts are those of a file of 1 GB, which has 16 MB each; here they are the
	// smallest that S3 takes, which changes no call.
	parts, partSize = 64, 5 << 20
	areaSize        = 100 // files in alice's area, as many as a page shows
)

const (
	alice    = "alice"
	password = "a password of alice"
	formType = "application/x-www-form-urlencoded"
)

// operation is one thing that callers do. What prepare does is not counted,
// what it returns is.
type operation struct {
	name    string
	prepare preparation
}

type preparation func(context.Context, *stage) (func() error, error)

// The operations that tables and comparisons are made of.
const (
	upload       = "upload of 100 KB"
	uploadMail   = "upload of 100 KB with one mail"
	uploadText   = "upload of 100 KB with one text message"
	uploadMedium = "upload of 1 MB with one mail"
	upload1GB    = "upload of 1 GB in a session, by `ferry up`"
	download     = "download by link, 100 KB"
	download1MB  = "download by link, 1 MB"
	downloadFar  = "download by link over 4 MB, by a redirect to S3"

	sweepEmpty = "sweep of an empty stack"
	sweepStay  = "sweep of 100 files that stay"
	sweepMove  = "sweep that moves 100 files to the backup area"
	sweepPurge = "sweep that removes 100 files for good"
)

func operations() []operation {
	return []operation{
		{"login (`POST /auth/login`)", login},
		{"token (`POST /oauth2/token`)", oauthToken},
		{"end of a token (`POST /oauth2/revoke`)", revoke},
		{"first access (`POST /auth/first`)", firstAccess},
		{"forgotten password, with its mail (`GET /auth/forget`)", forget},
		{"change of a forgotten password (`POST /auth/change`)", change},
		{upload, uploading(small, "")},
		{upload + " with an Idempotency-Key", uploadingOnce},
		{uploadMail, uploading(small, "&m=carla@example.com&i=hello")},
		{uploadText, uploading(small, "&c=%2B12015550123&i=hello")},
		{uploadMedium, uploading(medium, "&m=carla@example.com&i=hello")},
		{upload1GB, uploadLarge},
		{"session: begin (`POST /uploads`)", beginSession},
		{"session: URLs of 100 parts", onSession("POST", "/parts", 200)},
		{"session: state", onSession("GET", "", 200)},
		{"session: end", onSession("DELETE", "", 204)},
		{"session: complete, of 2 parts", completeSession},
		{"list of one open session", asking(200, "GET", "/uploads?limit=1", "", "Authorization", "bearer")},
		{"list of 100 files", asking(200, "GET", "/download/list?limit=100", "", "Authorization", "bearer")},
		{"list of 100 files in the backup area", asking(200, "GET", "/download/list/backup?limit=100", "", "Authorization", "bearer")},
		{"record of a file with one recipient (`GET /files/{id}`)", recordOf},
		{download, downloading(small, blob.Files, false)},
		{download1MB, downloading(medium, blob.Files, false)},
		{downloadFar, downloading(large, blob.Files, false)},
		{"download by link that its uploader hears of by mail", downloading(small, blob.Files, true)},
		{"download from the backup area, 100 KB", downloading(small, blob.Backup, false)},
		{"page of a link, for browsers", page},
		{"delete, to the backup area", remove},
		{"restore", restore},
		{"page that ends mails to an address", stopping("GET")},
		{"end of mails to an address", stopping("POST")},
		{"`GET /health`", asking(200, "GET", "/health", "")},
		{"`GET /openapi.json`", asking(200, "GET", "/openapi.json", "")},
		{"an unknown address", asking(404, "GET", "/nothing", "")},
	}
}

// sweeps follow each other in a stack that is otherwise empty.
func sweeps() []operation {
	after := func(days int) preparation {
		return func(ctx context.Context, s *stage) (func() error, error) {
			s.ahead = time.Duration(days) * 24 * time.Hour
			return func() error { return s.sweep(ctx) }, nil
		}
	}
	return []operation{
		{sweepEmpty, after(0)},
		{sweepStay, func(ctx context.Context, s *stage) (func() error, error) {
			if err := s.fill(ctx); err != nil {
				return nil, err
			}
			return after(1)(ctx, s)
		}},
		{sweepMove, after(31)},
		{sweepPurge, after(200)},
	}
}

func asking(status int, method, path, body string, headers ...string) preparation {
	return func(ctx context.Context, s *stage) (func() error, error) {
		return func() error {
			_, err := s.ask(ctx, status, method, path, strings.NewReader(body), headers...)
			return err
		}, nil
	}
}

// login is one by a user of whom this process knows nothing yet: within one, the
// slow hash of a password that was just checked is not made again.
func login(ctx context.Context, s *stage) (func() error, error) {
	name, err := s.another(ctx, auth.Active)
	if err != nil {
		return nil, err
	}
	return asking(200, "POST", "/auth/login", "", "Authorization", basic(name))(ctx, s)
}

func oauthToken(ctx context.Context, s *stage) (func() error, error) {
	name, err := s.another(ctx, auth.Active)
	if err != nil {
		return nil, err
	}
	body := url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}}.Encode()
	return asking(200, "POST", "/oauth2/token", body, "Content-Type", formType)(ctx, s)
}

func revoke(ctx context.Context, s *stage) (func() error, error) {
	_, token, err := auth.New(s.raw.Ports).Login(ctx, alice, password, "203.0.113.7")
	if err != nil {
		return nil, err
	}
	body := url.Values{"token": {token}}.Encode()
	return asking(200, "POST", "/oauth2/revoke", body, "Content-Type", formType)(ctx, s)
}

func firstAccess(ctx context.Context, s *stage) (func() error, error) {
	name, err := s.another(ctx, auth.FirstAccess)
	if err != nil {
		return nil, err
	}
	return asking(200, "POST", "/auth/first", "", "Authorization", basic(name))(ctx, s)
}

func forget(ctx context.Context, s *stage) (func() error, error) {
	name, err := s.another(ctx, auth.Active)
	if err != nil {
		return nil, err
	}
	return asking(200, "GET", "/auth/forget?u="+name, "")(ctx, s)
}

func change(ctx context.Context, s *stage) (func() error, error) {
	name, err := s.another(ctx, auth.Active)
	if err != nil {
		return nil, err
	}
	token, _, err := accounts_New(s.raw).Forget(ctx, name, s.raw.PublicURL, "en")
	if err != nil {
		return nil, err
	}
	pin := ""
	err = s.raw.Table.Scan(ctx, func(item table.Item) error {
		var n notify.Notice
		if strings.HasPrefix(item.Key.PK, notify.OutboxPrefix) && item.Decode(&n) == nil && n.User == name {
			pin = s.raw.Key.PIN(n.Nonce)
		}
		return nil
	})
	if err != nil || pin == "" {
		return nil, fmt.Errorf("the PIN of %s was not found: %w", name, err)
	}
	body := url.Values{"p": {pin}, "z": {"another password"}}.Encode()
	return asking(200, "POST", "/auth/change?k="+token, body, "Content-Type", formType)(ctx, s)
}

func uploading(size int64, query string, headers ...string) preparation {
	return func(ctx context.Context, s *stage) (func() error, error) {
		return func() error {
			_, err := s.ask(ctx, 200, "POST", "/upload?file=report.pdf"+query, io.LimitReader(zeros{}, size),
				append([]string{"Authorization", "bearer", "Content-Type", "application/pdf"}, headers...)...)
			return err
		}, nil
	}
}

func uploadingOnce(ctx context.Context, s *stage) (func() error, error) {
	s.users++
	return uploading(small, "", "Idempotency-Key", fmt.Sprint(s.users))(ctx, s)
}

// uploadLarge is what the client does for a large file.
func uploadLarge(ctx context.Context, s *stage) (func() error, error) {
	return func() error {
		server := httptest.NewServer(s.mux)
		defer server.Close()
		c, err := client.New(client.Options{
			URL: server.URL, HTTP: &http.Client{Transport: s.meter},
			Bearer: func(context.Context, string) (string, error) { return s.bearer, nil },
		})
		if err != nil {
			return err
		}
		_, err = c.Put(ctx, client.Source{Name: "film.mp4", Length: parts * partSize, Content: zeros{}}, client.PutOptions{PartSize: partSize, Connections: 1})
		return err
	}, nil
}

// session is one that was begun.
func (s *stage) session(ctx context.Context, length int64) (files.Session, error) {
	owner, err := auth.NewUsers(s.raw.Table, s.raw.Now).Get(ctx, alice)
	if err != nil {
		return files.Session{}, err
	}
	return file.Service(s.raw).BeginSession(ctx, owner, files.Plan{Owner: alice, Name: "film.mp4", Length: length, PartSize: partSize}, nil)
}

func beginSession(ctx context.Context, s *stage) (func() error, error) {
	body := fmt.Sprintf(`{"name":"film.mp4","length":%d}`, parts*partSize)
	return asking(201, "POST", "/uploads", body, "Authorization", "bearer", "Content-Type", "application/json")(ctx, s)
}

func onSession(method, path string, status int) preparation {
	return func(ctx context.Context, s *stage) (func() error, error) {
		it, err := s.session(ctx, 100*partSize)
		if err != nil {
			return nil, err
		}
		var numbers []string
		for n := range 100 {
			numbers = append(numbers, fmt.Sprint(n+1))
		}
		body := `{"numbers":[` + strings.Join(numbers, ",") + `]}`
		return asking(status, method, "/uploads/"+it.ID+path, body, "Authorization", "bearer", "Content-Type", "application/json")(ctx, s)
	}
}

// completeSession sends two parts, not counted, as the client would.
func completeSession(ctx context.Context, s *stage) (func() error, error) {
	it, err := s.session(ctx, 2*partSize)
	if err != nil {
		return nil, err
	}
	for number := range 2 {
		signed, err := file.Service(s.raw).SignPart(ctx, it, number+1, nil, time.Hour)
		if err != nil {
			return nil, err
		}
		if err := send(ctx, signed); err != nil {
			return nil, err
		}
	}
	return asking(200, "POST", "/uploads/"+it.ID+"/complete", "", "Authorization", "bearer")(ctx, s)
}

func send(ctx context.Context, p blob.SignedPart) error {
	r, err := http.NewRequestWithContext(ctx, p.Method, p.URL, io.LimitReader(zeros{}, partSize))
	if err != nil {
		return fmt.Errorf("sending a part: %w", err)
	}
	r.ContentLength = partSize
	for name, value := range p.Header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("sending a part: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("sending a part: %s", answer.Status)
	}
	return nil
}

func carla() []notify.Notice {
	return []notify.Notice{{Kind: notify.Link, Channel: notify.Mail, To: "carla@example.com", Lang: "en"}}
}

func recordOf(ctx context.Context, s *stage) (func() error, error) {
	id, err := s.put(ctx, small, files.Sending{Recipients: carla()})
	if err != nil {
		return nil, err
	}
	return asking(200, "GET", fmt.Sprintf("/files/%d", id), "", "Authorization", "bearer")(ctx, s)
}

// downloading stores a file and opens its link. Over a certain size the API
// leads to S3.
func downloading(size int64, area blob.Area, notify bool) preparation {
	return func(ctx context.Context, s *stage) (func() error, error) {
		path, err := s.link(ctx, size, area, notify)
		if err != nil {
			return nil, err
		}
		return func() error {
			status := http.StatusOK
			if size > s.ports.RedirectOver {
				status = http.StatusFound
			}
			answer, err := s.ask(ctx, status, "GET", path, nil, "User-Agent", "curl/8")
			if err != nil || status == http.StatusOK {
				return err
			}
			return s.get(ctx, answer.Header.Get("Location"))
		}, nil
	}
}

func (s *stage) link(ctx context.Context, size int64, area blob.Area, notify bool) (path string, err error) {
	sending, at := files.Sending{}, "/download/file?k="
	if notify {
		sending.Receipt = files.Receipt{To: "alice@example.com", Lang: "en", Base: s.raw.PublicURL}
	}
	var id int64
	if area == blob.Backup {
		at = "/download/file/backup?z="
		id, err = s.putAway(ctx)
	} else {
		id, err = s.put(ctx, size, sending)
	}
	return at + s.raw.Key.File(area, alice, id), err
}

// get gets an object of S3 as the caller does.
func (s *stage) get(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return fmt.Errorf("getting an object: %w", err)
	}
	answer, err := (&http.Client{Transport: s.meter}).Do(r)
	if err != nil {
		return fmt.Errorf("getting an object: %w", err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	s.add(outBytes, float64(n))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return err
}

func page(ctx context.Context, s *stage) (func() error, error) {
	path, err := s.link(ctx, small, blob.Files, false)
	if err != nil {
		return nil, err
	}
	return asking(200, "GET", path, "", "Accept", "text/html")(ctx, s)
}

func remove(ctx context.Context, s *stage) (func() error, error) {
	id, err := s.put(ctx, small, files.Sending{})
	if err != nil {
		return nil, err
	}
	return asking(200, "DELETE", fmt.Sprintf("/files/%d", id), "", "Authorization", "bearer")(ctx, s)
}

func restore(ctx context.Context, s *stage) (func() error, error) {
	id, err := s.putAway(ctx)
	if err != nil {
		return nil, err
	}
	return asking(200, "POST", fmt.Sprintf("/files/%d/restore", id), "", "Authorization", "bearer")(ctx, s)
}

func stopping(method string) preparation {
	return func(ctx context.Context, s *stage) (func() error, error) {
		s.users++
		path := strings.TrimPrefix(auth.StopLink(s.raw.PublicURL, "en", s.raw.Key.Stop(fmt.Sprintf("user%d@example.com", s.users))), s.raw.PublicURL)
		body := url.Values{"List-Unsubscribe": {"One-Click"}}.Encode()
		return asking(200, method, path, body, "Content-Type", formType)(ctx, s)
	}
}
