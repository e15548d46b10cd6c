package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

var (
	// ErrNoLogin is returned where a credential is needed and none is there.
	ErrNoLogin = errors.New("not logged in")
	// ErrDigest is returned when bytes are not those that a digest names.
	ErrDigest = errors.New("the bytes that arrived are not those that were stored")
	// ErrChanged is returned when a file is not the one of before: the local
	// one while it is sent, or the service's while it is fetched.
	ErrChanged = errors.New("the file has changed meanwhile")
	// ErrExists is returned when a file of the name is there already.
	ErrExists = errors.New("the file exists already")
	// ErrNotFound is returned when no file of the caller's has the name.
	ErrNotFound = errors.New("there is no such file")
	// ErrAnswer is returned for an answer that is not the interface's.
	ErrAnswer = errors.New("the answer is not that of a Ferry service")
)

// Error is what the service says when it refuses a request.
type Error struct {
	Status      int           // the HTTP status
	Description string        // the status in words
	Detail      string        // what exactly is wrong; may be empty
	RetryAfter  time.Duration // how long to wait before the next try; 0 if not said
}

// Error is one sentence, of what is known most exactly.
func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("the service answered %d %s", e.Status, e.Description)
}

// Is makes ErrNotFound of a 404.
func (e *Error) Is(target error) bool {
	return target == ErrNotFound && e.Status == http.StatusNotFound
}

// StatusOf is the HTTP status of an error that came from the service, or 0.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// maxAnswer bounds answers that are read whole: the longest tells of 10,000
// parts.
const maxAnswer = 16 << 20

// refusal reads the error of a response, whose body it reads.
func refusal(resp *http.Response) *Error {
	e := &Error{
		Status: resp.StatusCode, Description: http.StatusText(resp.StatusCode),
		Detail: resp.Header.Get("Ferry-Error"), RetryAfter: retryAfter(resp.Header),
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var envelope struct {
		Description string `json:"description"`
		Error       string `json:"error_description"`
	}
	if err == nil && json.Unmarshal(text, &envelope) == nil && envelope.Description != "" {
		e.Description = envelope.Description
	}
	return e
}

// retryAfter reads the field in its two forms (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if s, err := strconv.ParseUint(value, 10, 24); err == nil {
		return time.Duration(s) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, at.Sub(sent))
}
