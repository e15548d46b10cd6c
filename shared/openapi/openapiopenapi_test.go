package openapi_test

import (
	"encoding/json"
	"testing"

	"ferry/shared/api/apitest"
)

func TestDocumentIsServedWithTheServicesAddress(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	resp := s.Request("GET", "/openapi.json", nil)
	var doc struct {
		OpenAPI string
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	if err := json.Unmarshal([]byte(s.Text(resp)), &doc); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || doc.OpenAPI != "3.1.0" || len(doc.Paths) < 15 || len(doc.Servers) != 1 || doc.Servers[0].URL != s.Base {
		t.Errorf("status %d, version %s, servers %+v, %d paths", resp.StatusCode, doc.OpenAPI, doc.Servers, len(doc.Paths))
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("Content-Type is %q", got)
	}
}
