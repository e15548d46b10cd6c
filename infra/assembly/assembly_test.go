package assembly_test

import (
	"crypto/rand"
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
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return stackWith(t, name, map[string]string{"PublicUrl": ""}) // the fixtures' links have the gateway's own address
}

func stackWith(t *testing.T, name string, values map[string]string) *assembly.Local {
	t.Helper()
	if os.Getenv("FERRY_TEST_AWS") == "" {
		t.Skip("needs stand-ins for AWS: go run ./infra/awslocal -- go test ./infra/assembly")
	}
	it, err := assembly.Start(t.Context(), assembly.LocalConfig{
		Root: boottest.Root(t), Programs: programs(), Name: "asm-" + strings.Trim(name[len(name)-min(len(name), 30):], "-") + "-" + strings.ToLower(rand.Text()[:6]), Key: boottest.Key, Log: t.Output(),
		Values: values,
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
