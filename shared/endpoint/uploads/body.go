package uploads

import (
	"io"

	"ferry/shared/fault"
)

// body is a request's body. What fails in reading it is the client's.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &fault.Error{Kind: fault.Invalid, Detail: "the part ends too early", Cause: err}
	}
	return n, err
}
