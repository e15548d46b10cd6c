package emulated

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"ferry/shared/blob"
)

// pages asks as the browser of a page does that the API has redirected to a bucket: its
// origin is then null.
func pages(t *testing.T, c *Cloud) {
	d := deploy(t, c, nil)
	for _, area := range blob.Areas() {
		objects, err := d.ports.Blobs.List(t.Context(), area, "", 1)
		if err != nil || len(objects) == 0 {
			t.Fatalf("the area %s has %v, %v", area, objects, err)
		}
		signed, err := d.ports.Blobs.SignGet(t.Context(), area, objects[0].Key, blob.Signed{Expires: time.Minute})
		check(t, err)
		for method, headers := range map[string]string{
			"GET":    "range, if-range",
			"HEAD":   "",
			"PUT":    "x-amz-checksum-crc64nvme",
			"DELETE": "",
		} {
			allowed := method != "DELETE" && (method != "PUT" || area == blob.Files)
			got := ask(
				t,
				http.MethodOptions,
				signed,
				"Access-Control-Request-Method",
				method,
				"Access-Control-Request-Headers",
				headers,
			)
			if (got.Get("Access-Control-Allow-Origin") == "*") != allowed ||
				got.Get("Access-Control-Allow-Credentials") == "true" {
				t.Errorf("before a %s of %s the answer is %v", method, area, got)
			}
		}
		got := ask(t, http.MethodGet, signed)
		for _, name := range []string{"ETag", "Content-Disposition", "X-Amz-Checksum-Crc64nvme"} {
			if !strings.Contains(got.Get("Access-Control-Expose-Headers"), name) ||
				got.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("a page may not read %s of %s: %v", name, area, got)
			}
		}
	}
}

// ask sends a request of a page, with pairs of headers, and returns the answer's headers.
func ask(t *testing.T, method, address string, headers ...string) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	check(t, err)
	r.Header.Set("Origin", "null")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	check(t, err)
	check(t, resp.Body.Close())
	return resp.Header
}
