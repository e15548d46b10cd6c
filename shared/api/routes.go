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
	table := map[string][]Route{ // with all methods of a path
		"authchange":         {{"GET POST", "/auth/change", anybody}},
		"authfirst":          {{"POST", "/auth/first", anybody}},
		"authforget":         {{"GET", "/auth/forget", anybody}},
		"authlogin":          {{"POST", "/auth/login", anybody}},
		"downloadfile":       {{"GET HEAD", "/download/file", anybody}},
		"downloadfilebackup": {{"GET HEAD", "/download/file/backup", anybody}},
		"downloadlist":       {{"GET HEAD", "/download/list", download}},
		"downloadlistbackup": {{"GET HEAD", "/download/list/backup", download}},
		"filesdelete":        {{"DELETE", "/files/{id}", all}},
		"filesget":           {{"GET HEAD", "/files/{id}", download}},
		"filesrestore":       {{"POST", "/files/{id}/restore", all}},
		"health":             {{"GET HEAD", "/health", anybody}},
		"links": {
			{"PATCH", "/files/{id}", all}, {"POST", "/files/{id}/links", all},
			{"PATCH DELETE", "/files/{id}/links/{n}", all}, {"POST", "/files/{id}/links/own/renew", all},
		},
		"me":                {{"GET", "/me", download}, {"POST", "/me/password", login}},
		"notificationsstop": {{"GET POST", "/notifications/stop", anybody}},
		"oauthrevoke":       {{"POST", "/oauth2/revoke", anybody}},
		"oauthtoken":        {{"POST", "/oauth2/token", anybody}},
		"openapi":           {{"GET HEAD", "/openapi.json", anybody}},
		"requests": {
			{"POST GET HEAD", "/requests", all}, {"PATCH DELETE", "/requests/{id}", all},
			{"GET HEAD POST PUT", "/requests/in", anybody},
		},
		"tokens": {{"POST", "/tokens", login}, {"GET HEAD DELETE", "/tokens", all}, {"DELETE", "/tokens/{id}", all}},
		"upload": {{"POST PUT", "/upload", upload}, {"PUT", "/upload/{name}", upload}},
		"uploads": {
			{"POST GET HEAD", "/uploads", upload}, {"GET HEAD DELETE", "/uploads/{id}", upload},
			{"POST", "/uploads/{id}/parts", upload}, {"POST", "/uploads/{id}/complete", upload},
		},
	}
	for name, paths := range table {
		table[name] = each(paths)
	}
	return table
}

// each returns a route for each of the methods of paths.
func each(paths []Route) (all []Route) {
	for _, p := range paths {
		for method := range strings.FieldsSeq(p.Method) {
			all = append(all, Route{method, p.Path, p.Needs})
		}
	}
	return all
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
	return Endpoint{Name: "web", New: handler, Routes: each([]Route{
		{"GET HEAD", "/", ""}, {"GET HEAD POST", "/{page}", ""}, {"GET HEAD", "/static/{version}/{file}", ""},
	})}
}
