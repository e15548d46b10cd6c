package envelope

import (
	"io"
	"net/http"
)

// recorder notes what was sent. It keeps the way from a file to the network
// through the kernel open: ReadFrom hands on to the server's own.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	failed *Fault
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Sent tells how a handler's response has gone so far: its status, 0 if there
// is none yet, and the bytes of its body.
func Sent(w http.ResponseWriter) (status int, bytes int64) {
	if rec, ok := w.(*recorder); ok {
		return rec.status, rec.bytes
	}
	return 0, 0
}
