package web

import (
	"net/http"
	"slices"
	"strconv"

	"ferry/shared/blob"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/table"
	"ferry/shared/wire"
)

// newestArrived is how many of the files received through a request its card shows.
const newestArrived = 5

// requestsPage is what the requests page shows.
type requestsPage struct {
	Requests []request
	Made     *request // the one just made
	Form     *request // the one being made or changed
	New      bool
	Email    bool // the user can be notified by mail
}

// request is a request with the newest files received through it.
type request struct {
	wire.Request
	Newest []*files.Listed
}

// showRequests shows the user's requests, or a form for one. It costs two calls to the table, one
// more for what has arrived, and one for the login.
func (v *visit) showRequests() error {
	q := v.r.URL.Query()
	p := requestsPage{New: q.Has("new"), Email: v.who.Email != ""}
	if p.New {
		p.Form = &request{}
		return v.show(http.StatusOK, "requests", p)
	}
	if err := v.addRequests(&p); err != nil {
		return err
	}
	for i := range p.Requests {
		switch p.Requests[i].ID {
		case q.Get("id"):
			p.Form = &p.Requests[i]
		case q.Get("made"):
			p.Made = &p.Requests[i]
		}
	}
	if q.Has("id") && p.Form == nil {
		return fault.New(fault.NotFound, "there is no such request, or it has ended")
	}
	return v.show(http.StatusOK, "requests", p)
}

// addRequests gets the requests from the API, and adds what has arrived.
func (v *visit) addRequests(p *requestsPage) error {
	var all struct{ Requests []wire.Request }
	if _, err := v.ask(question{at: "GET /requests"}, &all); err != nil {
		return err
	}
	for _, r := range all.Requests {
		p.Requests = append(p.Requests, request{Request: r})
	}
	if !slices.ContainsFunc(p.Requests, func(r request) bool { return r.Arrived.Files > 0 }) {
		return nil
	}
	newest, err := v.ports.Files().List(v.r.Context(), v.who.User, blob.Files, 0, table.MaxPage)
	for _, f := range newest.Files {
		for i := range p.Requests {
			if r := &p.Requests[i]; f.By.Request == r.ID && len(r.Newest) < newestArrived {
				r.Newest = append(r.Newest, f)
			}
		}
	}
	return err
}

// Full reports whether no more files may arrive through the request.
func (r request) Full() bool {
	return r.Files > 0 && r.Arrived.Files >= r.Files ||
		r.Bytes > 0 && r.Arrived.Bytes >= r.Bytes
}

// Gigabytes returns the limit of bytes as the form shows it.
func (r request) Gigabytes() string {
	if r.Bytes == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(r.Bytes)/1e9, 'f', -1, 64)
}

// Title returns the title of a request.
func (p page) Title(r request) string {
	if r.Title == "" {
		return p.T("requests.untitled")
	}
	return r.Title
}

// Room says what the request can still take.
func (p page) Room(r request) (all []string) {
	if r.Files > 0 {
		all = append(
			all,
			p.T(
				"requests.files-left",
				max(0, r.Files-r.Arrived.Files),
				p.N("landing.files", r.Files),
			),
		)
	}
	if r.Bytes > 0 {
		all = append(
			all,
			p.T(
				"requests.bytes-left",
				p.Size(max(0, r.Bytes-r.Arrived.Bytes)),
				p.Size(r.Bytes),
			),
		)
	}
	if r.Protected {
		all = append(all, p.T("file.password"))
	}
	return all
}
