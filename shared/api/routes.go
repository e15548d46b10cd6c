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
		"authchange":         to(anybody, "GET POST /auth/change"),
		"authfirst":          to(anybody, "POST /auth/first"),
		"authforget":         to(anybody, "GET /auth/forget"),
		"authlogin":          to(anybody, "POST /auth/login"),
		"downloadfile":       to(anybody, "GET HEAD /download/file"),
		"downloadfilebackup": to(anybody, "GET HEAD /download/file/backup"),
		"downloadlist":       to(download, "GET HEAD /download/list"),
		"downloadlistbackup": to(download, "GET HEAD /download/list/backup"),
		"filesdelete":        to(all, "DELETE /files/{id}"),
		"filesget":           to(download, "GET HEAD /files/{id}"),
		"filesrestore":       to(all, "POST /files/{id}/restore"),
		"health":             to(anybody, "GET HEAD /health"),
		"links": to(
			all,
			"PATCH /files/{id}",
			"POST /files/{id}/links",
			"PATCH DELETE /files/{id}/links/{n}",
			"POST /files/{id}/links/own/renew",
		),
		"me":                append(to(download, "GET /me"), to(login, "POST /me/password")...),
		"notificationsstop": to(anybody, "GET POST /notifications/stop"),
		"oauthrevoke":       to(anybody, "POST /oauth2/revoke"),
		"oauthtoken":        to(anybody, "POST /oauth2/token"),
		"openapi":           to(anybody, "GET HEAD /openapi.json"),
		"requests": append(to(anybody, "GET HEAD POST PUT /requests/in"),
			to(all, "POST GET HEAD /requests", "PATCH DELETE /requests/{id}")...),
		"tokens": append(to(
			login,
			"POST /tokens",
		), to(all, "GET HEAD DELETE /tokens", "DELETE /tokens/{id}")...),
		"upload": to(upload, "POST PUT /upload", "PUT /upload/{name}"),
		"uploads": to(
			upload,
			"POST GET HEAD /uploads",
			"GET HEAD DELETE /uploads/{id}",
			"POST /uploads/{id}/parts",
			"POST /uploads/{id}/complete",
		),
	}
}

// to returns routes that need a scope. Each line has one path and its methods.
func to(needs identity.Scope, lines ...string) (all []Route) {
	for _, line := range lines {
		words := strings.Fields(line)
		last := len(words) - 1
		for _, method := range words[:last] {
			all = append(all, Route{method, words[last], needs})
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
		Kind:   fault.MethodNotAllowed,
		Allow:  allow,
		Detail: "this address accepts " + strings.Join(allow, ", "),
	}
}

// Fits reports whether a path after wire.Prefix matches the route.
func (r Route) Fits(path string) bool {
	return slices.EqualFunc(strings.Split(
		r.Path,
		"/",
	), strings.Split(path, "/"), func(t, s string) bool {
		return t == s || strings.HasPrefix(t, "{") && s != ""
	})
}

// Named returns the endpoint with a name and its routes.
func Named(name string, handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{Name: name, Prefix: wire.Prefix, Routes: routes()[name], New: handler}
}

// Pages returns the endpoint of all pages, which are not below wire.Prefix.
func Pages(handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{
		Name: "web",
		New:  handler,
		Routes: to(
			"",
			"GET HEAD /",
			"GET HEAD POST /{page}",
			"GET HEAD /static/{version}/{file}",
		),
	}
}
