package file

import (
	"encoding/hex"
	"net/http"

	"ferry/shared/api/param"
	"ferry/shared/envelope"
	"ferry/shared/files"
	"ferry/shared/links"
	"ferry/shared/users"
	"ferry/shared/wire"
)

// about tells whoever has a link about it. It costs no call.
func (d *download) about() error {
	link, f := d.link, d.link.File
	out := wire.About{
		Sender:    link.Sender(),
		Message:   link.Text,
		Expires:   param.Time(link.Ends()),
		Protected: link.Password != "",
		Bundle:    f.Entries > 0,
		Entries:   f.Entries,
	}
	if !out.Protected || d.claim != "" || d.password != "" {
		sum, err := checksum(f)
		if err != nil {
			return err
		}
		out.Name = f.Name
		out.Type = contentType(f)
		out.Length = &f.Length
		out.CRC64NVME = wire.CRC64Text(sum)
		out.SHA256 = hex.EncodeToString(f.SHA256)
	}
	if left, limited := link.Left(); limited {
		out.Left = &left
	}
	return envelope.WriteJSON(d.w, http.StatusOK, out)
}

// shown returns a link of a file as an answer shows it. The URL of a recipient's link is left out,
// because only the recipient may know it.
func (s server) shown(r *http.Request, u users.User, f files.File, l links.Link) wire.Link {
	state := l.State(s.ports.Now())
	l.File = f // a link that was lost does not know its file
	out := wire.Link{
		ID:        l.ID(),
		State:     string(state),
		Channel:   string(l.Channel),
		To:        l.To,
		Expires:   param.Time(l.Ends()),
		Downloads: l.Limit,
		Protected: l.Password != "",
		Used:      downloadsOf(l.Use),
	}
	if left, limited := l.Left(); limited {
		out.Left = &left
	}
	if l.To == "" {
		out.LinkURL = s.ports.DownloadLink(r, u, f.Area) + l.Token
	}
	return out
}
