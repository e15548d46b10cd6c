package envelope

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzTheEncodingIsThatOfEncodingJSON holds the encoder to the tags of body.
func FuzzTheEncodingIsThatOfEncodingJSON(f *testing.F) {
	f.Add(0, "handlerAuthLogin:succsessfully", "demo", "token", "http://h/v1/x?lang=en&k=a", "a name.pdf", int64(1), 2)
	f.Add(400, "Bad Request", "", "", "", "<\"quotes\">\\ \u2028\n\x00\xff é 漢字", int64(-1), -1)
	f.Add(200, "", "\u007f", "&", "'", "", int64(0), 0)
	f.Fuzz(func(t *testing.T, status int, description, user, bearer, link, name string, n int64, files int) {
		v := body{Status: status, Description: description, APIVer: APIVersion, User: user, Bearer: bearer, LinkURL: link, Time: name}
		if files >= 0 {
			v.Files = []*File{}
		}
		for range min(files, 3) {
			v.Files = append(v.Files, &File{ID: n, Name: name, Length: n, Modified: n, LinkURL: `é"` + link})
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		v.links = `é"`
		for i, f := range v.Files {
			f.LinkURL = link
			if i > 0 {
				v.Files[i] = f.Rendered()
			}
		}
		if got := appendBody(nil, v); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got  %swant %s", got, want.Bytes())
		}
	})
}
