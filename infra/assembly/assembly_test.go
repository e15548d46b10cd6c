package assembly_test

import (
	"crypto/rand"
	"io"
	"os"
	"strings"
	"testing"

	"ferry/infra/assembly"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/fixture"
)

// TestMain builds the functions once for all tests.
func TestMain(m *testing.M) {
	if os.Getenv("FERRY_TEST_AWS") == "" {
		os.Exit(m.Run())
	}
	os.Exit(withPrograms(m))
}

// fixtureStack makes a stack with what a fixture speaks of.
func fixtureStack(t *testing.T, f fixture.Fixture) *assembly.Fixtures {
	t.Helper()
	it, err := assembly.StartFixtures(t.Context(), config(t, nil), f)
	if err != nil {
		t.Fatal(err)
	}
	end(t, it)
	return it
}

// fixtures are all that there are.
func fixtures(t *testing.T) (all []fixture.Fixture) {
	t.Helper()
	names, err := fixture.Names(boottest.Root(t))
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no fixtures: %v", err)
	}
	for _, name := range names {
		f, err := fixture.Load(boottest.Root(t), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

// stackWith makes a stack with these parameters, without data.
func stackWith(t *testing.T, values map[string]string) *assembly.Local {
	t.Helper()
	it, err := assembly.Start(t.Context(), config(t, values))
	if err != nil {
		t.Fatal(err)
	}
	end(t, it)
	return it
}

func config(t *testing.T, values map[string]string) assembly.LocalConfig {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/assembly")
	}
	return assembly.LocalConfig{Root: boottest.Root(t), Programs: programs(), Name: "asm-" + strings.ToLower(rand.Text()), Log: t.Output(), Values: values}
}

func end(t *testing.T, it io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	})
}
