// Package all lists the endpoints, for the one-process server and the tests of
// the whole. No Lambda imports it.
package all

import (
	"net/http"

	"ferry/shared/endpoint"
	"ferry/shared/endpoint/authchange"
	"ferry/shared/endpoint/authfirst"
	"ferry/shared/endpoint/authforget"
	"ferry/shared/endpoint/authlogin"
	"ferry/shared/endpoint/downloadfile"
	"ferry/shared/endpoint/downloadfilebackup"
	"ferry/shared/endpoint/downloadlist"
	"ferry/shared/endpoint/downloadlistbackup"
	"ferry/shared/endpoint/filesdelete"
	"ferry/shared/endpoint/filesget"
	"ferry/shared/endpoint/filesrestore"
	"ferry/shared/endpoint/health"
	"ferry/shared/endpoint/notfound"
	"ferry/shared/endpoint/notificationsstop"
	"ferry/shared/endpoint/oauthrevoke"
	"ferry/shared/endpoint/oauthtoken"
	"ferry/shared/endpoint/openapi"
	"ferry/shared/endpoint/upload"
	"ferry/shared/endpoint/uploads"
)

// Endpoints returns every endpoint, the fallback included.
func Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		authchange.Endpoint(),
		authfirst.Endpoint(),
		authforget.Endpoint(),
		authlogin.Endpoint(),
		downloadfile.Endpoint(),
		downloadfilebackup.Endpoint(),
		downloadlist.Endpoint(),
		downloadlistbackup.Endpoint(),
		filesdelete.Endpoint(),
		filesget.Endpoint(),
		filesrestore.Endpoint(),
		health.Endpoint(),
		notfound.Endpoint(),
		notificationsstop.Endpoint(),
		oauthrevoke.Endpoint(),
		oauthtoken.Endpoint(),
		openapi.Endpoint(),
		upload.Endpoint(),
		uploads.Endpoint(),
	}
}

// Handler returns all endpoints as one handler.
func Handler(p *endpoint.Ports) *http.ServeMux {
	mux, fallback := http.NewServeMux(), notfound.New(p)
	for _, e := range Endpoints() {
		e.Mount(mux, p, fallback)
	}
	mux.Handle("/", fallback)
	return mux
}
