package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ferry/shared/notify/sms"
)

// run is what the events of one function do.
type run struct {
	Events int            `json:"events"`
	Own    float64        `json:"ownMs"` // without waiting for calls, by a whole CPU of the machine that counted
	Calls  map[string]int `json:"calls,omitempty"`
}

// count is what one operation does, with all that follows from it.
type count struct {
	Operation string           `json:"operation"`
	Runs      map[string]*run  `json:"runs"`             // by function
	Beside    map[string]int   `json:"beside,omitempty"` // calls by the caller or by AWS itself
	Units     map[unit]float64 `json:"units"`
}

func newCount(operation string) *count {
	return &count{Operation: operation, Runs: map[string]*run{}, Beside: map[string]int{}, Units: map[unit]float64{}}
}

// meter is an http.RoundTripper between the functions and the stand-ins for
// AWS. It counts what AWS would charge, tries that fail included.
type meter struct {
	services  map[string]bool // hosts of the stand-ins
	tableName string
	next      http.RoundTripper

	mu     sync.Mutex
	count  *count
	run    *run // of the function that runs; nil is the caller
	active int  // calls under way
	since  time.Time
	waited time.Duration // while any call was under way
}

// begin counts from zero.
func (m *meter) begin(operation string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count = newCount(operation)
}

// end returns what was counted.
func (m *meter) end() *count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// as runs an event of a function.
func (m *meter) as(function string, f func() error) error {
	m.mu.Lock()
	r := m.count.Runs[function]
	if r == nil {
		r = &run{Calls: map[string]int{}}
		m.count.Runs[function] = r
	}
	m.run, m.waited = r, 0
	m.mu.Unlock()
	begun := time.Now()
	err := f()
	took := time.Since(begun)
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Events++
	r.Own += float64(took-m.waited) / float64(time.Millisecond)
	m.run = nil
	m.count.Units[invocations]++
	m.count.Units[logBytes] += platformLogBytes
	return err
}

// Write is the functions' log.
func (m *meter) Write(line []byte) (int, error) {
	m.add(logBytes, float64(len(line)+logLineBytes))
	return len(line), nil
}

func (m *meter) add(u unit, n float64) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count.Units[u] += n
}

// beside counts calls that no function makes.
func (m *meter) beside(call string, u unit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count.Beside[call]++
	m.count.Units[u]++
}

func (m *meter) call(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.count.Beside
	if m.run != nil {
		calls = m.run.Calls
	}
	calls[name]++
}

// wait and done keep the time in which the function waits for any call.
func (m *meter) wait() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active++; m.active == 1 {
		m.since = time.Now()
	}
}

func (m *meter) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.active--; m.active == 0 {
		m.waited += time.Since(m.since)
	}
}

// RoundTrip implements http.RoundTripper.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if !m.services[r.URL.Host] {
		return m.next.RoundTrip(r)
	}
	m.wait()
	defer m.done()
	target := r.Header.Get("X-Amz-Target")
	service, operation, _ := strings.Cut(target, ".")
	switch {
	case strings.HasPrefix(service, "DynamoDB"):
		m.call("DynamoDB " + operation)
		return m.table(r, operation)
	case service == "AmazonSQS":
		m.call("SQS " + operation)
		m.add(queueCalls, 1)
	case strings.HasPrefix(r.URL.Path, "/v2/email/"):
		m.call("SES SendEmail")
		m.add(mails, 1)
	case r.URL.Path == "/": // an object has a bucket before it
		return m.topic(r)
	default:
		m.object(r)
	}
	return m.next.RoundTrip(r)
}

// topic counts a call to SNS: a text message by its segments, a publication by
// each 64 KB.
func (m *meter) topic(r *http.Request) (*http.Response, error) {
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("reading a call to SNS: %w", err)
	}
	m.call("SNS " + form.Get("Action"))
	if form.Get("PhoneNumber") != "" {
		m.add(texts, float64(sms.Segments(form.Get("Message"))))
	} else {
		m.add(publishes, float64(len(body)/(64<<10)+1))
	}
	return m.next.RoundTrip(r)
}

// object counts a call to S3. Of its prices one is for what writes and lists,
// one for all else; what removes is free.
func (m *meter) object(r *http.Request) {
	name := objectCall(r)
	m.call("S3 " + name)
	switch name {
	case "GetObject", "HeadObject":
		m.add(gets, 1)
	case "DeleteObject", "AbortMultipartUpload":
	default:
		m.add(puts, 1)
	}
}

func objectCall(r *http.Request) string {
	q := r.URL.Query()
	copies := r.Header.Get("X-Amz-Copy-Source") != ""
	switch {
	case r.Method == http.MethodHead:
		return "HeadObject"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost:
		return "CompleteMultipartUpload"
	case r.Method == http.MethodPut && q.Has("partNumber") && copies:
		return "UploadPartCopy"
	case r.Method == http.MethodPut && q.Has("partNumber"):
		return "UploadPart"
	case r.Method == http.MethodPut && copies:
		return "CopyObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case q.Has("uploadId"):
		return "ListParts"
	case q.Has("uploads"):
		return "ListMultipartUploads"
	case q.Has("list-type"):
		return "ListObjectsV2"
	}
	return "GetObject"
}

// readAll reads a request's body and puts it back.
func readAll(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a call: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
