package client

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

type Get struct {
	remote
	What   []string `arg:"" name:"file"`
	Output string   `short:"o" placeholder:"PATH"`
	Force  bool     `short:"f" help:"Replace existing files."`
	Only   []string `sep:"none" placeholder:"PATTERN"`
	Zip    bool     `help:"Keep a bundle as one ZIP archive."`
	Backup bool     `help:"Look for ids and names in the backup area."`

	PasswordFile string `placeholder:"PATH"`
	transfer

	given string // the password in that file
}

// downloaded is the report on one file.
type downloaded struct {
	What     string   `json:"what"`
	Path     string   `json:"path,omitempty"`
	Name     string   `json:"name,omitempty"`
	Length   int64    `json:"length"`
	Files    int      `json:"files,omitempty"` // of a bundle that was unpacked
	Verified []string `json:"verified,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func (c Get) Run(ctx context.Context, out cli.Console) error {
	switch {
	case c.Output == "-" && c.JSON:
		return cli.Usage("-o - and --json both want standard output")
	case len(c.Only) > 0 && !c.unpacks():
		return cli.Usage("--only is for unpacking: it does not go with --zip, nor with an archive or - after -o")
	}
	for _, pattern := range c.Only {
		if _, err := path.Match(pattern, ""); err != nil {
			return cli.Usage("--only %s: %w", pattern, err)
		}
	}
	var err error
	if c.given, err = givenPassword(ctx, out, c.PasswordFile); err != nil {
		return err
	}
	if c.What, err = c.expanded(ctx, out); err != nil {
		return err
	}
	switch {
	case c.Output == "" || c.Output == "-" || isFolder(c.Output):
	case len(c.What) > 1 || os.IsPathSeparator(c.Output[len(c.Output)-1]):
		if _, err := os.Stat(c.Output); err == nil {
			return cli.Usage("with several files, -o must be a folder or -")
		}
		if err := os.MkdirAll(c.Output, 0o777); err != nil {
			return err
		}
		defer os.Remove(c.Output) // which fails unless it is empty
	case !isFolder(filepath.Dir(c.Output)):
		return cli.Fail(cli.ExitNoFile, "there is no folder %s", filepath.Dir(c.Output))
	}
	m, err := c.meter(out, &c.remote)
	if err != nil {
		return err
	}
	m.Growing = len(c.What) > 1
	m.Files.Store(int64(len(c.What)))
	m.Start()
	results, failed := []downloaded{}, cli.Failures{Out: out, Meter: m}
	err = failed.Each(ctx, c.What, func(what string) error {
		r, err := c.one(ctx, out, m, what)
		m.Ended.Add(1)
		err = pausing(ctx, err, c.Output == "-")
		r.Error = cli.Explain(err)
		results = append(results, r)
		if ctx.Err() != nil {
			return nil // reported once, below
		}
		return err
	})
	m.End()
	return cli.Report(out, c.JSON, results, cmp.Or(
		pausing(ctx, ctx.Err(), c.Output == "-"),
		err,
	))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// expanded returns what to download, with patterns replaced by ids. Links need no login.
func (c Get) expanded(ctx context.Context, out cli.Console) ([]string, error) {
	if !slices.ContainsFunc(c.What, isPattern) {
		return c.What, nil
	}
	who, err := c.identify(out)
	if err != nil {
		return nil, err
	}
	return who.expand(ctx, area(c.Backup), c.What, true)
}

// one downloads one file, or unpacks a bundle.
func (c Get) one(
	ctx context.Context,
	out cli.Console,
	m *cli.Meter,
	what string,
) (downloaded, error) {
	r := downloaded{What: what}
	f, err := c.find(ctx, out, what)
	if err != nil {
		return r, err
	}
	v := c.verify(ctx, out, m, f)
	switch {
	case f.bundle && c.unpacks():
		return c.unpack(ctx, m, f, v, r)
	case len(c.Only) > 0:
		return r, cli.Usage("--only is for bundles, and this is not one")
	case c.Output == "-":
		got, err := f.client.Copy(ctx, f.link, out.Out.Raw, v)
		r.Name, r.Length = got.Name, got.Length
		return r, err
	}
	took := m.Timing()
	o := client.FetchOptions{
		Verify:      v,
		Path:        c.Output,
		Force:       c.Force,
		Connections: c.Connections,
	}
	got, err := f.client.Fetch(ctx, f.link, o)
	r.Name = got.Name
	r.Length = got.Length
	r.Path = got.Path
	r.Verified = got.Verified
	if err != nil {
		return r, err
	}
	verified := "no digest to compare with"
	if len(got.Verified) > 0 {
		verified = "verified by " + strings.Join(got.Verified, " and ")
	}
	m.Say("%s: %s, %s", got.Path, took(got.Length), verified)
	return r, nil
}

// verify says how to compare and report a download.
func (c Get) verify(ctx context.Context, out cli.Console, m *cli.Meter, f found) client.Verify {
	keys := &unlocking{ctx: ctx, out: out, meter: m, given: c.given}
	return client.Verify{
		CRC64NVME: f.crc,
		Progress:  m.Add,
		Password: func(wrong error) (string, error) {
			if wrong == nil {
				warnPlain(out, f.link)
			}
			return keys.password(wrong)
		},
		Reopened: func() {
			m.Say("it is too late to resume the earlier download for free: " +
				"this takes another download, if the link counts them")
		},
		Started: func(r client.Remote, have int64) {
			m.Begin(r.Name, r.Length)
			m.Expect(r.Length)
			m.Had(have)
			if have > 0 {
				m.Say("resuming the download of %s", r.Name)
			}
		},
	}
}

// found is a file to download.
type found struct {
	client *client.Client
	link   string
	crc    string // CRC64NVME, if known
	bundle bool
}

// find returns the file to download.
func (c Get) find(ctx context.Context, out cli.Console, what string) (f found, err error) {
	if u, err := url.Parse(what); err == nil && strings.Contains(what, "://") {
		cl, err := client.New(client.Options{URL: u.Scheme + "://" + u.Host, Retry: c.retry})
		if err != nil {
			return f, cli.WithCode(cli.ExitUsage, err)
		}
		about, err := cl.About(ctx, what, c.Output)
		if errors.Is(err, client.ErrAnswer) {
			err = nil // the download's error says more
		}
		return found{client: cl, link: what, bundle: about.Bundle}, err
	}
	who, err := c.identify(out)
	if err != nil {
		return f, err
	}
	id, err := who.one(ctx, area(c.Backup), what, 1)
	if err != nil {
		return f, err
	}
	d, err := who.File(ctx, area(c.Backup), id)
	return found{client: who.Client, link: d.Link, crc: d.CRC64NVME, bundle: d.Entries > 0}, err
}
