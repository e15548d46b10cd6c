package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// large sends and fetches a large file with curl.
func (b *bench) large() ([]row, error) {
	dir, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	f, c, err := b.both(dir, true)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	source, err := b.source()
	if err != nil {
		f.stop()
		return nil, err
	}
	up, err := b.largeUp(f, c, source)
	if err != nil {
		f.stop()
		return nil, err
	}
	up.memory = f.stop()
	if f, err = b.ferry(dir, true); err != nil { // anew, so that the peak is the download's own
		return nil, err
	}
	down, err := b.largeDown(f, c)
	down.memory = f.stop()
	return []row{up, down}, err
}

// both starts ferry and the control.
func (b *bench) both(dir string, sync bool) (f, c *process, err error) {
	if f, err = b.ferry(dir, sync); err != nil {
		return nil, nil, err
	}
	if c, err = b.control(sync); err != nil {
		f.stop()
		return nil, nil, err
	}
	return f, c, nil
}

// source makes the file to send; its pages are in memory from then on.
func (b *bench) source() (string, error) {
	path := filepath.Join(b.dir, "source")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.Reader, b.Large); err != nil {
		return "", err
	}
	return path, f.Sync()
}

func (b *bench) largeUp(f, c *process, source string) (row, error) {
	r := row{what: fmt.Sprintf("upload of %d MiB, curl -F", b.Large>>20), unit: "MB/s", target: ">= 0.80"}
	var err error
	r.ferry, r.control, r.ratio, err = pairs(b.Rounds,
		func() (float64, error) {
			return b.curl("-u", user+":"+password, "-F", "file=@"+source, "-o", os.DevNull, f.url+"/v1/upload")
		},
		func() (float64, error) {
			return b.curl("-F", "file=@"+source, "-o", os.DevNull, c.url+"/upload")
		})
	return r, err
}

func (b *bench) largeDown(f, c *process) (row, error) {
	r := row{what: fmt.Sprintf("download of %d MiB, curl", b.Large>>20), unit: "MB/s", target: ">= 0.90"}
	link, err := b.newestLink(f)
	if err != nil {
		return r, err
	}
	r.ferry, r.control, r.ratio, err = pairs(b.Rounds,
		func() (float64, error) { return b.curl("-o", os.DevNull, link) },
		func() (float64, error) { return b.curl("-o", os.DevNull, c.url+"/file/f1") })
	return r, err
}

// curl runs curl and returns the megabytes a second of the large file.
func (b *bench) curl(args ...string) (float64, error) {
	cmd := exec.CommandContext(b.ctx, "curl", append([]string{"-sS", "--fail"}, args...)...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("curl: %w", err)
	}
	return float64(b.Large) / 1e6 / time.Since(start).Seconds(), nil
}

// newestLink is the download link of the newest file.
func (b *bench) newestLink(f *process) (string, error) {
	out, err := exec.CommandContext(b.ctx, "curl", "-sS", "--fail", "-u", user+":"+password, f.url+"/v1/download/list?limit=1").Output()
	if err != nil {
		return "", fmt.Errorf("listing: %w", err)
	}
	var answer struct {
		Files []struct{ LinkURL string }
	}
	if err := json.Unmarshal(out, &answer); err != nil || len(answer.Files) == 0 {
		return "", fmt.Errorf("no file is listed: %s", strings.TrimSpace(string(out)))
	}
	return answer.Files[0].LinkURL, nil
}
