package client

import (
	"strings"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/bundle"
)

func TestNamesThatAFileSystemDoesNotTakeAreRefused(t *testing.T) {
	t.Parallel()
	windows, mac, linux := fileSystem{ignoresCase: true, windows: true}, fileSystem{ignoresCase: true}, fileSystem{}
	for _, k := range []struct {
		what  string
		on    fileSystem
		paths string
		says  string
	}{
		{"ordinary names", windows, "a.txt b/a.txt b/com b/com10 lpt.1 b/.x console.log", ""},
		{"case clashes where case counts", linux, "a A b/c B/c", ""},
		{"device names on Linux", linux, "con aux.c nul.txt COM1 a:b a. ?", ""},
		{"case clashes of files", mac, "a/x.txt a/X.TXT", `"a/X.TXT" has the same name as "a/x.txt"`},
		{"case clashes of folders", mac, "a/x A/y", `"A/y" has the same name as "a"`},
		{"a file and a folder", mac, "a/ A", `"A" has the same name as "a"`},
		{"names that differ in form", mac, "e\u0301 \u00e9", "has the same name as"},
		{"sigma at the end", mac, "ας ασ", "has the same name as"},
		{"a device", windows, "x CON", `"CON" has the name "CON", which Windows does not allow`},
		{"a device with an ending", windows, "a/nul.tar.gz", "does not allow"},
		{"a device as a folder", windows, "aux/x", "does not allow"},
		{"a device with a space", windows, "lpt1\u00a0 prn\u2003.x", ""},
		{"a numbered device", windows, "com¹", "does not allow"},
		{"a stream of a file", windows, "a:b", "does not allow"},
		{"a dot at the end", windows, "a./b", "does not allow"},
		{"a wildcard", windows, "a/b?", "does not allow"},
	} {
		var entries []bundle.Entry
		for path := range strings.SplitSeq(k.paths, " ") {
			entries = append(entries, bundle.Entry{Path: path})
		}
		err := k.on.check(entries)
		if err == nil != (k.says == "") || err != nil && !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v", k.what, err)
		}
	}
}

func TestServiceCannotChooseAHiddenNameOrAFlag(t *testing.T) {
	t.Parallel()
	for stated, want := range map[string]string{
		".bashrc": "_bashrc", "..rc": "_.rc", "a/.profile": "_profile", `C:\.x`: "_x", "plain.txt": "plain.txt",
		"..": "download", "": "download", "aux.c": "aux.c", "-rf": "_rf", "--": "_-",
	} {
		expect.Equal(t, stated, localName(stated), want)
	}
}
