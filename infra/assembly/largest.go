package assembly

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strconv"

	"ferry/infra/lambdahost"
	"ferry/shared/boot/fixture"
)

// MaxMemory is the most memory that the largest upload may take, in bytes.
const MaxMemory = 128 << 20

// times is how often an upload is sent to one process, whose memory grows until
// it has once been collected.
const times = 8

// LargestUpload sends the largest upload that the template allows to a process
// of the function, a few times, as a form or as a body alone, and returns the
// most memory that the process has taken. Each comes with a password, which the
// first lets hash anew: that takes memory too.
func (it *Fixtures) LargestUpload(ctx context.Context, form bool) (peak int64, err error) {
	environment, err := it.Environment("upload")
	if err != nil {
		return 0, err
	}
	size, err := strconv.Atoi(environment["FERRY_MAX_BODY"])
	if err != nil {
		return 0, fmt.Errorf("reading the most bytes of a body: %w", err)
	}
	event, err := largest(size, form)
	if err != nil {
		return 0, err
	}
	for range times {
		r, err := it.Hosts["upload"].Invoke(ctx, event)
		if err != nil {
			return 0, err
		}
		if err := (fixture.Expect{Status: http.StatusOK, Body: "handlerDownloadList"}).Check(r.Payload); err != nil {
			return 0, fmt.Errorf("uploading %d bytes: %w", size, err)
		}
		peak = r.Peak
	}
	return peak, nil
}

// largest is the event of an upload whose body has so many bytes, which nothing
// can make fewer.
func largest(size int, form bool) ([]byte, error) {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // never fails
	kind, method := "application/octet-stream", http.MethodPut
	if form {
		var err error
		if content, kind, err = asForm(content); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, "http://files.example.com/v1/upload?file=largest.bin", nil)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "203.0.113.7:1"
	r.Header.Set("Content-Type", kind)
	r.SetBasicAuth("alice", fixture.Password)
	return json.Marshal(lambdahost.Event(r, "/v1/upload", content))
}

// asForm puts as much of the content in a form as makes it as long.
func asForm(content []byte) (body []byte, kind string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "largest.bin")
	if err != nil {
		return nil, "", err
	}
	around := b.Len() + len("\r\n--"+w.Boundary()+"--\r\n")
	if _, err := part.Write(content[around:]); err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), w.FormDataContentType(), nil
}
