package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry/shared/boot/expect"
)

func TestTheTemplateHasWhatTheCommandsReadOfAStack(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("../../..", "template.yaml"))
	expect.NoErr(t, err)
	outputs, parameters := variables()
	for output, variable := range outputs {
		if !strings.Contains(string(text), "\n  "+output+`: {Description: "`+variable+" for the ferry command.") {
			t.Errorf("there is no output %s for %s", output, variable)
		}
	}
	for parameter, variable := range parameters {
		if !strings.Contains(string(text), "\n  "+parameter+": {Type") ||
			!strings.Contains(string(text), variable+": !Ref "+parameter+"\n") {
			t.Errorf("there is no parameter %s for %s", parameter, variable)
		}
	}
}
