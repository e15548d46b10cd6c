package local

import (
	"net/http"

	"ferry/shared/api"
	"ferry/shared/api/account"
	"ferry/shared/api/file"
	"ferry/shared/api/upload"
	"ferry/shared/openapi"
	"ferry/shared/web"
)

// Endpoints returns all endpoints, including the fallback, for the one-process server
// and for tests of them all. No Lambda function imports it.
func Endpoints() []api.Endpoint {
	return []api.Endpoint{
		account.Change(), account.First(), account.Forget(), account.Login(), account.Me(),
		file.Download(), file.DownloadBackup(), file.List(), file.ListBackup(),
		file.Delete(), file.Get(), file.Restore(), file.Sharing(),
		api.Health(), openapi.NotFound(),
		account.Stop(), account.Revoke(), account.Token(), account.Tokens(),
		openapi.Endpoint(),
		upload.Upload(), upload.Sessions(), upload.Requests(),
		web.Endpoint(),
	}
}

// Handler returns all endpoints as one handler.
func Handler(p *api.Ports) *http.ServeMux {
	mux, fallback := http.NewServeMux(), openapi.NewNotFound(p)
	for _, e := range Endpoints() {
		e.Mount(mux, p, fallback)
	}
	mux.Handle("/", fallback)
	return mux
}
