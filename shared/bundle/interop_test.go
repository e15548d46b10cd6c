package bundle_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry/shared/bundle"
)

// lister is a Java program that reads an archive by its directory, and as a stream from its standard
// input. It prints path, length and time of each entry.
const lister = `
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.zip.*;

public class Lister {
	public static void main(String[] args) throws Exception {
		PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
		try (ZipFile zip = new ZipFile(args[0])) {
			zip.stream().forEach(e -> out.println(line(e)));
		}
		try (ZipInputStream in = new ZipInputStream(System.in)) {
			byte[] buffer = new byte[1 << 20];
			for (ZipEntry e; (e = in.getNextEntry()) != null;) {
				while (in.read(buffer) > 0) { // it checks length and CRC-32
				}
				out.println(line(e));
			}
		}
	}

	static String line(ZipEntry e) {
		return e.getName() + "\t" + e.getSize() + "\t" + e.getLastModifiedTime().toMillis() / 1000;
	}
}
`

// run runs a program of a Debian package in a folder, and returns what it prints. It skips the test
// if the program is not installed, and fails it if the program complains.
func run(t *testing.T, debian, dir, name string, args ...string) string {
	t.Helper()
	return feed(t, nil, debian, dir, name, args...)
}

// feed is run with a standard input.
func feed(t *testing.T, in io.Reader, debian, dir, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian package %s)", name, debian)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Stdin = dir, in
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PYTHONWARNINGS=error", "JAVA_TOOL_OPTIONS=")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	said := strings.ReplaceAll(complaints.String(), "Picked up JAVA_TOOL_OPTIONS: \n", "")
	if err != nil || said != "" || strings.Contains(strings.ToLower(string(out)), "warning") {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, said)
	}
	return string(out)
}

const pythonLister = `import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")`

// jdk is the Debian package of Java's tools.
const jdk = "openjdk-17-jdk-headless"

// tool opens archives. Its functions run it in a folder for the archive at a path.
type tool struct {
	name string
	// test checks the whole archive, and names returns the paths.
	test  func(t *testing.T, dir, archive string)
	names func(t *testing.T, dir, archive string) []string
	// unpack unpacks into the folder, with times and executable bits where these are true.
	unpack            func(t *testing.T, dir, archive string)
	times, executable bool
}

func tools() []tool {
	lines := func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
	cmd := func(debian, name string, args ...string) func(t *testing.T, dir, archive string) {
		return func(t *testing.T, dir, archive string) {
			t.Helper()
			run(t, debian, dir, name, append(args, archive)...)
		}
	}
	list := func(debian, name string, args ...string) func(t *testing.T, dir, archive string) []string {
		return func(t *testing.T, dir, archive string) []string {
			t.Helper()
			return lines(run(t, debian, dir, name, append(args, archive)...))
		}
	}
	return []tool{
		{
			name: "unzip", test: cmd("unzip", "unzip", "-tq"), names: list("unzip", "unzip", "-Z1"),
			unpack: cmd("unzip", "unzip", "-q"), times: true, executable: true,
		},
		{
			name: "7-Zip", test: cmd(
				"7zip",
				"7zz",
				"t",
			), unpack: cmd("7zip", "7zz", "x"), times: true, executable: true,
			names: func(t *testing.T, dir, archive string) (names []string) {
				t.Helper()
				for _, line := range lines(run(t, "7zip", dir, "7zz", "l", "-slt", "-ba", archive)) {
					if name, ok := strings.CutPrefix(line, "Path = "); ok {
						names = append(names, name)
					} else if line == "Folder = +" {
						names[len(names)-1] += "/"
					}
				}
				return names
			},
		},
		{
			name: "bsdtar", test: cmd(
				"libarchive-tools",
				"bsdtar",
				"-xOf",
			), names: list("libarchive-tools", "bsdtar", "-tf"),
			unpack: cmd("libarchive-tools", "bsdtar", "-xpf"), times: true, executable: true,
		},
		{
			name: "Python", test: cmd("python3", "python3", "-m", "zipfile", "-t"),
			names:  list("python3", "python3", "-c", pythonLister),
			unpack: cmd("python3", "python3", "-c", "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall()"),
		},
		{
			name: "jar", test: cmd(jdk, "jar", "-tf"), names: list(jdk, "jar", "-tf"),
			unpack: cmd(jdk, "jar", "-xf"), times: true,
		},
	}
}

// javaLists checks what the program above prints: all entries twice. stream has the bytes of the
// archive.
func javaLists(t *testing.T, archive string, stream io.Reader, entries []bundle.Entry) {
	t.Helper()
	dir, want := t.TempDir(), ""
	must(t, os.WriteFile(filepath.Join(dir, "Lister.java"), []byte(lister), 0o600))
	for _, e := range slices.Concat(entries, entries) {
		want += fmt.Sprintf("%s\t%d\t%d\n", e.Path, e.Length, e.Modified.Unix())
	}
	if got := feed(t, stream, jdk, dir, "java", "Lister.java", archive); got != want {
		t.Errorf("Java lists\n%s", got)
	}
}

func pathsOf(all []bundle.Entry) (paths []string) {
	for _, e := range all {
		paths = append(paths, e.Path)
	}
	return paths
}

// TestUsualProgramsUnpackABundleWithoutAComplaint runs in C.UTF-8.
func TestUsualProgramsUnpackABundleWithoutAComplaint(t *testing.T) {
	t.Parallel()
	all := samples()
	file := filepath.Join(t.TempDir(), "tree.zip")
	must(t, os.WriteFile(file, archive(t, all), 0o600))
	for _, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tool.test(t, dir, file)
			if names, want := tool.names(t, dir, file), pathsOf(entriesOf(all)); !slices.Equal(names, want) {
				t.Errorf("the names are %q, want %q", names, want)
			}
			tool.unpack(t, dir, file)
			unpacked(t, dir, all, tool)
		})
	}
}

// unpacked checks that all entries are in a folder, and nothing else.
func unpacked(t *testing.T, dir string, all []made, by tool) {
	t.Helper()
	for _, m := range all {
		path := filepath.Join(dir, m.Path)
		info, err := os.Lstat(path)
		if err != nil || info.IsDir() != m.IsFolder() {
			t.Errorf("%s: %v, %v", m.Path, info, err)
			continue
		}
		if by.times && !info.ModTime().Equal(m.Modified) {
			t.Errorf("%s is of %v, want %v", m.Path, info.ModTime(), m.Modified)
		}
		if m.IsFolder() {
			continue
		}
		if by.executable && (info.Mode()&0o100 != 0) != m.Executable {
			t.Errorf("%s has mode %v", m.Path, info.Mode())
		}
		if content, err := os.ReadFile(path); err != nil || string(content) != m.content {
			t.Errorf("%s has %d bytes, %v", m.Path, len(content), err)
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	want := len(slices.DeleteFunc(slices.Clone(all), func(m made) bool { return m.IsFolder() }))
	if err != nil || files != want {
		t.Errorf("%d files are unpacked, want %d, %v", files, want, err)
	}
}

func TestJavaReadsABundleAsAStream(t *testing.T) {
	t.Parallel()
	all, file := samples(), filepath.Join(t.TempDir(), "tree.zip")
	must(t, os.WriteFile(file, archive(t, all), 0o600))
	javaLists(t, file, bytes.NewReader(archive(t, all)), entriesOf(all))
}

// inMemory is a file of a bundle.
type inMemory struct{ io.ReaderAt }

func (inMemory) Close() error { return nil }

// large makes a sparse archive on disk, and returns its files. Behind a file of zeros that needs a
// ZIP64 length, there is a file that needs a ZIP64 offset, and the directory, which needs the ZIP64
// end record.
func large(t *testing.T) (path string, l *bundle.Layout, files []bundle.File) {
	t.Helper()
	const length, last = 1<<32 + 1, "a small file at the end"
	at := time.Unix(1e9, 0)
	l, err := bundle.Plan([]bundle.Entry{
		{Path: "first.txt", Length: 5, Modified: at},
		{Path: "zeros", Length: length, Modified: at},
		{Path: "後/", Modified: at},
		{Path: "後/after.txt", Length: int64(len(last)), Modified: at, Executable: true},
	})
	must(t, err)
	l.Entries[0].CRC32 = crc32.ChecksumIEEE([]byte("first"))
	l.Entries[1].CRC32 = crc32.ChecksumIEEE(make([]byte, 2)) // that of zeros is the same 1<<32-1 bytes later
	l.Entries[3].CRC32 = crc32.ChecksumIEEE([]byte(last))
	f, err := os.Create(filepath.Join(t.TempDir(), "large.zip"))
	must(t, err)
	defer f.Close()
	put := func(b []byte, at int64) {
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range l.Entries {
		put(e.Local(), e.Header)
	}
	put([]byte("first"), l.Entries[0].Offset)
	put([]byte(last), l.Entries[3].Offset)
	put(l.Tail(), l.Directory)
	return f.Name(), l, []bundle.File{
		inMemory{strings.NewReader("first")}, inMemory{behind{zeros: length}}, nil, inMemory{strings.NewReader(last)},
	}
}

func TestUsualProgramsOpenABundleOfMoreThan4GiB(t *testing.T) {
	t.Parallel()
	file, l, files := large(t)
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	if got, err := bundle.Read(t.Context(), from(f), l.Length); err != nil || !slices.Equal(got.Entries, l.Entries) {
		t.Errorf("reading gives %+v, %v", got, err)
	}
	opensInGo(t, f, l)
	for _, tool := range tools() {
		t.Run(tool.name, func(t *testing.T) {
			if names := tool.names(t, t.TempDir(), file); !slices.Equal(names, pathsOf(l.Entries)) {
				t.Errorf("the names are %q", names)
			}
		})
	}
	t.Run("one entry by unzip", func(t *testing.T) {
		if got := run(t, "unzip", t.TempDir(), "unzip", "-p", file, "*after.txt"); got != "a small file at the end" {
			t.Errorf("the last file has %q", got)
		}
	})
	t.Run("all bytes", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it reads 4 GiB twice")
		}
		parts := bundle.NewParts(l, l.Length, func(i int) (bundle.File, error) { return files[i], nil })
		whole := parts.Open(t.Context(), 1)
		defer whole.Close()
		javaLists(t, file, whole, l.Entries)
	})
}
