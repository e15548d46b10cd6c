package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
	"ferry/shared/service"
	"ferry/shared/wire"
)

type Up struct {
	remote
	Paths []string `arg:"" name:"path"`
	To    string   `placeholder:"USER" help:"Put the files into this user's area."`
	sharing
	Notify   bool     `help:"Get a mail when a file is downloaded for the first time."`
	Name     string   `placeholder:"NAME"`
	Each     bool     `help:"Make a link for each file instead of one bundle."`
	SHA256   bool     `name:"sha256" help:"Store the SHA-256 of large files too, which reads them once more."`
	PartSize byteSize `placeholder:"SIZE"`
	Session  bool     `help:"Send small files in parts too: some gateways, such as SAM's, damage other bodies."`
	Request  string   `placeholder:"LINK" help:"Upload the files to this request, without a login."`
	By       string   `placeholder:"NAME" help:"Your name, shown to the owner of the request."`
	transfer
}

// byteSize is the value of a flag: a number of bytes, with a unit or without.
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := service.ParseSize(string(text))
	*b = byteSize(n)
	if err != nil {
		return fmt.Errorf("%s is %w", text, err)
	}
	return nil
}

// uploaded is the report on one file.
type uploaded struct {
	Path   string `json:"path"`
	ID     int64  `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Length int64  `json:"length"`
	Link   string `json:"link,omitempty"`
	Error  string `json:"error,omitempty"`

	Entries int `json:"entries,omitempty"` // of a bundle
}

// uploader is one run of ferry up.
type uploader struct {
	Up
	out    cli.Console
	client *identity
	meter  *cli.Meter
	secret string      // the password of the links
	lost   atomic.Bool // the network has failed: no further file is begun

	mu      sync.Mutex
	stored  int
	results []uploaded // of the files, then of paths that cannot be uploaded
	failed  cli.Failures
}

func (c Up) Run(ctx context.Context, out cli.Console) error {
	if err := c.check(); err != nil {
		return err
	}
	m, err := c.meter(out, &c.remote)
	if err != nil {
		return err
	}
	u := &uploader{Up: c, out: out, meter: m, failed: cli.Failures{Out: out, Meter: m}}
	if c.Request != "" {
		err = u.join(ctx)
	} else {
		err = u.logIn(ctx)
	}
	if err != nil {
		return err
	}
	m.Start()
	err = u.all(ctx)
	m.End()
	if err != nil {
		return err
	}
	err = cmp.Or(pausing(ctx, ctx.Err(), len(c.Paths) == 1 &&
		c.Paths[0] == "-"), u.failed.First)
	if failed := u.printLinks(); failed != nil {
		return failed
	}
	return cli.Report(out, c.JSON, u.results, err)
}

// logIn makes the client for a user.
func (u *uploader) logIn(ctx context.Context) (err error) {
	if u.secret, err = u.linkPassword(ctx, u.out); err != nil {
		return err
	}
	if u.client, err = u.identify(u.out); err == nil {
		u.client.mu = u.meter
	}
	return err
}

// printLinks prints the links in the order of the files. If there are several files, it adds their names.
func (u *uploader) printLinks() error {
	for _, r := range u.results {
		name := r.Name
		if len(u.results) == 1 {
			name = ""
		}
		if r.Link == "" {
			continue
		}
		if err := u.printLink(u.out, u.JSON, r.Link, name); err != nil {
			return err
		}
	}
	return nil
}

// check refuses flags that would do nothing, or not what they say.
func (c Up) check() error {
	switch {
	case c.Name != "" && wire.CleanFileName(c.Name) == "":
		return cli.Usage("--name %s is not a file name", c.Name)
	case c.PasswordFile == "-" && slices.Contains(c.Paths, "-"):
		return cli.Usage("--password-file - and the path - both want standard input")
	case slices.Contains(c.Paths[slices.Index(c.Paths, "-")+1:], "-"):
		return cli.Usage("standard input can be uploaded only once, but - was given several times")
	case !c.bundles():
	case slices.Contains(c.Paths, "-"):
		return cli.Usage("standard input cannot be part of a bundle; --each makes a link for each file")
	case c.SHA256:
		return cli.Usage("--sha256 is for files, not for bundles; --each makes a link for each file")
	}
	return cmp.Or(c.checkGuest(), c.sharing.check())
}

// all uploads several small files at once. Large ones are uploaded one by one, because each uses
// several connections. After a network failure that outlasts the retries, it begins no further file.
func (u *uploader) all(ctx context.Context) error {
	collect := u.collect
	if u.bundles() {
		collect = u.collectBundle
	}
	items, refused := collect()
	if u.Name != "" && len(items) > 1 {
		return cli.Usage("--name is for a single file or bundle")
	}
	u.meter.Files.Store(int64(len(items)))
	forgetOldStates(time.Now())
	for _, it := range items {
		u.results = append(u.results, uploaded{Path: it.path, Error: "not tried"})
	}
	u.results = append(u.results, refused...)
	var small errgroup.Group
	small.SetLimit(u.Connections)
	for i, it := range items {
		if ctx.Err() != nil {
			break
		}
		if it.size >= 0 && u.small(it.size) {
			small.Go(func() error { u.one(ctx, i, it); return nil })
			continue
		}
		_ = small.Wait()
		u.one(ctx, i, it)
	}
	err := small.Wait()
	if n := len(items); n > 1 && u.lost.Load() {
		u.meter.Print(
			u.out.Err,
			"ferry: stopped, as the network failed: %d of %d files are left (--json names them)",
			n-u.stored,
			n,
		)
	}
	return err
}

// one uploads one file and records the result.
func (u *uploader) one(ctx context.Context, i int, it item) {
	if u.lost.Load() {
		return
	}
	took := u.meter.Timing()
	alone := max(0, it.size) // large files come one at a time
	if u.small(it.size) {
		alone = 0
	}
	u.meter.Begin(it.name, alone)
	f, err := u.upload(ctx, it)
	u.meter.Ended.Add(1)
	err = pausing(ctx, err, it.path == "-")
	u.mu.Lock()
	defer u.mu.Unlock()
	u.results[i] = uploaded{
		it.path, f.ID, f.Name, f.Length, f.Link, cli.Explain(err), it.tree.count(),
	}
	switch {
	case err == nil:
		u.stored++
		id := ""
		if f.ID != 0 { // guests get no id
			id = fmt.Sprintf(" (id %d)", f.ID)
		}
		u.meter.Say("%s: %s%s", f.Name, took(f.Length), id)
	case ctx.Err() == nil:
		u.lost.Store(u.lost.Load() || client.IsNetwork(err))
		u.failed.Add(it.path, err)
	}
}

func (u *uploader) upload(ctx context.Context, it item) (f client.File, err error) {
	switch {
	case it.tree != nil:
		return u.uploadBundle(ctx, it)
	case it.path == "-":
		return u.stdin(ctx, it)
	}
	file, err := os.Open(it.path)
	if err != nil {
		return f, noInput(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, err
	}
	if !u.small(info.Size()) {
		return u.large(ctx, it.name, file, info)
	}
	content, err := io.ReadAll(io.LimitReader(file, client.SmallFile+1))
	if err != nil {
		return f, err
	}
	if len(content) > client.SmallFile {
		return f, client.ErrChanged
	}
	return u.whole(ctx, it.name, content)
}

// small reports whether a file of this size is uploaded in one request.
func (u *uploader) small(size int64) bool { return size <= client.SmallFile && !u.Session }

func (u *uploader) whole(
	ctx context.Context,
	name string,
	content []byte,
) (client.File, error) {
	f, err := u.client.Upload(ctx, name, kind(name), content, u.delivery())
	if err == nil {
		u.meter.Add(int64(len(content)))
	}
	return f, err
}

func (u *uploader) delivery() client.Delivery {
	return client.Delivery{
		To:      u.To,
		SMS:     u.SMS,
		Mail:    u.Mail,
		Message: u.Message,
		Lang:    u.Lang,
		Notify:  u.Notify,
		Limits:  u.limits(u.secret),
	}
}

// kind returns the media type for a file's name, or "" if there is none.
func kind(name string) string {
	k := mime.TypeByExtension(filepath.Ext(name))
	if strings.HasPrefix(k, "multipart/") {
		return ""
	}
	return k
}

// item is a file to upload.
type item struct {
	path string // - is standard input
	name string
	size int64 // -1 if not known
	tree *tree // of a bundle
}

// noInput adds the exit code to the error of a missing file.
func noInput(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.WithCode(cli.ExitNoFile, err)
	}
	return err
}

// refuse records that a path cannot be uploaded.
func (u *uploader) refuse(path string, err error) uploaded {
	u.failed.Add(path, err)
	return uploaded{Path: path, Error: cli.Explain(err)}
}

// walk calls found for a file that the user named, or for a folder and everything in it. It follows
// a named symbolic link; other links and devices are only reported. It stops if found returns an error.
func (u *uploader) walk(
	named string,
	found func(path string, info fs.FileInfo, err error) error,
) error {
	info, err := os.Stat(named)
	if err != nil || !info.IsDir() {
		return found(named, info, noInput(err))
	}
	root := named + string(os.PathSeparator) // without the separator, WalkDir would not follow a link
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err == nil && !d.IsDir() && !info.Mode().IsRegular() {
			u.meter.Print(u.out.Err, "skipped %s, which is not a regular file", path)
			return nil
		}
		return found(filepath.Clean(path), info, err)
	})
}

// collect finds the files to upload. A path that cannot be uploaded is a failure.
func (u *uploader) collect() (all []item, refused []uploaded) {
	for _, named := range u.Paths {
		if named == "-" {
			all = append(all, item{path: "-", name: cmp.Or(u.Name, "stdin"), size: -1})
			continue
		}
		before := len(all) + len(refused)
		_ = u.walk(named, func(path string, info fs.FileInfo, err error) error {
			if err == nil && info.IsDir() {
				return nil
			}
			name := wire.CleanFileName(cmp.Or(u.Name, filepath.Base(path)))
			switch {
			case err != nil:
			case !info.Mode().IsRegular():
				err = cli.Usage(
					"it is not a file; pass a pipe or device as standard input: %s up - < %s",
					cli.Quoted(u.out.Program),
					cli.Quoted(path),
				)
			case name == "":
				err = cli.Usage("this cannot be the name of a file; give one with --name")
			}
			if err != nil {
				refused = append(refused, u.refuse(path, err))
				return nil
			}
			u.meter.Expect(info.Size())
			all = append(all, item{path: path, name: name, size: info.Size()})
			return nil
		})
		if len(all)+len(refused) == before {
			u.meter.Say("%s has no files", named)
		}
	}
	return all, refused
}

// stdin uploads standard input: in one request if it is small, otherwise while it is read.
func (u *uploader) stdin(ctx context.Context, it item) (f client.File, err error) {
	var first bytes.Buffer
	in := cli.Interruptible(ctx, u.out.In)
	n, err := io.CopyN(&first, in, client.SmallFile+1)
	if err != nil && err != io.EOF {
		return f, fmt.Errorf("reading standard input: %w", err)
	}
	u.meter.Expect(n)
	switch {
	case u.small(n):
		return u.whole(ctx, it.name, first.Bytes())
	case u.SHA256:
		return f, cli.Usage("--sha256 is for files: what is read from standard input is sent at once")
	}
	u.meter.Say("sending standard input while it is read")
	src := client.Source{Name: it.name, Type: kind(it.name)}
	o := client.PutOptions{
		Delivery: u.delivery(),
		PartSize: int64(u.PartSize),
		Progress: u.meter.Add,
	}
	return u.client.PutStream(ctx, src, io.MultiReader(&first, expected{in, u.meter}), o)
}

// expected is a reader that tells the meter what it reads.
type expected struct {
	io.Reader
	meter *cli.Meter
}

func (e expected) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	e.meter.Expect(int64(n))
	return n, err
}
