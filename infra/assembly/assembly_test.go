package assembly_test

import (
	"os"
	"strings"
	"testing"

	"ferry/infra/assembly"
	"ferry/shared/boot/boottest"
)

// TestMain builds the functions once for all tests.
func TestMain(m *testing.M) {
	if os.Getenv("FERRY_TEST_AWS") == "" {
		os.Exit(m.Run())
	}
	os.Exit(withPrograms(m))
}

// stack makes a stack with the data of the fixtures.
func stack(t *testing.T) *assembly.Local {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/assembly")
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	it, err := assembly.Start(t.Context(), assembly.LocalConfig{
		Root: boottest.Root(t), Programs: programs(), Name: strings.Trim("asm-"+name[len(name)-min(len(name), 40):], "-"), Key: boottest.Key, Log: t.Output(),
		Values: map[string]string{"PublicUrl": ""}, // the fixtures' links have the gateway's own address
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := it.Ports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Log = boottest.Log(t)
	boottest.Seed(t, p)
	return it
}
