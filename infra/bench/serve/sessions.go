package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// sessions sends a file that is larger than most memories with ferry up, in
// parts, and compares with a copy of the same file on the same disk.
func (b *bench) sessions() ([]row, error) {
	dir, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	f, err := b.ferry(dir, true)
	if err != nil {
		return nil, err
	}
	r := row{what: fmt.Sprintf("ferry up of %d MiB", b.Huge>>20), unit: "MB/s", target: ">= 0.70"}
	client := row{what: "  its client", unit: "MB/s"}
	sources, err := b.files(b.HugeRounds+1, b.Huge)
	if err != nil {
		f.stop()
		return nil, err
	}
	next := 0
	r.ferry, r.control, r.ratio, err = pairs(b.HugeRounds,
		func() (speed float64, err error) {
			speed, peak, err := b.up(f, sources[next])
			client.memory = max(client.memory, peak)
			return speed, err
		},
		func() (float64, error) {
			next++
			return b.copy(sources[next-1])
		})
	client.ferry, r.memory = r.ferry, f.stop()
	return []row{r, client}, err
}

// files makes files of as many bytes: the client goes on with one that it knows.
func (b *bench) files(n int, size int64) (paths []string, err error) {
	random := make([]byte, 1<<20)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	for i := range n {
		path := filepath.Join(b.dir, fmt.Sprintf("file-%d-%d", size, i))
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		for at := int64(0); at < size && err == nil; at += int64(len(random)) {
			copy(random, fmt.Sprintf("%020d", at))
			_, err = f.Write(random)
		}
		if err == nil {
			err = f.Sync()
		}
		if closed := f.Close(); err != nil || closed != nil {
			return nil, fmt.Errorf("making a file: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// up returns the speed, and the client's peak memory in bytes.
func (b *bench) up(f *process, path string) (speed float64, peak int64, err error) {
	cmd := b.client(f.url, "up", path)
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("ferry up: %w", err)
	}
	took := time.Since(start).Seconds()
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = used.Maxrss << 10
	}
	return float64(b.Huge) / 1e6 / took, peak, nil
}

// client is the command with the bench's user, against the server at a URL.
func (b *bench) client(url string, args ...string) *exec.Cmd {
	home := filepath.Join(b.dir, "home")
	cmd := exec.CommandContext(b.ctx, b.tool, append(args, "--url", url+"/v1")...)
	cmd.Env = append(os.Environ(), "FERRY_USER="+user, "FERRY_PASSWORD="+password, "HOME="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// copy is cp and then sync of the copy.
func (b *bench) copy(path string) (float64, error) {
	start := time.Now()
	for _, args := range [][]string{{"cp", path, path + ".copy"}, {"sync", path + ".copy"}} {
		if out, err := exec.CommandContext(b.ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	took := time.Since(start).Seconds()
	return float64(b.Huge) / 1e6 / took, os.Remove(path + ".copy")
}
