package client

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ferry/shared/bundle"
)

// checkNames refuses entries that cannot have their names in the folder, or would share a name.
func (u *unpacking) checkNames() error {
	_, err := u.root.Lstat(u.remote.Name + strings.ToUpper(unpackingExt))
	system := fileSystem{ignoresCase: err == nil, windows: runtime.GOOS == "windows"}
	for _, e := range u.entries {
		top, _, _ := strings.Cut(u.target(e), "/")
		top = fold(top)
		if top == fold(u.temporary()) || strings.HasPrefix(top, fold(u.note())) {
			return &bundle.Error{
				Path:   e.Path,
				Reason: "has a name that unpacking needs for itself",
			}
		}
	}
	return system.check(u.entries)
}

// fileSystem says how a file system treats names.
type fileSystem struct {
	ignoresCase bool
	windows     bool
}

// check refuses names that this file system does not accept as they are. An error is a
// *bundle.Error.
func (s fileSystem) check(entries []bundle.Entry) error {
	spelt := map[string]string{} // each path, and each folder of one, by its folded form
	for _, e := range entries {
		for element := range strings.SplitSeq(strings.TrimSuffix(e.Path, "/"), "/") {
			if s.windows && reserved(element) {
				reason := fmt.Sprintf("has the name %q, which Windows does not allow", element)
				return &bundle.Error{Path: e.Path, Reason: reason}
			}
		}
		for p := path.Clean(e.Path); s.ignoresCase && p != "."; p = path.Dir(p) {
			folded := fold(p)
			if other := spelt[folded]; other != "" && other != p {
				reason := fmt.Sprintf(
					"has the same name as %q, as this file system ignores case",
					other,
				)
				return &bundle.Error{Path: e.Path, Reason: reason}
			}
			spelt[folded] = p
		}
	}
	return nil
}

// fold returns the same text for names that a file system may take for the same name.
func fold(name string) string { return strings.ToLower(strings.ToUpper(norm.NFC.String(name))) }

// reserved reports whether Windows allows no file of this name: it names a device, or has a
// character or an ending with a special meaning.
func reserved(name string) bool {
	if strings.ContainsAny(name, `<>:"|?*`) || strings.TrimRight(name, ". ") != name {
		return true
	}
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, base) {
		return true
	}
	number, isPort := strings.CutPrefix(base, "COM")
	if !isPort {
		number, isPort = strings.CutPrefix(base, "LPT")
	}
	return isPort &&
		utf8.RuneCountInString(number) == 1 &&
		strings.Contains("0123456789¹²³", number)
}
