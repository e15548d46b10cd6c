package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	user      = "bench"
	password  = "a password for the bench"
	clearSize = 64 << 20 // bytes of the smallest large file
)

// bench holds what the measurements share. Small files stay until the end:
// deleting many slows a file system down for a while.
type bench struct {
	scale
	ctx  context.Context
	dir  string
	tool string // the ferry binary
	next int
}

func newBench(ctx context.Context, s scale) (*bench, error) {
	dir, err := os.MkdirTemp(os.Getenv("FERRY_BENCH_DIR"), "ferry-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{scale: s, ctx: ctx, dir: dir, tool: filepath.Join(dir, "ferry")}
	fmt.Fprintln(os.Stderr, "building ferry ...")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.tool, "./infra/ferry")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		b.close()
		return nil, fmt.Errorf("building ferry: %w", err)
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// clear removes the large files.
func (b *bench) clear() error {
	return filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == b.tool {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() >= clearSize {
			err = os.Remove(path)
		}
		return err
	})
}

// folder makes a new folder.
func (b *bench) folder(name string) (string, error) {
	b.next++
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.next))
	return dir, os.MkdirAll(dir, 0o700)
}

// process is a server that was started.
type process struct {
	*exec.Cmd
	url string // of the server's root
}

// stop ends the process and returns its peak memory in bytes.
func (p *process) stop() int64 {
	peak := p.peak()
	_ = p.Process.Signal(syscall.SIGTERM)
	_ = p.Wait()
	return peak
}

// peak is the largest resident memory so far.
func (p *process) peak() int64 { return p.status("VmHWM:") }

func (p *process) status(field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// control starts the control.
func (b *bench) control(sync bool) (*process, error) {
	dir, err := b.folder("control")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	mode := "nosync"
	if sync {
		mode = "sync"
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return b.start(addr, "/file/none", nil, self, "control", addr, dir, mode)
}

// ferry starts ferry serve on the data in a folder, with a user.
func (b *bench) ferry(dir string, sync bool, env ...string) (*process, error) {
	add := exec.CommandContext(b.ctx, b.tool, "user", "add", user, "--active", "--password-stdin", "--data", dir)
	add.Stdin = strings.NewReader(password + "\n")
	if out, err := add.CombinedOutput(); err != nil && !bytes.Contains(out, []byte("exists already")) {
		return nil, fmt.Errorf("adding a user: %w: %s", err, out)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	fsync := "off"
	if sync {
		fsync = "on"
	}
	env = append(env, "FERRY_DATA="+dir, "FERRY_ADDR="+addr, "FERRY_FSYNC="+fsync, "FERRY_LOG=off")
	return b.start(addr, "/v1/health", env, b.tool, "serve")
}

func (b *bench) start(addr, ready string, env []string, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, "http://" + addr}
	for range 200 {
		resp, err := http.Get(p.url + ready)
		if err == nil {
			resp.Body.Close()
			return p, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.stop()
	return nil, errors.New(filepath.Base(name) + " did not start")
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
