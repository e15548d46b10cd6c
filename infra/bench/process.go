package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	control  = "control"
	user     = "bench"
	password = "a password for the bench"
)

// process is a running server. A nil process uses no CPU time.
type process struct {
	*exec.Cmd
	dir                string // its data
	url, authorization string
}

// memory returns a figure of the process's memory in bytes, or 0 if it is unknown.
func (p *process) memory(field string) int64 { return memory(p.Process.Pid, field) }

func memory(pid int, field string) (kib int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), field)
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// cpuTime returns the CPU time used so far in µs. Linux counts it in ticks of 10 ms.
func (p *process) cpuTime() (µs float64) {
	if p == nil {
		return 0
	}
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid)))
	for _, ticks := range strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))[12:14] {
		µs += 10_000 * must(strconv.ParseFloat(ticks, 64))
	}
	return µs
}

// end ends all servers and removes large files. Small ones stay until the end:
// deleting many slows a file system down for a while.
func (b *bench) end() {
	for _, p := range b.started {
		_ = p.Process.Signal(syscall.SIGTERM)
		_ = p.Wait()
		_ = exec.Command("find", p.dir, "-type", "f", "-size", "+32M", "-delete").Run()
	}
	b.started = nil
}

// serve starts `ferry serve` on new data with one user, or the control.
func (b *bench) serve(s *subject, sync string, env ...string) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	l.Close()
	s.process = &process{dir: must(os.MkdirTemp(b.dir, "data-")), url: "http://" + addr}
	s.Cmd = exec.CommandContext(b.ctx, must(os.Executable()), control, addr, s.dir, sync)
	if s.name != control {
		s.url += "/v1"
		add := exec.CommandContext(
			b.ctx,
			s.tool,
			"user",
			"add",
			user,
			"--active",
			"--password-stdin",
			"--data",
			s.dir,
		)
		add.Stdin = strings.NewReader(password + "\n")
		check(add.Run())
		s.Cmd = exec.CommandContext(b.ctx, s.tool, "serve")
		env = append(
			env,
			"FERRY_DATA="+s.dir,
			"FERRY_ADDR="+addr,
			"FERRY_FSYNC="+sync,
			"FERRY_LOG=off",
		)
		s.Env = append(os.Environ(), env...)
	}
	b.started = append(b.started, s.process)
	s.start(addr)
}

// restart ends a server and starts it again, so that nothing is cached.
func (p *process) restart() {
	check(p.Process.Signal(syscall.SIGTERM))
	check(p.Wait())
	env := p.Env
	p.Cmd = exec.Command(p.Path, p.Args[1:]...)
	p.Env = env
	p.start(strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/v1"))
}

// start starts a server and waits until it listens.
func (p *process) start(addr string) {
	p.Stderr, p.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(p.Start())
	for range 200 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	check(fmt.Errorf("%s did not start", p.Cmd))
}

// login logs in. The control needs no login.
func (s *subject) login() {
	if s.name != control {
		s.authorization = "Basic " +
			base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		var login struct{ Bearer string }
		s.ask("POST", "/auth/login", "", &login)
		s.authorization = "Bearer " + login.Bearer
	}
}

// runControl does the least that a server can do with a file: it reads the form's part through a
// buffer of 256 KiB and writes it with one fsync, and sends it with http.ServeFile. A request that
// fails ends its connection.
func runControl(addr, dir string, sync bool) {
	var n atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		name := fmt.Sprintf("f%d", n.Add(1))
		receive(r, filepath.Join(dir, name), sync)
		fmt.Fprintln(w, name)
	})
	mux.HandleFunc("GET /file/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, r.PathValue("name")))
	})
	check(http.ListenAndServe(addr, mux))
}

func receive(r *http.Request, path string, sync bool) {
	size := min(256<<10, int(max(r.ContentLength, 1)))
	r.Body = io.NopCloser(bufio.NewReaderSize(r.Body, size))
	part := must(must(r.MultipartReader()).NextPart())
	f := must(os.Create(path))
	defer f.Close()
	out := bufio.NewWriterSize(f, size)
	must(io.Copy(struct{ io.Writer }{out}, part))
	check(out.Flush())
	if sync {
		check(f.Sync())
	}
}

// startOnce starts a function and ends it at its first poll of the runtime API. It returns
// how many milliseconds that took, and the function's memory then.
func (b *bench) startOnce(path string) (took float64, used int64) {
	api := must(net.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener)
	defer api.Close()
	cmd := exec.CommandContext(b.ctx, path)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + api.Addr().String(),
		"AWS_REGION=eu-south-1",
		"FERRY_MOVER=sweep",
		"AWS_ACCESS_KEY_ID=id",
		"AWS_SECRET_ACCESS_KEY=secret",
		"AWS_SESSION_TOKEN=session",
		"FERRY_TABLE=table",
		"FERRY_FILES_BUCKET=files",
		"FERRY_BACKUP_BUCKET=backup",
		"FERRY_KEY_PARAMETER=/link-key",
		"FERRY_MAIL_EVENTS=mail",
		"FERRY_NOTICES_TOPIC=arn:aws:sns:eu-south-1:1:notices",
		"FERRY_EVENTS_TOPIC=arn:aws:sns:eu-south-1:1:events",
		"FERRY_QUEUE=https://sqs.eu-south-1.amazonaws.com/1/mail",
		"FERRY_MAIL_FROM=a@example.com",
	}
	began := time.Now()
	check(api.SetDeadline(began.Add(10 * time.Second)))
	check(cmd.Start())
	poll := must(api.Accept())
	defer poll.Close()
	must(http.ReadRequest(bufio.NewReader(poll)))
	took, used = time.Since(began).Seconds()*1000, memory(cmd.Process.Pid, "VmHWM:")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return took, used
}
