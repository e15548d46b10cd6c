package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/infra/stack/emulated"
)

func (b *bench) measurements() []measurement {
	large := func(text string) string { return fmt.Sprintf(text, b.large>>20) }
	return []measurement{
		{
			"large", large("upload of %d MiB, curl -F"), "MB/s", ">= 0.80", b.rounds, 0,
			b.on("on", b.upload),
		},
		{
			"large", large("download of %d MiB, curl"), "MB/s", ">= 0.95", b.rounds, 0,
			b.on("on", b.download),
		},
		{
			"large",
			large("download of %d MiB that was just stored, curl"),
			"MB/s",
			">= 0.95",
			b.rounds,
			0,
			b.on("on", b.downloadNew),
		},
		{
			"small", "uploads of 4 KiB, 16 at once", "1/s", ">= 0.50", b.rounds, b.requests,
			b.on("on", b.post),
		},
		{
			"small", "downloads of 4 KiB, 16 at once", "1/s", ">= 0.60", b.rounds, b.requests,
			b.on("on", b.get),
		},
		{
			"list",
			fmt.Sprintf("page of 100 from %d files", b.area),
			"µs",
			"<= 1.20",
			2 * b.rounds,
			300,
			b.list,
		},
		{
			"nosync",
			large("upload of %d MiB, curl -F, no fsync"),
			"MB/s",
			"",
			b.rounds,
			0,
			b.on("off", b.upload),
		},
		{
			"nosync", "uploads of 4 KiB, no fsync", "1/s", "", b.rounds, b.requests,
			b.on("off", b.post),
		},
		{"nosync", "memory of an idle server", "MB", "", 0, 0, b.idle},
		{
			"sessions", large("ferry up of 4 x %d MiB"), "MB/s", ">= 0.70", (b.rounds + 1) / 2, 0,
			b.sessions,
		},
		{"notices", "notices by mail, 4 at once", "1/s", ">= 0.25", b.rounds, 0, b.notices},
	}
}

// on returns a function that starts a server and prepares the measurement.
func (b *bench) on(sync string, prepare func(*subject)) func(*subject) {
	return func(s *subject) {
		b.serve(s, sync)
		s.login()
		prepare(s)
	}
}

// source makes a file to send, whose pages are then in memory, and returns its path.
func (b *bench) source(size int64) string {
	path := filepath.Join(b.dir, fmt.Sprintf("source-%d", size))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	f := must(os.Create(path))
	defer f.Close()
	must(io.CopyN(f, rand.Reader, size))
	check(f.Sync())
	return path
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// timed runs a command that does an amount of something, and returns how much it does per second.
func timed(amount float64, cmd *exec.Cmd) float64 {
	cmd.Stderr = os.Stderr
	start := time.Now()
	check(cmd.Run())
	return amount / time.Since(start).Seconds()
}

func (b *bench) curl(args ...string) float64 {
	args = append(args, "-sS", "--fail", "-o", os.DevNull)
	return timed(megabytes(b.large), exec.CommandContext(b.ctx, "curl", args...))
}

// upload sends the large file.
func (b *bench) upload(s *subject) {
	file := "file=@" + b.source(b.large)
	s.op = func() float64 {
		return b.curl("-H", "Authorization: "+s.authorization, "-F", file, s.url+"/upload")
	}
}

func (b *bench) download(s *subject) {
	b.upload(s)
	s.op()
	link := s.link()
	s.op = func() float64 { return b.curl(link) }
}

// downloadNew downloads a file that was just uploaded, a different one each time.
func (b *bench) downloadNew(s *subject) {
	b.upload(s)
	upload, n := s.op, 0
	s.op = func() float64 {
		upload()
		n++
		link := s.link()
		if s.name == control {
			link = fmt.Sprintf("%s/file/f%d", s.url, n)
		}
		return b.curl(link)
	}
}

func (b *bench) post(s *subject) {
	s.op = func() float64 { return s.files(b.requests, 1, "") }
}

func (b *bench) get(s *subject) {
	s.files(1, 1, "")
	link := s.link()
	s.op = func() float64 { return s.load(b.requests, 16, "GET", link, nil, "") }
}

// list fetches pages of 100 files from a large area; the control is a small area.
func (b *bench) list(s *subject) {
	forms := b.area / 20
	if s.name == control {
		s.name, s.tool, forms = "100 files", filepath.Join(b.dir, "ferry"), 5
	}
	b.serve(s, "off")
	s.login()
	s.files(forms, 20, "")
	s.op = func() float64 {
		return 1e6 / s.load(300, 1, "GET", s.url+"/download/list?limit=100", nil, "")
	}
}

// idle measures the memory of a server that has just started.
func (b *bench) idle(s *subject) {
	b.serve(s, "off")
	s.op = func() float64 {
		time.Sleep(2 * time.Second)
		return float64(s.memory("VmRSS:")) / 1e6
	}
}

// sessions sends a file larger than most machines' memory with `ferry up`, in parts. The control
// copies the file on the same disk.
func (b *bench) sessions(s *subject) {
	path, size := b.source(4*b.large), 4*b.large
	if s.name == control {
		s.op = func() float64 {
			defer os.Remove(path + ".copy")
			cmd := exec.CommandContext(
				b.ctx,
				"sh",
				"-c",
				`cp "$1" "$1.copy" && sync "$1.copy"`,
				"sh",
				path,
			)
			return timed(megabytes(size), cmd)
		}
		return
	}
	b.serve(s, "on")
	s.enter(b)
	s.op = func() float64 { return s.up(b, size, path, path) }
}

// form returns a form of files whose names have their numbers, and its type.
func form(files int, name string, content []byte) (body []byte, kind string) {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for i := range files {
		must(must(w.CreateFormFile("file", fmt.Sprintf(name, i))).Write(content))
	}
	check(w.Close())
	return text.Bytes(), w.FormDataContentType()
}

// files sends forms with a number of files of 4 KiB, and returns the forms per second.
func (p *process) files(forms, each int, query string) float64 {
	body, kind := form(each, "small-%d.bin", bytes.Repeat([]byte("0123456789abcdef"), 256))
	return p.load(forms, 16, "POST", p.url+"/upload"+query, body, kind)
}

// parallel calls do a number of times, several calls at once, and returns the calls per second.
func parallel(times, atOnce int, do func() error) float64 {
	var all errgroup.Group
	all.SetLimit(atOnce)
	start := time.Now()
	for range times {
		all.Go(do)
	}
	check(all.Wait())
	return float64(times) / time.Since(start).Seconds()
}

// load sends requests, several at once, and returns how many succeeded per second.
func (p *process) load(
	requests, atOnce int,
	method, url string,
	body []byte,
	kind string,
) float64 {
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: atOnce,
		DisableCompression:  true,
	}}
	defer client.CloseIdleConnections()
	return parallel(requests, atOnce, func() error {
		_, err := p.send(client, method, url, body, kind)
		return err
	})
}

func (p *process) send(
	client *http.Client,
	method, url string,
	body []byte,
	kind string,
) ([]byte, error) {
	r := must(http.NewRequest(method, url, bytes.NewReader(body)))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", p.authorization)
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		path, _, _ := strings.Cut(url, "?")
		err = fmt.Errorf("%s %s: %s (%s)",
			method, path, resp.Status, resp.Header.Get("Ferry-Error"))
	}
	return answer, err
}

// ask sends one request and reads the answer.
func (p *process) ask(method, path, body string, into any) {
	answer := must(p.send(
		http.DefaultClient,
		method,
		p.url+path,
		[]byte(body),
		"application/json",
	))
	check(json.Unmarshal(answer, into))
}

// link returns the download link of the newest file.
func (s *subject) link() string {
	if s.name == control {
		return s.url + "/file/f1"
	}
	var list struct{ Files []struct{ LinkURL string } }
	s.ask("GET", "/download/list?limit=1", "", &list)
	return list.Files[0].LinkURL
}

// functions measures the time from the start of each function's process to its first poll of the
// runtime API, and its memory at that point. The control is a function that does nothing.
func (b *bench) functions() (all []measurement) {
	here := filepath.Join(b.dir, "here") + "/"
	check(emulated.Build(b.ctx, ".", here, "infra/bench/empty.go"))
	check(emulated.Build(b.ctx, ".", here, "./functions/..."))
	for _, main := range must(filepath.Glob("functions/*/main.go")) {
		name := filepath.Base(filepath.Dir(main))
		all = append(all, measurement{
			"start",
			"start of " + name,
			"ms",
			"<= 2.50",
			8 * b.rounds,
			0,
			func(s *subject) {
				program := map[bool]string{true: "empty", false: name}[s.name == control]
				s.op = func() float64 {
					took, memory := b.startOnce(here + program)
					s.note = fmt.Sprintf("%d MiB", memory>>20)
					return took
				}
			},
		})
	}
	return all
}
