package file

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"ferry/shared/api"
	"ferry/shared/api/param"
	"ferry/shared/blob"
	"ferry/shared/envelope"
	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/identity"
	"ferry/shared/links"
	"ferry/shared/notify"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// Get is GET /files/{id}. It shows everything that is known about a file that the caller owns or
// has sent: its checksums, the states of its notices, and the downloads by each link.
func Get() api.Endpoint { return api.Named("filesget", newGet) }

// Record is a file as the answer shows it. Fields that lists also have are the same there.
type Record struct {
	notify.FileFacts
	Entries   int            `json:"entries,omitempty"`  // of a bundle
	Uploader  string         `json:"uploader,omitempty"` // if not the owner
	Request   string         `json:"request,omitempty"`  // the request through whose link a guest sent it
	By        string         `json:"by,omitempty"`       // the name that the guest gave
	LinkURL   string         `json:"linkURL"`
	Downloads wire.Downloads `json:"downloads"` // by linkURL
	Links     []wire.Link    `json:"links"`     // those that the caller may see; the file's own comes first
	// Only the uploader sees Notify. The owner and the uploader each see only the Notifications
	// that they have sent.
	Notify        bool                `json:"notify,omitempty"` // the uploader gets a mail at the first download
	Notifications []wire.Notification `json:"notifications,omitzero"`
}

// newGet returns the handler. It needs the port Table and the link key.
//
// After authentication a request costs two calls, and three if the caller has sent the
// file to recipients.
func newGet(p *api.Ports) http.Handler {
	return p.Authenticated(newServer(p).get)
}

func (s server) get(w http.ResponseWriter, r *http.Request, u identity.Identity) error {
	f, err := s.find(r, u)
	if err != nil {
		return err
	}
	return s.writeRecord(w, r, u, f)
}

// writeRecord sends all that is known about a file. It costs one call, and two if the caller has
// sent the file to recipients.
func (s server) writeRecord(
	w http.ResponseWriter,
	r *http.Request,
	u identity.Identity,
	f files.File,
) error {
	if _, err := checksum(f); err != nil {
		return err
	}
	out := Record{
		FileFacts: notify.FactsOf(f),
		Entries:   f.Entries,
		Uploader:  f.Uploader(),
		Request:   f.By.Request,
		By:        f.By.Called,
		LinkURL:   s.ports.DownloadLink(r, u.User, f.Area) + s.links.Token(f),
	}
	if err := s.addUses(r, u, f, &out); err != nil {
		return err
	}
	return envelope.WriteJSON(w, http.StatusOK, out)
}

// find returns a file of the caller's or, with the parameter d, one that the caller has sent to
// another user.
func (s server) find(r *http.Request, u identity.Identity) (f files.File, err error) {
	id, err := param.FileID(r)
	if err != nil {
		return f, err
	}
	area, err := areaOf(r)
	if err != nil {
		return f, err
	}
	text := r.URL.Query().Get("d")
	d, ok := users.CanonicalName(text)
	switch {
	case text == "" || d == u.Name:
		return s.files.Get(r.Context(), u.User, area, id)
	case !ok || area == blob.Backup: // only its owner can see that area
		return f, fault.New(fault.NotFound, "you have sent no file with that id to that user")
	}
	return s.files.Sent(r.Context(), files.ByOf(u), d, id)
}

// areaOf returns the area that a query names; the default is the user area.
func areaOf(r *http.Request) (blob.Area, error) {
	q, err := param.Query(r)
	if err != nil || !q.Has("area") {
		return blob.Files, err
	}
	area := blob.Area(q.Get("area"))
	if area != blob.Files && area != blob.Backup {
		return "", fault.Parameter("area", "the query parameter area must be %s or %s",
			blob.Files, blob.Backup)
	}
	return area, nil
}

// checksum returns the CRC64NVME of a file.
func checksum(f files.File) (uint64, error) {
	sum, err := strconv.ParseUint(f.CRC64, 16, 64)
	return sum, fault.Wrap(
		err,
		fmt.Sprintf("reading the checksum of file %d of %s", f.ID, f.Owner),
	)
}

// addUses adds what is known about the links that the caller may see, and about the messages that
// carried them.
func (s server) addUses(r *http.Request, u identity.Identity, f files.File, out *Record) error {
	uploader := f.By == files.ByOf(u)
	all, err := s.links.Of(r.Context(), f)
	if err != nil {
		return err
	}
	out.Downloads = downloadsOf(all[0].Use)
	all = slices.DeleteFunc(all, func(l links.Link) bool {
		return !l.SeenBy(f.Owner == u.Name, uploader)
	})
	var sent []links.Link
	var ids []string
	for _, l := range all {
		out.Links = append(out.Links, s.shown(r, u.User, f, l))
		if l.To != "" {
			sent, ids = append(sent, l), append(ids, l.Recipient)
		}
	}
	out.Notify = uploader && f.Notify
	if !uploader && len(sent) == 0 {
		return nil
	}
	known, err := notify.States(r.Context(), s.ports.Table, ids)
	if err != nil {
		return err
	}
	out.Notifications = make([]wire.Notification, len(sent))
	for i, l := range sent {
		n := notify.Notice{ID: l.Recipient, To: l.To}
		state := ""
		for _, k := range known {
			if k.ID == n.ID {
				n, state = k, string(k.State())
			}
		}
		out.Notifications[i] = wire.Notification{
			ID:        n.ID,
			Channel:   string(n.Channel),
			To:        n.To,
			State:     state,
			Created:   param.Time(n.Created),
			Tries:     n.Tried(),
			LastError: n.LastError,
			Provider:  n.Provider,
			Sent:      param.Time(n.SentAt / 1000),
			Delivered: param.Time(n.Delivered / 1000),
			Failed:    param.Time(n.FailedAt / 1000),
			Downloads: downloadsOf(l.Use),
		}
	}
	return nil
}

func downloadsOf(u links.Use) wire.Downloads {
	return wire.Downloads{
		Count:       u.Downloads,
		About:       u.About,
		First:       param.Time(u.First),
		Last:        param.Time(u.Last),
		Previews:    u.Previews,
		LastPreview: param.Time(u.Seen),
	}
}
