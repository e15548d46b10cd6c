package operator

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/shared/retry"
	"ferry/shared/service"
)

type Key struct {
	List   keyList   `cmd:"" default:"withargs" help:"List the versions of the key; the last one is for new files."`
	Rotate keyRotate `cmd:"" help:"Make a new version, for the links of new files; links already sent keep working."`
	Revoke keyRevoke `cmd:"" help:"End all links of a version that has leaked, and give their files new ones."`
}

type keyList struct{ Store }

func (c keyList) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		w := tabwriter.NewWriter(out.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "VERSION\tMADE\tREVOKED")
		for i, v := range p.Key.Versions() {
			fmt.Fprintf(w, "%d\t%s\t%s\n", i+1, dateOrNone(v.Made), dateOrNone(v.Revoked))
		}
		return w.Flush()
	}, FilePorts()...)
}

func dateOrNone(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
}

type keyRotate struct{ Store }

func (c keyRotate) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		newest, err := p.Key.Rotate(ctx, p.Table, p.Random, 0)
		if err == nil {
			out.Tell(
				"version %d is for new files; links already sent keep working until they expire\n",
				newest,
			)
		}
		return err
	}, FilePorts()...)
}

type keyRevoke struct {
	Store
	Version uint8 `arg:"" help:"Number of the version."`
}

func (c keyRevoke) Run(ctx context.Context, out cli.Console) error {
	version := int(c.Version)
	if version == 0 {
		return cli.Usage("versions are numbered from 1")
	}
	return c.use(ctx, func(p *service.Service) error {
		if _, err := p.Key.Rotate(ctx, p.Table, p.Random, version); err != nil {
			return err
		}
		out.Tell(
			"version %d is revoked; its links end within %v\n",
			version,
			p.Key.Propagation(),
		)
		// Until no process makes links of that version:
		if err := retry.Sleep(ctx, p.Key.Propagation()); err != nil {
			return err
		}
		if !p.Key.Revoked(int64(version)) {
			return errors.New("another command changed the key at the same time; repeat the command")
		}
		renewed, err := p.Links().Renew(ctx, version)
		out.Tell("new links for %s\n", cli.Count(renewed, "file"))
		return err
	}, FilePorts()...)
}
