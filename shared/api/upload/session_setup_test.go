package upload_test

import (
	"crypto/rand"
	"fmt"
	"strings"

	"ferry/shared/blob"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
)

const partSize = blob.MinPartSize

type session struct {
	ID, Name, State, D, From string
	Length, PartSize         int64
	Parts                    int
	Arrived                  []struct {
		Number    int
		Size      int64
		CRC64NVME string
	}
}

// path returns the path of something of a session.
func (s session) path(of string) string { return "/uploads/" + s.ID + of }

type part struct {
	Number  int
	Size    int64
	URL     string
	Method  string
	Headers map[string]string
}

// content returns random bytes.
func content(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return string(b)
}

// begins begins a session with this JSON.
func (c caller) begins(plan string, headers ...string) session {
	c.Helper()
	return apitest.Read[session](c.Ask("POST /uploads", plan, headers...).Want(201))
}

// plan begins a session for a file, with more fields.
func (c caller) plan(fields string, length int) session {
	c.Helper()
	return c.begins(fmt.Sprintf(`{"name":"film.mp4","length":%d,"partSize":%d%s}`, length, partSize, fields))
}

// shown returns a session as it is shown.
func (c caller) shown(s session) session {
	c.Helper()
	return apitest.Read[session](c.Ask("GET "+s.path(""), "").Want(200))
}

// sign returns where a part goes. The JSON may have more fields.
func (c caller) sign(s session, number int, fields ...string) part {
	c.Helper()
	body := fmt.Sprintf(`{"numbers":[%d]%s}`, number, strings.Join(fields, ""))
	return apitest.Read[struct{ Parts []part }](c.Ask("POST "+s.path("/parts"), body).Want(200)).Parts[0]
}

// put sends bytes exactly as a signed part says.
func (c caller) put(p part, data string) apitest.Answer {
	c.Helper()
	var headers []string
	for name, value := range p.Headers {
		headers = append(headers, name, value)
	}
	return c.Send(p.Method+" "+p.URL, data, headers...)
}

func (c caller) sendAll(s session, data string) {
	c.Helper()
	for n := 1; n <= s.Parts; n++ {
		p := c.sign(s, n)
		from := int64(n-1) * s.PartSize
		c.put(p, data[from:from+p.Size]).Want(200)
	}
}

// sent begins a session and sends all parts.
func (c caller) sent(fields, data string) session {
	c.Helper()
	s := c.plan(fields, len(data))
	c.sendAll(s, data)
	return s
}

func (c caller) complete(s session, body string) apitest.Answer {
	c.Helper()
	return c.Ask("POST "+s.path("/complete"), body)
}

// completes completes a session, whose link must give these bytes.
func (c caller) completes(s session, body, data string) {
	c.Helper()
	f := c.complete(s, body).Want(200).File()
	if got := c.Get(f.LinkURL); f.Length != int64(len(data)) || got != data {
		c.Errorf("the link of %+v gives %d bytes, which are not the %d that were sent", f, len(got), len(data))
	}
}

// notFound checks that nothing can be done with a session, with a reason that contains these words.
func (c caller) notFound(id string, words ...string) {
	c.Helper()
	for request, body := range map[string]string{
		"GET ":           "",
		"DELETE ":        "",
		"POST /complete": "",
		"POST /parts":    `{"numbers":[1]}`,
	} {
		method, of, _ := strings.Cut(request, " ")
		c.Ask(method+" /uploads/"+id+of, body).Want(404, words...)
	}
}

// open lists the IDs of the sessions that the caller sees.
func (c caller) open() (ids []string) {
	c.Helper()
	for _, s := range apitest.Read[struct{ Uploads []session }](c.Ask("GET /uploads", "").Want(200)).Uploads {
		ids = append(ids, s.ID)
	}
	return ids
}

// wantUsed checks the bytes that count against a user's quota.
func (c caller) wantUsed(name string, want int64) {
	c.Helper()
	u, err := c.Users.Get(c.Context(), name)
	expect.NoErr(c.TB, err)
	expect.Equal(c.TB, "bytes in use of "+name, u.Used, want)
}
