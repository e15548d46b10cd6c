package stack

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ferry/shared/boot/boottest"
)

// maxSize is the limit in bytes of a function's program for arm64, which `make deploy` builds.
// Lambda allows more, but a larger one takes longer to load.
const maxSize = 12_000_000

// maxWebSize is the limit for the function of the pages. html/template calls methods by their names,
// so the linker keeps every method of the AWS SDK's clients, called or not: 8 MB more.
const maxWebSize = 21_000_000

func TestEachFunctionIsSmall(t *testing.T) {
	t.Parallel()
	built := filepath.Join(boottest.Root(t), "bin", "functions")
	if _, err := os.Stat(built); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the functions are not built: make build")
	}
	for _, name := range names() {
		path := filepath.Join(built, name, "bootstrap")
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("%s is not built: %v", name, err)
			continue
		}
		t.Logf("%-20s %10d bytes", name, info.Size())
		limit := int64(maxSize)
		if name == "web" {
			limit = maxWebSize
		}
		if processorOf(t, path) == elf.EM_X86_64 { // its programs are about a twelfth larger: uploads has 11.84 and 10.88 MB
			limit += limit / 11
		}
		if info.Size() > limit {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), limit)
		}
	}
}

func processorOf(t *testing.T, program string) elf.Machine {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Machine
}
