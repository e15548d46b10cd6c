package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"

	"ferry/shared/wire"
)

// parts asks for the state of a session that has as many parts as there can
// be, and completes it.
func (b *bench) parts() ([]row, error) {
	dir, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	f, err := b.ferry(dir, true)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	s := &manyParts{bench: b, url: f.url + "/v1"}
	if err := s.prepare(dir); err != nil {
		return nil, err
	}
	state := row{what: fmt.Sprintf("state of %d parts", blob.MaxParts), unit: "ms", target: "<= 30000, 256 MiB"}
	if state.ferry, err = s.state(); err != nil {
		return nil, err
	}
	state.memory = f.peak()
	complete := row{what: fmt.Sprintf("complete of %d parts", blob.MaxParts), unit: "ms", target: "<= 30000, 256 MiB"}
	if complete.ferry, err = s.complete(); err != nil {
		return nil, err
	}
	complete.memory = f.peak()
	return []row{state, complete}, nil
}

// manyParts is a session of the smallest parts there can be, all zeros.
type manyParts struct {
	*bench
	url, bearer, id string
	sum             uint64 // of a part
}

// prepare sends one part, and has the store take all others for equal: they are
// the holes of a sparse file, so that 50 GB need neither be sent nor written.
func (s *manyParts) prepare(dir string) error {
	var login struct{ Bearer string }
	var session struct{ ID string }
	var signed struct{ Parts []struct{ URL string } }
	zeros := make([]byte, blob.MinPartSize)
	s.sum = crc64nvme.Checksum(zeros)
	if err := s.ask("POST", s.url+"/auth/login", nil, &login); err != nil {
		return err
	}
	s.bearer = login.Bearer
	plan := fmt.Sprintf(`{"name":"zeros","length":%d,"partSize":%d}`, int64(blob.MaxParts)*blob.MinPartSize, blob.MinPartSize)
	if err := s.ask("POST", s.url+"/uploads", []byte(plan), &session); err != nil {
		return err
	}
	s.id = session.ID
	if err := s.ask("POST", s.url+"/uploads/"+s.id+"/parts", []byte(`{"numbers":[1]}`), &signed); err != nil {
		return err
	}
	if err := s.ask("PUT", signed.Parts[0].URL, zeros, nil); err != nil {
		return err
	}
	return repeatMark(dir)
}

// repeatMark writes what tells that the first part is there for all parts.
func repeatMark(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "parts", "*", "marks"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d sessions are there", len(found))
	}
	if err != nil {
		return err
	}
	marks, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	return os.WriteFile(found[0], bytes.Repeat(marks[:len(marks)/blob.MaxParts], blob.MaxParts), 0o600)
}

// state returns the milliseconds that it takes.
func (s *manyParts) state() (float64, error) {
	var state struct{ Arrived []struct{ Number int } }
	start := time.Now()
	err := s.ask("GET", s.url+"/uploads/"+s.id, nil, &state)
	took := time.Since(start)
	if err == nil && len(state.Arrived) != blob.MaxParts {
		err = fmt.Errorf("%d parts have arrived", len(state.Arrived))
	}
	return took.Seconds() * 1000, err
}

// complete states the checksum of the whole, which the service compares.
func (s *manyParts) complete() (float64, error) {
	whole := s.sum
	for range blob.MaxParts - 1 {
		whole = wire.CombineCRC64(whole, s.sum, blob.MinPartSize)
	}
	body := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(whole))
	start := time.Now()
	err := s.ask("POST", s.url+"/uploads/"+s.id+"/complete", []byte(body), nil)
	return time.Since(start).Seconds() * 1000, err
}

func (s *manyParts) ask(method, url string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(s.ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if r.SetBasicAuth(user, password); s.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		path, _, _ := strings.Cut(url, "?")
		return fmt.Errorf("%s %s: %s (%s)", method, path, resp.Status, resp.Header.Get("Ferry-Error"))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
