package assembly_test

import (
	"testing"

	"ferry/infra/assembly"
	"ferry/shared/boot/fixture"
)

func TestTheLargestUploadFitsItsMemory(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]bool{"as a form": true, "as a body alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := fixtureStack(t, fixture.Fixture{Function: "upload"})
			peak, err := it.LargestUpload(t.Context(), form)
			if err != nil {
				t.Fatal(err)
			}
			if peak > assembly.MaxMemory {
				t.Errorf("it takes %d MiB, more than %d", peak>>20, assembly.MaxMemory>>20)
			}
			t.Logf("it takes %d MiB", peak>>20)
		})
	}
}
