package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const smallSize = 4 << 10

// small sends and fetches many small files at once.
func (b *bench) small() ([]row, error) {
	dir, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	f, c, err := b.both(dir, true)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	up, err := b.smallUp(f, c, ">= 0.50")
	var down row
	if err == nil {
		down, err = b.smallDown(f, c)
	}
	up.memory = f.stop()
	return []row{up, down}, err
}

func (b *bench) smallUp(f, c *process, target string) (row, error) {
	r := row{what: fmt.Sprintf("uploads of 4 KiB, %d at once", b.Workers), unit: "1/s", target: target}
	bearer, err := login(f)
	if err != nil {
		return r, err
	}
	body, contentType, err := smallForm()
	if err != nil {
		return r, err
	}
	post := func(url, auth string) func() (float64, error) {
		return func() (float64, error) {
			return b.load(func() (*http.Request, error) {
				req, err := http.NewRequestWithContext(b.ctx, "POST", url, bytes.NewReader(body))
				if err == nil {
					req.Header.Set("Content-Type", contentType)
					req.Header.Set("Authorization", auth)
				}
				return req, err
			})
		}
	}
	r.ferry, r.control, r.ratio, err = pairs(b.Rounds, post(f.url+"/v1/upload", "Bearer "+bearer), post(c.url+"/upload", ""))
	return r, err
}

func (b *bench) smallDown(f, c *process) (row, error) {
	r := row{what: fmt.Sprintf("downloads of 4 KiB, %d at once", b.Workers), unit: "1/s", target: ">= 0.60"}
	link, err := b.newestLink(f)
	if err != nil {
		return r, err
	}
	get := func(url string) func() (float64, error) {
		return func() (float64, error) {
			return b.load(func() (*http.Request, error) { return http.NewRequestWithContext(b.ctx, "GET", url, nil) })
		}
	}
	r.ferry, r.control, r.ratio, err = pairs(b.Rounds, get(link), get(c.url+"/file/f1"))
	return r, err
}

func smallForm() (body []byte, contentType string, err error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	part, err := w.CreateFormFile("file", "small.bin")
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(bytes.Repeat([]byte("0123456789abcdef"), smallSize/16)); err != nil {
		return nil, "", err
	}
	err = w.Close()
	return buf.Bytes(), w.FormDataContentType(), err
}

func login(f *process) (string, error) {
	req, err := http.NewRequest("POST", f.url+"/v1/auth/login", nil)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(user, password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Bearer string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Bearer == "" {
		return "", fmt.Errorf("logging in: status %s: %w", resp.Status, err)
	}
	return answer.Bearer, nil
}

// load sends Requests requests, Workers at once, and returns how many a second
// were answered with 200.
func (b *bench) load(request func() (*http.Request, error)) (float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.Workers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.Requests))
	var wg sync.WaitGroup
	failed := make(chan error, b.Workers)
	start := time.Now()
	for range b.Workers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := send(client, request); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(b.Requests) / took, nil
	}
}

func send(client *http.Client, request func() (*http.Request, error)) error {
	req, err := request()
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s: %s", resp.Status, resp.Header.Get("Ferry-Error"))
	}
	return nil
}
