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
		{what: "ordinary names", on: windows, paths: "a.txt b/a.txt b/com b/com10 lpt.1 b/.x console.log"},
		{what: "case clashes where case counts", on: linux, paths: "a A b/c B/c"},
		{what: "device names on Linux", on: linux, paths: "con aux.c nul.txt COM1 a:b a. ?"},
		{
			what:  "case clashes of files",
			on:    mac,
			paths: "a/x.txt a/X.TXT",
			says:  `"a/X.TXT" has the same name as "a/x.txt"`,
		},
		{what: "case clashes of folders", on: mac, paths: "a/x A/y", says: `"A/y" has the same name as "a"`},
		{what: "a file and a folder", on: mac, paths: "a/ A", says: `"A" has the same name as "a"`},
		{what: "names that differ in form", on: mac, paths: "e\u0301 \u00e9", says: "has the same name as"},
		{what: "sigma at the end", on: mac, paths: "ας ασ", says: "has the same name as"},
		{what: "a device", on: windows, paths: "x CON", says: `"CON" has the name "CON", which Windows does not allow`},
		{what: "a device with an ending", on: windows, paths: "a/nul.tar.gz", says: "does not allow"},
		{what: "a device as a folder", on: windows, paths: "aux/x", says: "does not allow"},
		{what: "a device with a space", on: windows, paths: "lpt1\u00a0 prn\u2003.x"},
		{what: "a numbered device", on: windows, paths: "com¹", says: "does not allow"},
		{what: "a stream of a file", on: windows, paths: "a:b", says: "does not allow"},
		{what: "a dot at the end", on: windows, paths: "a./b", says: "does not allow"},
		{what: "a wildcard", on: windows, paths: "a/b?", says: "does not allow"},
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
