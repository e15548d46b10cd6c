package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/wire"
)

// question is a request to the API.
type question struct {
	at             string     // method, and path after the prefix, with the query
	json           any        // the body, if not nil
	form           url.Values // or a form, if not nil
	name, password string     // for a login; without a name, the visitor's cookie is sent
	header         http.Header
}

// reply is the answer to a question.
type reply struct {
	header http.Header
	body   bytes.Buffer
}

// Header, WriteHeader and Write implement http.ResponseWriter.
func (a *reply) Header() http.Header         { return a.header }
func (a *reply) WriteHeader(int)             {}
func (a *reply) Write(p []byte) (int, error) { return a.body.Write(p) }

// ask sends the API a request that any program could send, as the visitor and within this process,
// and decodes the JSON answer into out, unless out is nil. The error is the endpoint's own.
func (v *visit) ask(q question, out any) (*reply, error) {
	var failed error
	r, err := v.request(q, &failed)
	if err != nil {
		return nil, fmt.Errorf("asking the interface: %w", err)
	}
	a := &reply{header: http.Header{}}
	v.api.ServeHTTP(a, r)
	if inner := fault.CallerOf(r.Context()); inner.Login != "" {
		outer := fault.CallerOf(v.r.Context())
		outer.Login = inner.Login
		outer.User = inner.User
		outer.Accepted = inner.Accepted
	}
	if failed != nil || out == nil {
		return a, failed
	}
	return a, fault.Wrap(
		json.Unmarshal(a.body.Bytes(), out),
		"reading an answer of the interface",
	)
}

// request makes the HTTP request for a question. failed receives the endpoint's error.
func (v *visit) request(q question, failed *error) (*http.Request, error) {
	method, path, _ := strings.Cut(q.at, " ")
	body, kind := io.Reader(http.NoBody), ""
	if q.json != nil {
		text, err := json.Marshal(q.json)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(text), "application/json"
	} else if q.form != nil {
		body, kind = strings.NewReader(q.form.Encode()), "application/x-www-form-urlencoded"
	}
	r, err := http.NewRequestWithContext(
		envelope.Within(v.r.Context(), failed),
		method,
		wire.Prefix+path,
		body,
	)
	if err != nil {
		return nil, err
	}
	if !r.URL.Query().Has("lang") { // the links in the answer open in the page's language
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&lang="+v.Lang, "&")
	}
	r.RemoteAddr, r.Host = v.r.RemoteAddr, v.r.Host
	for _, name := range []string{"Cookie", "Origin", "Sec-Fetch-Site", "User-Agent", "Accept-Language"} {
		r.Header[name] = v.r.Header[name]
	}
	r.Header.Set("Accept", "application/json")
	maps.Copy(r.Header, q.header)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if q.name != "" {
		r.SetBasicAuth(q.name, q.password)
	}
	return r, nil
}
