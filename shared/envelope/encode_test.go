package envelope

import (
	"bytes"
	"testing"
)

func FuzzEnvelopesAreEncodedLikeEncodingJSON(f *testing.F) {
	f.Add(0, "handlerAuthLogin:succsessfully", "demo", "token", "http://h/v1/x?lang=en&k=a", "a name.pdf", int64(1), 2)
	f.Add(400, "Bad Request", "", "", "", "<\"quotes\">\\ \u2028\n\x00\xff é 漢字", int64(-1), -1)
	f.Add(200, "", "\u007f", "&", "'", "", int64(0), 0)
	f.Fuzz(func(t *testing.T, status int, description, user, bearer, link, name string, n int64, files int) {
		v := Success{Description: description, User: user, Bearer: bearer, LinkURL: link}
		if files >= 0 {
			v.Files = []*File{}
		}
		for range min(files, 3) {
			v.Files = append(v.Files, &File{ID: n, Name: name, Length: n, Modified: n, LinkURL: `é"` + link})
		}
		want, err := encode(struct {
			Status      int     `json:"status"`
			Description string  `json:"description"`
			APIVer      string  `json:"apiver"`
			User        string  `json:"user,omitempty"`
			Bearer      string  `json:"bearer,omitempty"`
			LinkURL     string  `json:"linkURL,omitempty"`
			Files       []*File `json:"files,omitzero"`
			Time        string  `json:"time"`
		}{status, description, APIVersion, user, bearer, link, v.Files, name})
		if err != nil {
			t.Fatal(err)
		}
		v.Links = `é"`
		for i, f := range v.Files {
			f.LinkURL = link
			if i > 0 {
				v.Files[i] = f.Rendered()
			}
		}
		if got := appendBody(nil, status, name, v); !bytes.Equal(got, want) {
			t.Errorf("got  %swant %s", got, want)
		}
	})
}
