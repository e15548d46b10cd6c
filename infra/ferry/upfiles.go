package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ferry/shared/client"
	"ferry/shared/filename"
)

// item is a file to upload.
type item struct {
	path string // - is standard input
	name string
	size int64 // -1 if not known
}

// noInput is the error of a file that is not there, or cannot be read.
func noInput(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &coded{exitNoFile, err}
	}
	return err
}

// collect finds the files to upload. What cannot go up is reported and counts as
// a failure; what is no file, such as a device in a folder, is only reported.
func (u *uploader) collect() (all []item, refused []uploaded) {
	refuse := func(path string, err error) {
		u.failed.add(path, err)
		refused = append(refused, uploaded{Path: path, Error: explain(err)})
	}
	take := func(path, name string, size int64) {
		clean := filename.Clean(name)
		if clean == "" {
			refuse(path, usage("that is no name for a file; give one with --name"))
			return
		}
		u.meter.expect(size)
		all = append(all, item{path, clean, size})
	}
	for _, path := range u.Paths {
		if path == "-" {
			all = append(all, item{"-", cmp.Or(u.Name, "stdin"), -1})
			continue
		}
		info, err := os.Stat(path) // follows a link that was named
		switch {
		case err != nil:
			refuse(path, noInput(err))
		case info.IsDir():
			u.folder(path, take, refuse)
		case !info.Mode().IsRegular():
			refuse(path, usage("it is not a file; give a pipe or device as standard input: %s up - < %s", u.out.Program, path))
		default:
			take(path, cmp.Or(u.Name, filepath.Base(path)), info.Size())
		}
	}
	return all, refused
}

// folder takes the regular files under a folder, in the order of their names.
func (u *uploader) folder(root string, take func(path, name string, size int64), refuse func(path string, err error)) {
	empty := true
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return nil
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case err != nil:
			refuse(path, noInput(err))
		case !info.Mode().IsRegular():
			u.meter.say("skipped %s, which is not a regular file", printable(path))
		default:
			empty = false
			take(path, d.Name(), info.Size())
		}
		return nil
	})
	if empty {
		u.meter.say("%s has no files", printable(root))
	}
}

// stdin uploads standard input: by one request if it is small, and else by way
// of a file in the cache folder, as a session has to know the length.
func (u *uploader) stdin(ctx context.Context, it item) (f client.File, err error) {
	var first bytes.Buffer
	in := interruptible{ctx, u.out.In}
	n, err := io.CopyN(&first, in, client.SmallFile+1)
	if err != nil && err != io.EOF {
		return f, fmt.Errorf("reading standard input: %w", err)
	}
	if n <= client.SmallFile {
		u.meter.expect(n)
		return u.small(ctx, it.name, first.Bytes())
	}
	dir, err := cacheFolder("spool")
	if err != nil {
		dir = os.TempDir()
	}
	file, err := os.CreateTemp(dir, "stdin-*")
	if err != nil {
		return f, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	u.meter.say("copying standard input to %s first", file.Name())
	if _, err := io.Copy(file, io.MultiReader(&first, in)); err != nil {
		return f, fmt.Errorf("copying standard input: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return f, err
	}
	u.meter.expect(info.Size())
	return u.put(ctx, it.name, file, info, nil)
}

// interruptible is a reader that ends with its context, also while it waits.
// The buffer of its last read may be written to later.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	return await(i.ctx, func() (int, error) { return i.r.Read(b) })
}
