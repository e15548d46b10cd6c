package apitest

import (
	"net/http"
	"strings"
	"testing"
)

func TestResponsesThatTheDescriptionForbidsAreFound(t *testing.T) {
	t.Parallel()
	c := described(t)
	const (
		moment  = `"time":"2025-10-03 09:12:50.123456789 +0200 CEST m=+42.123456789"`
		success = `{"status":0,"description":"handlerDownloadList:succsessfully","apiver":"v1 (3.6.0)","user":"a","files":[],` + moment + `}`
		failure = `{"status":404,"description":"Not Found","apiver":"v1 (3.6.0)",` + moment + `}`
	)
	good := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Request-Id": {"1"}, "Cache-Control": {"no-store"}, "Ferry-Error": {"there is no such thing"}}
	for _, k := range []struct {
		what, method, path string
		status             int
		body               string
		allowed            bool
	}{
		{"a list", "GET", "/v1/download/list", 200, success, true},
		{"a list with an extra field", "GET", "/v1/download/list", 200, strings.Replace(success, `"user"`, `"more":1,"user"`, 1), false},
		{"a list with a missing field", "GET", "/v1/download/list", 200, strings.Replace(success, `"user":"a",`, ``, 1), false},
		{"a list with another text", "GET", "/v1/download/list", 200, strings.Replace(success, "succsessfully", "successfully", 1), false},
		{"a list with another time", "GET", "/v1/download/list", 200, strings.Replace(success, " m=+", " ", 1), false},
		{"a list with a number as text", "GET", "/v1/download/list", 200, strings.Replace(success, `:0,`, `:"0",`, 1), false},
		{"a status that is not described", "GET", "/v1/download/list", 418, failure, false},
		{"an error with the status of another", "GET", "/v1/files/1", 404, strings.Replace(failure, "404", "400", 1), false},
		{"an unknown path", "GET", "/v1/nothing", 404, failure, true},
		{"an unknown path with a success", "GET", "/v1/nothing", 200, success, false},
		{"a path outside the interface", "GET", "/inbox", 200, "", true},
	} {
		r, err := http.NewRequest(k.method, "http://127.0.0.1"+k.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = c.check(r, &http.Response{StatusCode: k.status, Header: good}, []byte(k.body))
		if (err == nil) != k.allowed {
			t.Errorf("%s: %v", k.what, err)
		}
	}
	for name := range good {
		r, _ := http.NewRequest("GET", "http://127.0.0.1/v1/nothing", nil)
		h := good.Clone()
		h.Del(name)
		if err := c.check(r, &http.Response{StatusCode: 404, Header: h}, []byte(failure)); (err == nil) != (name == "Cache-Control") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
