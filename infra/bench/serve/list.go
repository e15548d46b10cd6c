package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ferry/shared/blob"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/table/sqlite"
)

// list fetches a page of 100 files of a large area and of a small one.
func (b *bench) list() ([]row, error) {
	large, err := b.area(b.Area)
	if err != nil {
		return nil, err
	}
	defer large.stop()
	small, err := b.area(100)
	if err != nil {
		return nil, err
	}
	defer small.stop()
	r := row{what: fmt.Sprintf("time of a page of 100 from %d files, against 100", b.Area), unit: "µs", target: "<= 1.20"}
	page := func(f *process) (func() (float64, error), error) {
		bearer, err := login(f)
		return func() (float64, error) {
			const times = 300
			client := &http.Client{}
			start := time.Now()
			for range times {
				err := send(client, func() (*http.Request, error) {
					req, err := http.NewRequestWithContext(b.ctx, "GET", f.url+"/v1/download/list?limit=100", nil)
					if err == nil {
						req.Header.Set("Authorization", "Bearer "+bearer)
					}
					return req, err
				})
				if err != nil {
					return 0, err
				}
			}
			return float64(time.Since(start).Microseconds()) / times, nil
		}, err
	}
	ofLarge, err := page(large)
	if err != nil {
		return nil, err
	}
	ofSmall, err := page(small)
	if err != nil {
		return nil, err
	}
	r.ferry, r.control, r.ratio, err = pairs(2*b.Rounds, ofLarge, ofSmall)
	return []row{r}, err
}

// area starts ferry on an area of n files, whose records are put straight
// into the table.
func (b *bench) area(n int) (*process, error) {
	dir, err := b.folder("area" + strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(dir+"/table.sqlite", sqlite.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for id := 1; id <= n; {
		var ops []table.Op
		for ; id <= n && len(ops) < table.MaxOps; id++ {
			ops = append(ops, table.Put(files.Key(blob.Files, user, int64(id)), files.File{
				V: 1, Owner: user, Area: blob.Files, ID: int64(id), Name: fmt.Sprintf("file-%d.bin", id), Length: smallSize,
				Type: "application/octet-stream", Modified: now.UnixMilli(), Blob: fmt.Sprintf("%s/%d-%s", user, id, strings.Repeat("x", 22)),
				CRC64: "0123456789abcdef", Expires: now.AddDate(0, 0, 30).Unix(),
			}))
		}
		if err := db.Write(b.ctx, ops...); err != nil {
			return nil, err
		}
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return b.ferry(dir, true)
}
