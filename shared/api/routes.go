package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"ferry/shared/auth"
)

// routes returns the routes of each endpoint by its name. The endpoint notfound, which
// has none, gets all other requests.
func routes() map[string][]Route {
	const anybody, upload, download, all, login = "", auth.ScopeUpload, auth.ScopeDownload, auth.ScopeAll, auth.ScopeLogin
	return map[string][]Route{
		"authchange":         {{"POST", "/auth/change", anybody}},
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
		"tokens": {{"POST", "/tokens", login}, {"GET", "/tokens", all}, {"HEAD", "/tokens", all},
			{"DELETE", "/tokens", all}, {"DELETE", "/tokens/{id}", all}},
		"upload": {{"POST", "/upload", upload}, {"PUT", "/upload", upload}, {"PUT", "/upload/{name}", upload}},
		"uploads": {{"POST", "/uploads", upload}, {"GET", "/uploads", upload}, {"HEAD", "/uploads", upload},
			{"GET", "/uploads/{id}", upload}, {"HEAD", "/uploads/{id}", upload}, {"DELETE", "/uploads/{id}", upload},
			{"POST", "/uploads/{id}/parts", upload}, {"POST", "/uploads/{id}/complete", upload},
		},
	}
}

// PartRoute takes the bytes of a part. Only a single machine has it: in the cloud parts go
// to S3.
var PartRoute = Route{"PUT", "/uploads/{id}/parts/{number}", ""}

// needs returns what each route needs, by its pattern.
func needs() map[string]auth.Scope {
	all := map[string]auth.Scope{}
	for _, endpoint := range routes() {
		for _, r := range endpoint {
			all[r.pattern()] = r.Needs
		}
	}
	return all
}

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
