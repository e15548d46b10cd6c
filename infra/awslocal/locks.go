package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"

	"ferry/infra/stack/emulated"
)

// inFront serves DynamoDB Local at another address, as a patient client of it, until this process ends.
func inFront(address string) (string, error) {
	target, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	address, _, err = emulated.Serve(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: patient{&http.Transport{MaxIdleConnsPerHost: 100}},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { // the client has gone, or the server has ended
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	return address, err
}

// patient repeats a request that has waited too long for a lock of DynamoDB Local, and so has done
// nothing. DynamoDB has no such locks, as the answer says itself.
type patient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for {
		try := r.Clone(r.Context())
		try.Body = io.NopCloser(bytes.NewReader(body))
		answer, err := p.RoundTripper.RoundTrip(try)
		if err != nil || answer.StatusCode != http.StatusInternalServerError {
			return answer, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte("waiting for a lock")) {
			answer.Body = io.NopCloser(bytes.NewReader(text))
			return answer, nil
		}
	}
}
