package local_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ferry/shared/boot/apitest"
)

const password = "a password to try"

// begun begins a session and returns its path.
func begun(s *apitest.Server, bearer, plan string) string {
	s.Helper()
	resp := s.Request("POST", "/uploads", strings.NewReader(plan), "Authorization", "Bearer "+bearer)
	if resp.StatusCode != 201 {
		s.Fatalf("beginning a session: status %d (%s)", resp.StatusCode, resp.Header.Get("Ferry-Error"))
	}
	return strings.TrimPrefix(resp.Header.Get("Location"), s.Base)
}

// partOf returns the path for the only part of a session.
func partOf(s *apitest.Server, bearer, session string) string {
	s.Helper()
	var out struct{ Parts []struct{ URL string } }
	resp := s.Request("POST", session+"/parts", strings.NewReader(`{"numbers":[1]}`), "Authorization", "Bearer "+bearer)
	if err := json.Unmarshal([]byte(s.Text(resp)), &out); err != nil || len(out.Parts) != 1 {
		s.Fatalf("asking for a part: status %d, %v", resp.StatusCode, err)
	}
	return strings.TrimPrefix(out.Parts[0].URL, s.Base)
}

// pin returns the eight digits in a mail.
func pin(t *testing.T, text string) string {
	t.Helper()
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(word) == 8 {
			return word
		}
	}
	t.Fatal("the mail has no PIN")
	return ""
}
