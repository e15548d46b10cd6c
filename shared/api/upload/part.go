package upload

import (
	"io"

	"ferry/shared/envelope"
)

// body is a request's body. What fails in reading it is the client's.
type body struct{ io.Reader }

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &envelope.Fault{Kind: envelope.Invalid, Detail: "the part ends too early", Cause: err}
	}
	return n, err
}
