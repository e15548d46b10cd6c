package emulated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/minio/crc64nvme"

	"ferry/shared/blob"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// manyParts runs a session with the largest number of parts, each of one byte, and checks
// the function's time and memory.
func manyParts(t *testing.T, c *Cloud) {
	d := deploy(t, c, nil)
	data := make([]byte, blob.MaxParts)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	var s struct {
		ID      string
		Parts   int
		Arrived []struct{ Number int }
	}
	ask := func(method, path, body string, status int, into any) {
		t.Helper()
		check(t, json.Unmarshal(d.call(method, path, "application/json", body, status), into))
	}
	ask("POST", "/uploads", fmt.Sprintf(`{"name":"many","length":%d}`, len(data)), 201, &s)
	session := table.Key{PK: "upload#" + s.ID, SK: "upload"}
	check(t, d.ports.Table.Write(t.Context(), table.Update(session).Set("partSize", int64(1))))
	d.sendTiny(s.ID, data)
	ask("GET", "/uploads/"+s.ID, "", 200, &s)
	if s.Parts != len(data) || len(s.Arrived) != len(data) || s.Arrived[len(data)-1].Number != len(data) {
		t.Errorf("the session has %d parts, %d have arrived", s.Parts, len(s.Arrived))
	}
	type answer struct {
		Files []struct{ ID, Length int64 }
	}
	var first, again answer
	whole := fmt.Sprintf(`{"crc64nvme":%q}`, wire.CRC64Text(crc64nvme.Checksum(data)))
	ask("POST", "/uploads/"+s.ID+"/complete", whole, 200, &first)
	ask("POST", "/uploads/"+s.ID+"/complete", "", 200, &again)
	if len(first.Files) != 3 || first.Files[0] != again.Files[0] || first.Files[0].Length != blob.MaxParts {
		t.Errorf("the answers are %+v and %+v", first, again)
	}
	d.fits("Uploads")
}

// sendTiny sends parts of one byte, as many as can be signed at a time.
func (d *deployed) sendTiny(id string, data []byte) {
	d.Helper()
	const each = 100
	type part struct {
		Number      int
		Method, URL string
		Headers     map[string]string
	}
	var all sync.WaitGroup
	lanes := make(chan struct{}, 8)
	for from := 0; from < len(data); from += each {
		var in struct {
			Numbers   []int             `json:"numbers"`
			CRC64NVME map[string]string `json:"crc64nvme"`
		}
		in.CRC64NVME = map[string]string{}
		for i := from; i < from+each; i++ {
			in.Numbers = append(in.Numbers, i+1)
			in.CRC64NVME[strconv.Itoa(i+1)] = wire.CRC64Text(crc64nvme.Checksum(data[i : i+1]))
		}
		var signed struct{ Parts []part }
		check(
			d,
			json.Unmarshal(
				d.call("POST", "/uploads/"+id+"/parts", "application/json", string(d.event(in)), 200),
				&signed,
			),
		)
		lanes <- struct{}{}
		all.Go(func() {
			defer func() { <-lanes }()
			for _, p := range signed.Parts {
				if err := send(p.Method, p.URL, p.Headers, data[p.Number-1:p.Number]); err != nil {
					d.Errorf("part %d: %v", p.Number, err)
				}
			}
		})
	}
	all.Wait()
}

// send sends a part by plain HTTP, with only the headers that were signed.
func send(method, address string, headers map[string]string, content []byte) error {
	r, err := http.NewRequest(method, address, bytes.NewReader(content))
	if err != nil {
		return err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
