package client

import (
	"context"
	"path"
	"slices"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

// unpacks reports whether bundles are unpacked instead of kept as archives.
func (c Get) unpacks() bool {
	archive := strings.EqualFold(path.Ext(c.Output), ".zip") && !isFolder(c.Output) // path.Ext of tree.zip/ is not .zip
	return !c.Zip && !archive && c.Output != "-"
}

// unpack downloads what the user chose from a bundle.
func (c Get) unpack(
	ctx context.Context,
	m *cli.Meter,
	f found,
	v client.Verify,
	r downloaded,
) (downloaded, error) {
	took := m.Timing()
	matched := make([]bool, len(c.Only))
	o := client.UnpackOptions{
		Verify:      v,
		Path:        c.Output,
		Force:       c.Force,
		Connections: c.Connections,
	}
	if len(c.Only) > 0 {
		o.Only = func(path string) (wanted bool) {
			for i, pattern := range c.Only {
				if matches(pattern, path) {
					matched[i], wanted = true, true
				}
			}
			return wanted
		}
	}
	got, err := f.client.Unpack(ctx, f.link, o)
	r.Name = got.Name
	r.Length = got.Length
	r.Path = got.Path
	r.Files = got.Files
	if err != nil {
		return r, err
	}
	r.Verified = []string{"crc-32"}
	m.Say(
		"%s: %s from %s, %s, verified by crc-32",
		got.Path,
		cli.Count(got.Files, "file"),
		got.Name,
		took(got.Length),
	)
	if none := slices.Index(matched, false); none >= 0 {
		return r, cli.Fail(cli.ExitNoFile, "nothing in the bundle matches %s", c.Only[none])
	}
	return r, nil
}

// matches reports whether a pattern matches an entry of a bundle, or a folder that the entry is in.
// A pattern without a slash is compared with names, and any other pattern with paths.
func matches(pattern, entry string) bool {
	pattern = strings.TrimSuffix(pattern, "/")
	for entry = path.Clean(entry); entry != "."; entry = path.Dir(entry) {
		name := entry
		if !strings.Contains(pattern, "/") {
			name = path.Base(entry)
		}
		if is, _ := path.Match(pattern, name); is { // bad patterns were refused before
			return true
		}
	}
	return false
}
