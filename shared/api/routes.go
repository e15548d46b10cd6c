package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// routes returns the routes of each endpoint by its name. The endpoint notfound, which
// has none, gets all other requests.
func routes() map[string][]Route {
	return map[string][]Route{
		"authchange":         {{"POST", "/auth/change"}},
		"authfirst":          {{"POST", "/auth/first"}},
		"authforget":         {{"GET", "/auth/forget"}},
		"authlogin":          {{"POST", "/auth/login"}},
		"downloadfile":       {{"GET", "/download/file"}, {"HEAD", "/download/file"}},
		"downloadfilebackup": {{"GET", "/download/file/backup"}, {"HEAD", "/download/file/backup"}},
		"downloadlist":       {{"GET", "/download/list"}, {"HEAD", "/download/list"}},
		"downloadlistbackup": {{"GET", "/download/list/backup"}, {"HEAD", "/download/list/backup"}},
		"filesdelete":        {{"DELETE", "/files/{id}"}},
		"filesget":           {{"GET", "/files/{id}"}, {"HEAD", "/files/{id}"}},
		"filesrestore":       {{"POST", "/files/{id}/restore"}},
		"health":             {{"GET", "/health"}, {"HEAD", "/health"}},
		"me":                 {{"GET", "/me"}},
		"notificationsstop":  {{"GET", "/notifications/stop"}, {"POST", "/notifications/stop"}},
		"oauthrevoke":        {{"POST", "/oauth2/revoke"}},
		"oauthtoken":         {{"POST", "/oauth2/token"}},
		"openapi":            {{"GET", "/openapi.json"}, {"HEAD", "/openapi.json"}},
		"upload":             {{"POST", "/upload"}, {"PUT", "/upload"}, {"PUT", "/upload/{name}"}},
		"uploads": {{"POST", "/uploads"}, {"GET", "/uploads"}, {"HEAD", "/uploads"},
			{"GET", "/uploads/{id}"}, {"HEAD", "/uploads/{id}"}, {"DELETE", "/uploads/{id}"},
			{"POST", "/uploads/{id}/parts"}, {"POST", "/uploads/{id}/complete"},
		},
	}
}

// PartRoute takes the bytes of a part. Only a single machine has it: in the cloud parts go
// to S3.
var PartRoute = Route{"PUT", "/uploads/{id}/parts/{number}"}

// Methods returns the methods of a path after Prefix, sorted; none if it is not known.
func Methods(path string) (all []string) {
	for _, r := range append(slices.Concat(slices.Collect(maps.Values(routes()))...), PartRoute) {
		if r.Fits(path) {
			all = append(all, r.Method)
		}
	}
	slices.Sort(all)
	return all
}

// Fits reports whether a path after Prefix matches the route.
func (r Route) Fits(path string) bool {
	return slices.EqualFunc(strings.Split(r.Path, "/"), strings.Split(path, "/"), func(t, s string) bool {
		return t == s || strings.HasPrefix(t, "{") && s != ""
	})
}

// Named returns the endpoint with a name and its routes.
func Named(name string, handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{Name: name, Routes: routes()[name], New: handler}
}
