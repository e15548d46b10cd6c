package bundle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a path, in bytes.
const (
	maxPath    = 1024
	maxElement = 255 // as in common file systems
)

// CheckPath checks that a path is relative, and that each of its elements is an ordinary name:
// UTF-8 of at most 255 bytes, neither "." nor "..", without backslash and control characters. It
// has at most 1024 bytes and does not begin like a Windows drive (C:). The path of a folder ends in
// a slash. An error is an *Error.
//
// Such a path can still be unsafe: on Windows it may name a device, and on a file system that
// ignores case two paths may be one.
func CheckPath(path string) error {
	switch {
	case path == "":
		return &Error{Reason: "has an entry without a path"}
	case len(path) > maxPath:
		return &Error{path, fmt.Sprintf("is longer than %d bytes", maxPath)}
	case !utf8.ValidString(path):
		return &Error{path, "is not UTF-8"}
	case strings.ContainsFunc(path, unicode.IsControl):
		return &Error{path, "has a control character"}
	case strings.Contains(path, `\`):
		return &Error{path, "has a backslash"}
	case path[0] == '/':
		return &Error{path, "is an absolute path"}
	case hasDrive(path):
		return &Error{path, "begins like a Windows drive"}
	}
	for element := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if element == "" || element == "." || element == ".." {
			return &Error{path, fmt.Sprintf("has the path element %q", element)}
		}
		if len(element) > maxElement {
			return &Error{path, fmt.Sprintf("has a path element of more than %d bytes",
				maxElement)}
		}
	}
	return nil
}

func hasDrive(path string) bool {
	letter := path[0] | 0x20 // lower case
	return len(path) > 1 && path[1] == ':' && letter >= 'a' && letter <= 'z'
}

// place puts a path among the others. It refuses a path that occurs already, and one that would make
// another both a file and a folder.
//
// No path has the character 0. With it in place of slashes, everything inside a folder follows the
// folder directly, and the paths so far do not clash. So the new one can clash only with its two
// neighbors.
func (l *Layout) place(path string) error {
	key := strings.ReplaceAll(path, "/", "\x00")
	at, found := slices.BinarySearch(l.keys, key)
	switch {
	case found:
		return &Error{path, "occurs twice"}
	case at < len(l.keys) &&
		strings.HasPrefix(l.keys[at], key+"\x00"), at > 0 && key == l.keys[at-1]+"\x00":
		return &Error{path, "is both a file and a folder"}
	case at > 0 && strings.HasPrefix(key, l.keys[at-1]+"\x00"):
		file := strings.ReplaceAll(l.keys[at-1], "\x00", "/")
		return &Error{path, fmt.Sprintf("is inside a file, %q", file)}
	}
	l.keys = slices.Insert(l.keys, at, key)
	return nil
}
