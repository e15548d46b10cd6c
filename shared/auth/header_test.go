package auth_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"ferry/shared/auth"
	"ferry/shared/fault"
)

func TestCredentialIsReadFromTheHeader(t *testing.T) {
	t.Parallel()
	c := begin(t)
	_, bearer, err := c.Login(t.Context(), by("alice", right, source))
	must(t, err)
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	good := encode("alice:" + right)
	sources := 0
	for what, k := range map[string]struct {
		header string
		ok     bool
	}{
		"a bearer":                               {"Bearer " + bearer, true},
		"a bearer's scheme in lower case":        {"bearer " + bearer, true},
		"a bearer's scheme in upper case":        {"BEARER " + bearer, true},
		"a bearer after two spaces":              {"Bearer  " + bearer, true},
		"a bearer with a trailing space":         {"Bearer " + bearer + " ", true},
		"a bearer in quotes":                     {`Bearer "` + bearer + `"`, false},
		"a bearer without a scheme":              {bearer, false},
		"a bearer without a space":               {"Bearer" + bearer, false},
		"a bearer after a tab":                   {"Bearer\t" + bearer, false},
		"two bearers":                            {"Bearer " + bearer + "," + bearer, false},
		"a bearer with padding":                  {"Bearer " + bearer + "=", false},
		"a bearer as a token":                    {"Token " + bearer, false},
		"a bearer as a password":                 {"Basic " + encode("alice:"+bearer), false},
		"a password":                             {"Basic " + good, true},
		"a password's scheme in lower case":      {"basic " + good, true},
		"a name in upper case":                   {"Basic " + encode("ALICE:"+right), true},
		"a name with a space":                    {"Basic " + encode("alice :"+right), false},
		"a password with an extra colon":         {"Basic " + encode("alice:"+right+":"), false},
		"a password without a name":              {"Basic " + encode(":"+right), false},
		"a name without a password":              {"Basic " + encode("alice:"), false},
		"a name without a colon":                 {"Basic " + encode("alice"), false},
		"a password that is not encoded":         {"Basic alice:" + right, false},
		"a password as a bearer":                 {"Bearer " + good, false},
		"a temporary password":                   {"Basic " + encode("new:"+right), false},
		"the password of a user who is disabled": {"Basic " + encode("off:"+right), false},
		"only a scheme":                          {"Bearer", false},
		"a scheme and a space":                   {"Bearer ", false},
		"only the other scheme":                  {"Basic", false},
		"another scheme":                         {`Digest username="alice"`, false},
		"nothing":                                {"", false},
		"a space":                                {" ", false},
		"something very long":                    {"Bearer " + strings.Repeat("A", 100_000), false},
		"a long name":                            {"Basic " + encode(strings.Repeat("a", 100_000)+":x"), false},
		"bytes that are not text":                {"Basic " + encode("\xff\xfe:\x00"), false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		// Each from another source, so that failures do not slow it down.
		sources++
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", sources)
		r.Header.Set("Authorization", k.header)
		u, err := c.Check(t.Context(), auth.Read(r))
		if k.ok && (err != nil || u.Name != "alice") || !k.ok && !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s gives %q, %v", what, u.Name, err)
		}
	}
}

func TestFirstAccessTakesATemporaryPasswordAndNoBearer(t *testing.T) {
	t.Parallel()
	c := begin(t)
	_, bearer, err := c.Login(t.Context(), by("alice", right, source))
	must(t, err)
	r := httptest.NewRequest("POST", "/", nil)
	r.SetBasicAuth("new", right)
	if u, err := c.CheckFirst(t.Context(), auth.Read(r)); err != nil || u.Name != "new" {
		t.Errorf("a temporary password gives %q, %v", u.Name, err)
	}
	if _, err := c.Check(t.Context(), auth.Read(r)); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("elsewhere it gives %v", err)
	}
	r.Header.Set("Authorization", "Bearer "+bearer)
	if _, err := c.CheckFirst(t.Context(), auth.Read(r)); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a bearer gives %v", err)
	}
}
