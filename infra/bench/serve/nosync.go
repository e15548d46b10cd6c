package main

import (
	"fmt"
	"os"
	"time"
)

// nosync measures without waiting for the disk, as servers do that never sync,
// and the memory of a server that has nothing to do.
func (b *bench) nosync() ([]row, error) {
	dir, err := b.folder("data")
	if err != nil {
		return nil, err
	}
	idle, err := b.idle(dir)
	if err != nil {
		return nil, err
	}
	f, c, err := b.both(dir, false)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	defer c.stop()
	source, err := b.source()
	if err != nil {
		return nil, err
	}
	form, err := b.largeUp(f, c, source)
	if err != nil {
		return nil, err
	}
	form.what, form.target = form.what+", no fsync", ""
	raw := row{what: fmt.Sprintf("upload of %d MiB, curl -T, no fsync", b.Large>>20), unit: "MB/s"}
	raw.ferry, _, _, err = pairs(b.Rounds,
		func() (float64, error) {
			return b.curl("-u", user+":"+password, "-T", source, "-o", os.DevNull, f.url+"/v1/upload?file=large")
		},
		func() (float64, error) { return 1, nil })
	if err != nil {
		return nil, err
	}
	up, err := b.smallUp(f, c, "")
	up.what += ", no fsync"
	return []row{raw, form, up, idle}, err
}

// idle is the memory of a server that was just started.
func (b *bench) idle(dir string) (row, error) {
	f, err := b.ferry(dir, false)
	if err != nil {
		return row{}, err
	}
	time.Sleep(2 * time.Second)
	resident := f.status("VmRSS:")
	f.stop()
	return row{what: "memory of an idle server", ferry: float64(resident) / 1e6, unit: "MB"}, nil
}
