package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// small is how many files there are in a bundle of small files.
const small = 1000

func (b *bench) bundles() []measurement {
	large := func(text string) string { return fmt.Sprintf(text, b.large>>20) }
	return []measurement{
		{
			"bundles",
			"ferry up of 1,000 files of 4 KiB, against --each, 16 at once",
			"1/s",
			">= 10",
			b.rounds,
			0,
			b.smallBundle,
		},
		{
			"bundles",
			large("ferry up of a bundle of %d MiB, against one file"),
			"MB/s",
			">= 0.80",
			b.rounds,
			0,
			b.largeBundle,
		},
		{
			"bundles",
			large("ferry get that unpacks %d MiB, against its upload"),
			"MB/s",
			">= 0.70",
			b.rounds,
			0,
			b.unpack,
		},
		{
			"visitors",
			"first page of a bundle of 10,000 entries, 20 at once after a start, against 400 MiB",
			"s",
			"<= 1.60",
			b.rounds,
			0,
			b.visitors,
		},
	}
}

// as renames a subject that is the control, which is a ferry, too. It then serves and logs in.
func (b *bench) as(s *subject, control string) (isControl bool) {
	if isControl = s.name == "control"; isControl {
		s.name, s.tool = control, filepath.Join(b.dir, "ferry")
	}
	b.serve(s, "on")
	s.login()
	s.enter(b)
	return isControl
}

// enter logs in the client.
func (s *subject) enter(b *bench) {
	cmd := s.ferry(b, "login", s.url, "--user", user, "--password-stdin")
	cmd.Stdin = strings.NewReader(password)
	check(cmd.Run())
}

// ferry returns a command of the client, which keeps its login with the server's data.
func (s *subject) ferry(b *bench, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, s.tool, args...)
	cmd.Env = append(
		os.Environ(),
		"HOME="+s.dir,
		"XDG_CACHE_HOME="+s.dir,
		"XDG_CONFIG_HOME="+s.dir,
	)
	return cmd
}

// timed runs a command of the client, and notes its memory.
func (s *subject) timed(amount float64, cmd *exec.Cmd) float64 {
	speed := timed(amount, cmd)
	s.note = fmt.Sprintf(", client %d MiB",
		cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
	return speed
}

// up sends a file or folder. It makes one of the files look new, because the client would otherwise
// resume an upload.
func (s *subject) up(b *bench, size int64, path, renewed string) float64 {
	check(os.Chtimes(renewed, time.Time{}, time.Now()))
	return s.timed(megabytes(size), s.ferry(b, "up", path))
}

// smallBundle sends many small files as one bundle. The control sends each file separately.
func (b *bench) smallBundle(s *subject) {
	tree := filepath.Join(b.dir, "small")
	check(os.MkdirAll(tree, 0o700))
	for i := range small {
		name := filepath.Join(tree, fmt.Sprintf("%04d.bin", i))
		check(os.WriteFile(name, bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 2048), 0o600))
	}
	args := []string{"up", tree}
	if b.as(s, "each file") {
		args = append([]string{
			"up", "--each", "--connections", "16",
		}, must(filepath.Glob(tree+"/*"))...)
	}
	s.op = func() float64 { return s.timed(small, s.ferry(b, args...)) }
}

// tree returns a folder with files of 64 MiB that add up to the size of a large file, and one of them.
func (b *bench) tree() (dir, file string) {
	dir = filepath.Join(b.dir, "tree")
	const each = 64 << 20
	check(os.MkdirAll(dir, 0o700))
	for i := range b.large / each {
		if name := filepath.Join(dir, fmt.Sprint(i)); must(filepath.Glob(name)) == nil {
			check(os.Link(b.source(each), name))
		}
	}
	return dir, filepath.Join(dir, "0")
}

func (b *bench) largeBundle(s *subject) {
	path, renewed := b.tree()
	if b.as(s, "one file") {
		path = b.source(b.large)
		renewed = path
	}
	s.op = func() float64 { return s.up(b, b.large, path, renewed) }
}

// unpack downloads a bundle and unpacks it as it arrives. The control uploads the bundle.
func (b *bench) unpack(s *subject) {
	path, renewed := b.tree()
	upload := func() float64 { return s.up(b, b.large, path, renewed) }
	if b.as(s, "its upload") {
		s.op = upload
		return
	}
	upload()
	to := filepath.Join(s.dir, "unpacked")
	s.op = func() float64 {
		check(os.RemoveAll(to))
		return s.timed(megabytes(b.large), s.ferry(b, "get", s.link(), "-o", to))
	}
}

// visitors opens the page of a large bundle in several browsers at once, on a server that has just
// started. The control's garbage collector may use 400 MiB.
func (b *bench) visitors(s *subject) {
	const entries, visitors = 10_000, 20
	var env []string
	if s.name == control {
		s.name, s.tool, env = "400 MiB", filepath.Join(
			b.dir,
			"ferry",
		), []string{"GOMEMLIMIT=400MiB"}
	}
	b.serve(s, "off", env...)
	s.login()
	s.bundle(entries, "a folder/and another one/file number %d.txt")
	_, token, _ := strings.Cut(s.link(), "k=")
	page := s.root() + "l?k=" + token
	s.op = func() float64 {
		s.restart()
		return visitors / s.load(visitors, visitors, "GET", page, nil, "")
	}
}
