package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ferry/infra/bench/gate"
)

const (
	connections = 4        // the command's own number
	part        = 16 << 20 // the service's own size
	// overhead is more than all requests of an upload have besides the bytes
	// of parts.
	overhead = 1 << 20
)

// kills sends a file with ferry up while the client and the server are killed
// in turn, at random moments, and counts what went to the server more often
// than once.
func (b *bench) kills() (rows []row, err error) {
	k := &killed{bench: b}
	if k.gate, err = gate.Open(); err != nil {
		return nil, err
	}
	defer k.gate.Close()
	if k.dir, err = b.folder("data"); err != nil {
		return nil, err
	}
	sources, err := b.files(1, b.Killed)
	if err != nil {
		return nil, err
	}
	if err := k.serve(); err != nil {
		return nil, err
	}
	defer func() { k.server.stop() }()
	if err := k.upload(sources[0]); err != nil {
		return nil, err
	}
	again := k.gate.In() - b.Killed
	if err := k.compare(sources[0]); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%.1f MiB went to the server more often than once\n", float64(again)/(1<<20))
	return []row{{
		what:   fmt.Sprintf("ferry up of %d MiB, %d kills: parts sent again", b.Killed>>20, b.Kills),
		ferry:  float64(max(0, again-overhead+part-1) / part),
		unit:   fmt.Sprintf("parts of %d MiB", part>>20),
		target: fmt.Sprintf("<= %d", b.Kills*connections),
	}}, nil
}

// killed is an upload whose ends are killed.
type killed struct {
	*bench
	gate   *gate.Gate
	dir    string
	server *process
	client *exec.Cmd
	exited chan error // the client
}

func (k *killed) url() string { return "http://" + k.gate.Addr() }

func (k *killed) serve() (err error) {
	k.server, err = k.ferry(k.dir, true, "FERRY_PUBLIC_URL="+k.url()+"/v1")
	if err == nil {
		k.gate.Lead(strings.TrimPrefix(k.server.url, "http://"))
	}
	return err
}

func (k *killed) send(path string) error {
	k.client = k.bench.client(k.url(), "up", path)
	k.client.Stderr = nil // it tells of each try that fails
	if err := k.client.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	k.exited = exited
	go func(c *exec.Cmd) { exited <- c.Wait() }(k.client)
	return nil
}

// upload kills when a random number of bytes have gone through since the last
// time: all together fewer than the file has, so that none comes too late.
func (k *killed) upload(path string) error {
	if err := k.send(path); err != nil {
		return err
	}
	for i := range k.Kills {
		mark := k.gate.In() + rand.Int64N(k.Killed/int64(k.Kills))
		if err := k.reach(mark); err != nil {
			return err
		}
		var err error
		if i%2 == 0 {
			_ = k.client.Process.Kill()
			<-k.exited
			err = k.send(path)
		} else {
			_ = k.server.Process.Kill()
			_ = k.server.Wait()
			err = k.serve()
		}
		if err != nil {
			return err
		}
	}
	if err := <-k.exited; err != nil {
		return fmt.Errorf("ferry up: %w", err)
	}
	return nil
}

// reach waits until so many bytes have gone through.
func (k *killed) reach(mark int64) error {
	for k.gate.In() < mark {
		select {
		case err := <-k.exited:
			return errors.Join(errors.New("the client ended before it was killed"), err)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// compare fetches the file, whose digest the client checks, and compares it
// with the one that was sent.
func (k *killed) compare(path string) error {
	got := path + ".got"
	if err := k.bench.client(k.url(), "get", filepath.Base(path), "-o", got).Run(); err != nil {
		return fmt.Errorf("ferry get: %w", err)
	}
	if out, err := exec.CommandContext(k.ctx, "cmp", path, got).CombinedOutput(); err != nil {
		return fmt.Errorf("other bytes have arrived: %w: %s", err, out)
	}
	return os.Remove(got)
}
