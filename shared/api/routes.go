package api

import "net/http"

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

// Named returns the endpoint with a name and its routes.
func Named(name string, handler func(*Ports) http.Handler) Endpoint {
	return Endpoint{Name: name, Routes: routes()[name], New: handler}
}
