package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"ferry/shared/fault"
	"ferry/shared/identity"
	"ferry/shared/wire"
)

// routes returns the routes of each endpoint by its name. The endpoint notfound, which
// has none, gets all other requests.
func routes() map[string][]Route {
	const anybody, upload, download, all, login = "", identity.ScopeUpload, identity.ScopeDownload, identity.ScopeAll, identity.ScopeAccount
	return map[string][]Route{
		"authchange":         {{"GET", "/auth/change", anybody}, {"POST", "/auth/change", anybody}},
		"authfirst":          {{"POST", "/auth/first", anybody}},
		"authforget":         {{"GET", "/auth/forget", anybody}},
		"authlogin":          {{"POST", "/auth/login", anybody}},
		"downloadfile":       {{"GET", "/download/file", anybody}, {"HEAD", "/download/file", anybody}},
		"downloadfilebackup": {{"GET", "/download/file/backup", anybody}, {"HEAD", "/download/file/backup", anybody}},
		"downloadlist":       {{"GET", "/download/list", download}, {"HEAD", "/download/list", download}},
		"downloadlistbackup": {{"GET", "/download/list/backup", download}, {"HEAD", "/download/list/backup", download}},
		"filesdelete":        {{"DELETE", "/files/{id}", all}},
		"filesget":           {{"GET", "/files/{id}", download}, {"HEAD", "/files/{id}", download}},
		"filesrestore":       {{"POST", "/files/{id}/restore", all}},
		"health":             {{"GET", "/health", anybody}, {"HEAD", "/health", anybody}},
		"links": {{"PATCH", "/files/{id}", all}, {"POST", "/files/{id}/links", all}, {"PATCH", "/files/{id}/links/{n}", all},
			{"DELETE", "/files/{id}/links/{n}", all}, {"POST", "/files/{id}/links/own/renew", all}},
		"me":                {{"GET", "/me", download}, {"POST", "/me/password", login}},
		"notificationsstop": {{"GET", "/notifications/stop", anybody}, {"POST", "/notifications/stop", anybody}},
		"oauthrevoke":       {{"POST", "/oauth2/revoke", anybody}},
		"oauthtoken":        {{"POST", "/oauth2/token", anybody}},
		"openapi":           {{"GET", "/openapi.json", anybody}, {"HEAD", "/openapi.json", anybody}},
		"requests": {{"POST", "/requests", all}, {"GET", "/requests", all}, {"HEAD", "/requests", all},
			{"PATCH", "/requests/{id}", all}, {"DELETE", "/requests/{id}", all},
			{"GET", "/requests/in", anybody}, {"HEAD", "/requests/in", anybody},
			{"POST", "/requests/in", anybody}, {"PUT", "/requests/in", anybody}},
		"tokens": {{"POST", "/tokens", login}, {"GET", "/tokens", all}, {"HEAD", "/tokens", all},
			{"DELETE", "/tokens", all}, {"DELETE", "/tokens/{id}", all}},
		"upload": {{"POST", "/upload", upload}, {"PUT", "/upload", upload}, {"PUT", "/upload/{name}", upload}},
		"uploads": {{"POST", "/uploads", upload}, {"GET", "/uploads", upload}, {"HEAD", "/uploads", upload},
			{"GET", "/uploads/{id}", upload}, {"HEAD", "/uploads/{id}", upload}, {"DELETE", "/uploads/{id}", upload},
			{"POST", "/uploads/{id}/parts", upload}, {"POST", "/uploads/{id}/complete", upload},
		},
	}
}

// PartRoute takes the bytes of a part. It exists only on a single machine: in the cloud, parts go
// to S3.
var PartRoute = Route{"PUT", "/uploads/{id}/parts/{number}", ""}

// needs returns the scope that each route needs, by its pattern.
func needs() map[string]identity.Scope {
	all := map[string]identity.Scope{}
	for _, some := range routes() {
		for _, r := range some {
			all[r.pattern(wire.Prefix)] = r.Needs
		}
	}
	return all
}

// Methods returns the methods of a path after wire.Prefix, sorted; none if the path is unknown. A
// literal route wins over a pattern such as /files/{id}.
func Methods(path string) (all []string) {
	every := append(slices.Concat(slices.Collect(maps.Values(routes()))...), PartRoute)
	literal := slices.ContainsFunc(every, func(r Route) bool { return r.Path == path })
	for _, r := range every {
		if r.Path == path || !literal && r.Fits(path) {
			all = append(all, r.Method)
		}
	}
	slices.Sort(all)
	return all
}

// NotAllowed returns the fault for a path after wire.Prefix that has only other methods.
func NotAllowed(path string) error {
	allow := Methods(path)
	return &fault.Fault{
		Kind: fault.MethodNotAllowed, Allow: allow, Detail: "this address accepts " + strings.Join(allow, ", "),
	}
}

// Fits reports whether a path after wire.Prefix matches the route.
func (r Route) Fits(path string) bool {
	return slices.EqualFunc(strings.Split(r.Path, "/"), strings.Split(path, "/"), func(t, s string) bool {
		return t == s || strings.HasPrefix(t, "{") && s != ""
	})
}

// Named returns the endpoint with a name and its routes.
func Named(name string, handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{Name: name, Prefix: wire.Prefix, Routes: routes()[name], New: handler}
}

// Pages returns the endpoint of all pages, which are not below wire.Prefix.
func Pages(handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{Name: "web", New: handler, Routes: []Route{
		{"GET", "/", ""}, {"HEAD", "/", ""}, {"GET", "/{page}", ""}, {"HEAD", "/{page}", ""}, {"POST", "/{page}", ""},
		{"GET", "/static/{version}/{file}", ""}, {"HEAD", "/static/{version}/{file}", ""},
	}}
}
