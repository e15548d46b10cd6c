package envelope

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// appendBody encodes an envelope. By hand, as the answer to every upload lists
// a hundred files: reflection made that the dearest part of the answer.
func appendBody(b []byte, v body) []byte {
	b = strconv.AppendInt(append(b, `{"status":`...), int64(v.Status), 10)
	b = appendText(append(b, `,"description":`...), v.Description)
	b = appendText(append(b, `,"apiver":`...), v.APIVer)
	for _, f := range []struct{ name, value string }{
		{`,"user":`, v.User}, {`,"bearer":`, v.Bearer}, {`,"linkURL":`, v.LinkURL},
	} {
		if f.value != "" {
			b = appendText(append(b, f.name...), f.value)
		}
	}
	if v.Files != nil {
		b = append(b, `,"files":[`...)
		for i, f := range v.Files {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendFile(b, f)
		}
		b = append(b, ']')
	}
	b = appendText(append(b, `,"time":`...), v.Time)
	return append(b, '}', '\n')
}

func appendFile(b []byte, f File) []byte {
	if f.rendered != nil {
		b = append(b, f.rendered...)
	} else {
		b = appendRecord(b, f)
	}
	b = appendText(append(b, `,"linkURL":`...), f.LinkURL)
	return append(b, '}')
}

func appendRecord(b []byte, f File) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), f.ID, 10)
	b = appendText(append(b, `,"name":`...), f.Name)
	b = strconv.AppendInt(append(b, `,"length":`...), f.Length, 10)
	return strconv.AppendInt(append(b, `,"modified":`...), f.Modified, 10)
}

// appendText encodes a string; what needs no escape is copied.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return append(b, escaped(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// escaped leaves the & of links as it is.
func escaped(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
