package client

import (
	"context"
	"iter"
	"path"
	"strconv"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/client"
)

// isPattern reports whether a name that the user typed may be a pattern.
func isPattern(name string) bool {
	return strings.ContainsAny(name, `*?[`) && !strings.Contains(name, "://")
}

// choose returns the files that an id, a name or a pattern selects.
func choose(all []client.File, name string) (chosen []client.File) {
	id, isID := cli.FileID(name)
	pattern, matched := isPattern(name), []client.File(nil)
	for _, f := range all {
		if isID && f.ID == id || !isID && f.Name == name {
			chosen = append(chosen, f)
		} else if is, _ := path.Match(name, f.Name); is && pattern {
			matched = append(matched, f)
		}
	}
	if chosen == nil {
		return matched
	}
	return chosen
}

// expand replaces each pattern with the ids of the files in an area that match it, newest first.
// With newest, it takes only the first of several files with the same name. A pattern that matches nothing stays.
func (i *identity) expand(
	ctx context.Context, a client.Area, names []string, newest bool,
) (expanded []string, err error) {
	var all []client.File
	for _, name := range names {
		if !isPattern(name) {
			expanded = append(expanded, name)
			continue
		}
		if all == nil {
			if all, err = collected(i.Files(ctx, a)); err != nil {
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
