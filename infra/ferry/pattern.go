package main

import (
	"context"
	"iter"
	"path"
	"strconv"
	"strings"

	"ferry/shared/client"
)

const patterns = `In a pattern * stands for any letters, ? for one, and [a-z] for one of some; quote it, or the shell looks for files here. A file of exactly that name wins over what a pattern matches.`

// isPattern reports whether a name that a person typed may be a pattern.
func isPattern(name string) bool {
	return strings.ContainsAny(name, `*?[`) && !strings.Contains(name, "://")
}

// choose returns the files that an id, a name or a pattern means.
func choose(all []client.File, name string) (chosen []client.File) {
	id, isID := fileID(name)
	where := func(is func(client.File) bool) {
		for _, f := range all {
			if is(f) {
				chosen = append(chosen, f)
			}
		}
	}
	if isID {
		where(func(f client.File) bool { return f.ID == id })
		return chosen
	}
	if where(func(f client.File) bool { return f.Name == name }); chosen == nil && isPattern(name) {
		where(func(f client.File) bool { is, err := path.Match(name, f.Name); return is && err == nil })
	}
	return chosen
}

// expand replaces each pattern by the ids of the files in an area that it matches, the newest
// first; with newest, of those with the same name only one. What matches nothing stays.
func expand(ctx context.Context, cl *client.Client, a client.Area, names []string, newest bool) (
	expanded []string, err error,
) {
	var all []client.File
	for _, name := range names {
		if !isPattern(name) {
			expanded = append(expanded, name)
			continue
		}
		if all == nil {
			if all, err = collected(cl.Files(ctx, a)); err != nil {
				return nil, err
			}
		}
		found, seen := choose(all, name), map[string]bool{}
		if len(found) == 0 || found[0].Name == name {
			expanded = append(expanded, name)
			continue
		}
		for _, f := range found {
			if !newest || !seen[f.Name] {
				expanded = append(expanded, strconv.FormatInt(f.ID, 10))
			}
			seen[f.Name] = true
		}
	}
	return expanded, nil
}

// collected returns what a sequence yields, up to its first error.
func collected[T any](all iter.Seq2[T, error]) (values []T, err error) {
	for v, err := range all {
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
