package upload_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"ferry/shared/api/apitest"
)

func oauth2Styles() map[string]oauth2.AuthStyle {
	return map[string]oauth2.AuthStyle{
		"that detects the style":      oauth2.AuthStyleAutoDetect,
		"with its secret in the form": oauth2.AuthStyleInParams,
		"with its secret in a header": oauth2.AuthStyleInHeader,
	}
}

func (c uploadCaller) oauth2(style oauth2.AuthStyle) *oauth2.Config {
	return &oauth2.Config{
		ClientID: "some-client", ClientSecret: "its secret",
		Endpoint: oauth2.Endpoint{TokenURL: c.Base + "/oauth2/token", AuthStyle: style},
	}
}

func TestOAuth2ClientLogsInAndUploads(t *testing.T) {
	t.Parallel()
	for what, style := range oauth2Styles() {
		t.Run("a client "+what, func(t *testing.T) {
			t.Parallel()
			c := uploadBegin(t)
			config := c.oauth2(style)
			token, err := config.PasswordCredentialsToken(t.Context(), c.name, c.password)
			if err != nil {
				t.Fatalf("logging in: %v", err)
			}
			if token.Type() != "Bearer" || token.ExpiresIn != 3600 || token.AccessToken == "" {
				t.Errorf("the token is a %s for %d seconds", token.Type(), token.ExpiresIn)
			}
			resp, err := config.Client(t.Context(), token).Post(c.Base+"/upload?file=a.txt", "text/plain", strings.NewReader("content"))
			if err != nil {
				t.Fatalf("uploading: %v", err)
			}
			defer resp.Body.Close()
			if e := c.Decode(resp, 200); len(e.Files) != 1 || c.get(e.Files[0].LinkURL) != "content" {
				t.Errorf("the upload answered %+v", e)
			}
		})
	}
}

func TestFailedOAuth2LoginCountsOnce(t *testing.T) {
	t.Parallel()
	for what, style := range oauth2Styles() {
		t.Run("a client "+what, func(t *testing.T) {
			t.Parallel()
			c := uploadBegin(t)
			for try, password := range []string{"first wrong", "second wrong", "third wrong"} {
				_, err := c.oauth2(style).PasswordCredentialsToken(t.Context(), c.name, password)
				var refused *oauth2.RetrieveError
				if !errors.As(err, &refused) || refused.Response.StatusCode != http.StatusUnauthorized {
					t.Fatalf("a wrong password gives %v", err)
				}
				if got := c.failures(); got != try+1 {
					t.Errorf("%d failed logins count as %d", try+1, got)
				}
			}
		})
	}
}

// failures returns how many failed logins of the caller are on record.
func (c uploadCaller) failures() int {
	c.Helper()
	text, found := c.Items()["throttle#127.0.0.1 user#"+c.name]
	if !found {
		return 0
	}
	var item struct{ Count int }
	if err := json.Unmarshal([]byte(text), &item); err != nil {
		c.Fatalf("reading the failed logins %s: %v", text, err)
	}
	return item.Count
}

func TestLoginClearsFailures(t *testing.T) {
	t.Parallel()
	c := uploadBegin(t)
	c.Decode(c.Request("POST", "/auth/login", nil, "Authorization", apitest.Basic(c.name, "wrong")), 401)
	if c.failures() != 1 {
		t.Errorf("%d failed logins are on record, want 1", c.failures())
	}
	if _, err := c.oauth2(oauth2.AuthStyleInParams).PasswordCredentialsToken(t.Context(), c.name, c.password); err != nil {
		t.Fatalf("logging in: %v", err)
	}
	if c.failures() != 0 {
		t.Errorf("%d failed logins are still on record", c.failures())
	}
}
