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

	"ferry/shared/wire"
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

// collect finds the files to upload. What cannot be is said and counted as a
// failure; what is no file, such as a device in a folder, is said.
func (u *uploader) collect() []item {
	var all []item
	for _, path := range u.Paths {
		if path == "-" {
			all = append(all, item{"-", cmp.Or(u.Name, "stdin"), -1})
			continue
		}
		info, err := os.Stat(path) // of what a link leads to, as its name was given
		switch {
		case err != nil:
			u.refuse(path, noInput(err))
		case info.IsDir():
			all = append(all, u.folder(path)...)
		case !info.Mode().IsRegular():
			u.refuse(path, &coded{exitUsage, fmt.Errorf("it is not a file; give a pipe or device as standard input: %s up - < %s", u.out.Program, path)})
		default:
			all = u.take(all, path, cmp.Or(u.Name, filepath.Base(path)), info.Size())
		}
	}
	return all
}

// folder finds the regular files under a folder, in the order of their names.
func (u *uploader) folder(root string) []item {
	var all []item
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			u.refuse(path, err)
			return nil
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			u.refuse(path, noInput(err))
			return nil
		}
		if !info.Mode().IsRegular() {
			u.meter.say("skipped %s, which is not a regular file", printable(path))
			return nil
		}
		all = u.take(all, path, d.Name(), info.Size())
		return nil
	})
	if len(all) == 0 {
		u.meter.say("%s has no files", printable(root))
	}
	return all
}

func (u *uploader) take(all []item, path, name string, size int64) []item {
	clean := wire.CleanFileName(name)
	if clean == "" {
		u.refuse(path, &coded{exitUsage, errors.New("that is no name for a file; give one with --name")})
		return all
	}
	u.meter.expect(size)
	return append(all, item{path, clean, size})
}

// stdin uploads standard input: by one request if it is small, and else by way
// of a file in the cache folder, as a session has to know the length.
func (u *uploader) stdin(ctx context.Context, it item) (client.File, error) {
	var first bytes.Buffer
	in := interruptible{ctx, u.out.In}
	n, err := io.CopyN(&first, in, client.SmallFile+1)
	if err != nil && err != io.EOF {
		return client.File{}, fmt.Errorf("reading standard input: %w", err)
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
		return client.File{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	u.meter.say("copying standard input to %s first", file.Name())
	if _, err := io.Copy(file, io.MultiReader(&first, in)); err != nil {
		return client.File{}, fmt.Errorf("copying standard input: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return client.File{}, err
	}
	u.meter.expect(info.Size())
	return u.put(ctx, it.name, file, info, nil)
}

// interruptible is a reader that ends with its context, also while it waits.
// What it is then given may be written to later.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	return await(i.ctx, func() (int, error) { return i.r.Read(b) })
}
