package envelope

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxAge is how long a browser may remember the answer to a preflight.
const MaxAge = 10 * time.Minute

// Methods are those that a page may use.
func Methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "DELETE"} }

// Headers are those that a page may send, besides those that any page may.
func Headers() []string {
	return []string{
		"Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "If-Range", "Range", "Repr-Digest", "X-Amz-Checksum-Crc64nvme",
	}
}

// Exposed are the headers of a response that a page may read, besides those
// that any page may.
func Exposed() []string {
	return []string{
		"Content-Disposition", "Content-Range", "ETag", "Ferry-Error", "Link", "Location", "Repr-Digest", "Retry-After", "X-Request-Id",
	}
}

// Origins are those whose web pages may use the service: it answers their browsers'
// preflights (Fetch standard, "CORS protocol"). Credentials of the browser's own,
// such as cookies, are never let in; a page sends the header Authorization itself.
// In the cloud the gateway does this, with the same methods and headers.
//
// The zero value is none.
type Origins struct {
	all   bool
	these []string
}

// ParseOrigins reads a list of origins such as https://app.example.com, separated by
// commas, or * for all. Empty is none.
func ParseOrigins(text string) (Origins, error) {
	var o Origins
	var errs []error
	for entry := range strings.SplitSeq(text, ",") {
		switch entry = strings.TrimSpace(entry); entry {
		case "":
		case "*":
			o.all = true
		default:
			origin, err := parseOrigin(entry)
			errs = append(errs, err)
			o.these = append(o.these, origin)
		}
	}
	return o, errors.Join(errs...)
}

// parseOrigin writes an origin as browsers do: in lower case, and without the
// port that its scheme has anyway.
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(strings.ToLower(strings.TrimSuffix(text, "/")))
	if err != nil || u.Scheme == "" || u.Hostname() == "" || u.Scheme+"://"+u.Host != u.String() || strings.ContainsFunc(u.Host, notInHost) {
		return "", fmt.Errorf("%q is not an origin such as https://app.example.com", text)
	}
	usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, usual), nil
}

// notInHost is true of what an origin's host never has: browsers write other
// scripts in Punycode, and nothing stands for several hosts.
func notInHost(r rune) bool { return r <= ' ' || r > '~' || r == '*' }

// allow is what Access-Control-Allow-Origin has for an origin; empty is that
// it is not let in.
func (o Origins) allow(origin string) string {
	switch {
	case origin == "":
		return ""
	case o.all:
		return "*"
	case slices.Contains(o.these, origin):
		return origin
	}
	return ""
}

// Handler lets pages of the origins use what next serves below prefix, and no
// other address. Without origins it is next.
func (o Origins) Handler(prefix string, next http.Handler) http.Handler {
	if !o.all && len(o.these) == 0 {
		return next
	}
	methods, headers, exposed := strings.Join(Methods(), ", "), strings.Join(Headers(), ", "), strings.Join(Exposed(), ", ")
	maxAge := strconv.Itoa(int(MaxAge.Seconds()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, prefix+"/") {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		if !o.all {
			h.Add("Vary", "Origin")
		}
		allowed := o.allow(r.Header.Get("Origin"))
		if allowed == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", allowed)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", methods)
			h.Set("Access-Control-Allow-Headers", headers)
			h.Set("Access-Control-Max-Age", maxAge)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", exposed)
		next.ServeHTTP(w, r)
	})
}
