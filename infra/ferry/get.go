package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ferry/shared/client"
)

type getCommand struct {
	remote
	What   []string `arg:"" name:"file" help:"Link, id, name or quoted pattern, such as '*.pdf'. A number is an id; a name means the newest file with that name."`
	Output string   `short:"o" placeholder:"PATH" help:"File or folder to write to, or - for standard output (default the file's own name, in this folder)."`
	Force  bool     `short:"f" help:"Replace an existing file."`
	Backup bool     `help:"Look for ids and names in the backup area."`

	PasswordFile string `placeholder:"PATH" help:"File with the password of the links; - is standard input (default FERRY_LINK_PASSWORD, the file FERRY_LINK_PASSWORD_FILE, or asked for)."`
	transfer

	given string // the password in that file
}

func (getCommand) Help() string {
	return `A link needs no login. Until a file is complete it is named NAME.part. To resume after Ctrl-C, a crash or a lost network, run the same command again.
A name that begins with a dot or a dash, such as .bashrc, becomes _bashrc; to keep it, say -o .bashrc.
The bytes are compared with the CRC64NVME and, if it is known, the SHA-256 that the service states.
Of a link that allows some downloads, an interrupted download that is resumed within a day takes one in all.
` + patterns + `
Examples:
    ferry get 'https://files.example.com/v1/download/file?k=...'
    ferry get '*.pdf' -o reports/

` + exitCodes
}

// downloaded is the report on one file.
type downloaded struct {
	What     string   `json:"what"`
	Path     string   `json:"path,omitempty"`
	Name     string   `json:"name,omitempty"`
	Length   int64    `json:"length"`
	Verified []string `json:"verified,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func (c getCommand) Run(ctx context.Context, out console) error {
	switch {
	case c.Output == "-" && c.JSON:
		return usage("-o - and --json both want standard output")
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
			return usage("with several files, -o must be a folder or -")
		}
		if err := os.MkdirAll(c.Output, 0o777); err != nil {
			return err
		}
		defer os.Remove(c.Output) // which fails unless it is empty
	case !isFolder(filepath.Dir(c.Output)):
		return &coded{exitNoFile, fmt.Errorf("there is no folder %s", filepath.Dir(c.Output))}
	}
	m, err := c.meter(out, &c.remote)
	if err != nil {
		return err
	}
	m.growing = len(c.What) > 1
	m.files.Store(int64(len(c.What)))
	m.start()
	results, failed := []downloaded{}, failures{out: out, meter: m}
	err = failed.each(ctx, c.What, func(what string) error {
		r, err := c.one(ctx, out, m, what)
		m.ended.Add(1)
		err = pausing(ctx, err, c.Output == "-")
		r.Error = explain(err)
		results = append(results, r)
		if ctx.Err() != nil {
			return nil // reported once, below
		}
		return err
	})
	m.end()
	return report(out, c.JSON, results, cmp.Or(pausing(ctx, ctx.Err(), c.Output == "-"), err))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// expanded returns what to download, with ids in place of patterns. Links need no login.
func (c getCommand) expanded(ctx context.Context, out console) ([]string, error) {
	if !slices.ContainsFunc(c.What, isPattern) {
		return c.What, nil
	}
	who, err := c.identify(out)
	if err != nil {
		return nil, err
	}
	return expand(ctx, who.Client, area(c.Backup), c.What, true)
}

// one downloads one file.
func (c getCommand) one(ctx context.Context, out console, m *meter, what string) (downloaded, error) {
	r, begin, before := downloaded{What: what}, time.Now(), m.earlier.Load()
	cl, link, crc, err := c.find(ctx, out, what)
	if err != nil {
		return r, err
	}
	keys := &unlocking{ctx: ctx, out: out, meter: m, given: c.given}
	v := client.Verify{CRC64NVME: crc, Progress: m.add, Password: func(wrong error) (string, error) {
		if wrong == nil {
			warnPlain(out, hostOf(link))
		}
		return keys.password(wrong)
	}, Reopened: func() {
		m.say("what was begun earlier can no longer be resumed for nothing: this takes another download, if the link counts them")
	}, Started: func(f client.Remote, have int64) {
		m.begin(f.Name, f.Length)
		m.expect(f.Length)
		m.had(have)
		if have > 0 {
			m.say("resuming the download of %s", printable(f.Name))
		}
	}}
	if c.Output == "-" {
		f, err := cl.Copy(ctx, link, out.Out, v)
		r.Name, r.Length = f.Name, f.Length
		return r, err
	}
	got, err := cl.Fetch(ctx, link, client.FetchOptions{Verify: v, Path: c.Output, Force: c.Force, Connections: c.Connections})
	r.Name, r.Length, r.Path, r.Verified = got.Name, got.Length, got.Path, got.Verified
	if err != nil {
		return r, err
	}
	verified := "no digest to compare with"
	if len(got.Verified) > 0 {
		verified = "verified by " + strings.Join(got.Verified, " and ")
	}
	m.say("%s: %s, %s", printable(got.Path), took(got.Length, got.Length-(m.earlier.Load()-before), time.Since(begin)), verified)
	return r, nil
}

// find returns the link of the file to download, and its CRC64NVME if known.
func (c getCommand) find(ctx context.Context, out console, what string) (cl *client.Client, link, crc string, err error) {
	if u, err := url.Parse(what); err == nil && strings.Contains(what, "://") {
		cl, err := client.New(client.Options{URL: u.Scheme + "://" + u.Host, Retry: c.retry})
		return cl, what, "", withCode(exitUsage, err)
	}
	who, err := c.identify(out)
	if err != nil {
		return nil, "", "", err
	}
	id, err := one(ctx, who.Client, area(c.Backup), what, 1)
	if err != nil {
		return nil, "", "", err
	}
	d, err := who.File(ctx, area(c.Backup), id)
	return who.Client, d.Link, d.CRC64NVME, err
}
