package apitest

import (
	"fmt"

	"ferry/shared/blob"
	"ferry/shared/boot/expect"
	"ferry/shared/files"
)

// Newest returns the newest file in a user's area, as it is stored.
func (s *Server) Newest(owner string) files.File {
	s.Helper()
	u, err := s.Users.Get(s.Context(), owner)
	check(s.TB, "reading the user "+owner, err)
	page, err := s.Service.Files().List(s.Context(), u, blob.Files, 0, 1)
	check(s.TB, "listing", err)
	if len(page.Files) != 1 {
		s.Fatalf("%s has no file", owner)
	}
	return page.Files[0].File
}

// SendToTwo uploads a file for two recipients, with more parameters, and returns it as it is stored.
func (c Caller) SendToTwo(query string) files.File {
	c.Helper()
	c.Upload("file=a&c=%2B393401234567&m=carla@example.com"+query, "content")
	return c.Newest(c.Name)
}

// LinksOf returns the paths of a file's own link and of the recipients' links.
func (s *Server) LinksOf(f files.File) []string {
	all := []string{"/download/file?k=" + s.Data.Ports.Key.File(f.Area, f.Owner, f.ID)}
	for _, id := range f.Recipients {
		all = append(
			all,
			"/download/file?k="+s.Data.Ports.Key.Recipient(f.Area, f.Owner, f.ID, id),
		)
	}
	return all
}

// WantStatuses checks the status that links answer with.
func (s *Server) WantStatuses(when string, links []string, status int) {
	s.Helper()
	for i, link := range links {
		expect.Equal(
			s.TB,
			fmt.Sprintf("%s the status of link %d", when, i),
			s.Send("GET "+link, "").Code,
			status,
		)
	}
}
