package file

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"ferry/shared/files"
)

func TestFailedReadOfASmallFileSendsNothing(t *testing.T) {
	t.Parallel()
	for what, rest := range map[string]io.Reader{
		"a read that fails":        iotest.ErrReader(errors.New("broken")),
		"a file that is too short": strings.NewReader(""),
	} {
		w := httptest.NewRecorder()
		err := sendSmall(w, files.File{Length: 5}, io.MultiReader(strings.NewReader("abc"), rest))
		if err == nil || w.Body.Len() > 0 || len(w.Header()) > 0 {
			t.Errorf("%s: sent %q with %v, %v", what, w.Body, w.Header(), err)
		}
	}
}
