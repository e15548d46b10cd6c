package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
)

// control is the least that a server can do with a file: read the part of a
// form through a buffer of 256 KiB and write it with one fsync; send it with
// http.ServeFile.
func control(addr, dir string, sync bool) {
	var n atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		if err := receive(w, r, filepath.Join(dir, fmt.Sprintf("f%d", n.Add(1))), sync); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /file/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, r.PathValue("name")))
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, mux))
	os.Exit(1)
}

func receive(w http.ResponseWriter, r *http.Request, path string, sync bool) error {
	size := 256 << 10
	if r.ContentLength > 0 && r.ContentLength < int64(size) {
		size = int(r.ContentLength)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(r.Body, size), r.Body}
	form, err := r.MultipartReader()
	if err != nil {
		return err
	}
	part, err := form.NextPart()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, size)
	if _, err := io.Copy(struct{ io.Writer }{out}, part); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "%s\n", filepath.Base(path))
	return err
}
