package envelope

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// MaxAge is how long a browser may cache the answer to a preflight.
const MaxAge = 10 * time.Minute

// Methods returns the methods that a page may use.
func Methods() []string { return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} }

// maxAsked is the most headers that the answer to a preflight allows.
const maxAsked = 64

// askedHeaders returns the headers that a page asks to send. A page may send any header: libraries
// add some of their own, and no header says anything that a page must not say.
func askedHeaders(h http.Header) (names []string) {
	for name := range strings.SplitSeq(strings.Join(h.Values("Access-Control-Request-Headers"), ","), ",") {
		name = strings.Trim(name, " \t")
		if len(names) < maxAsked && httpguts.ValidHeaderFieldName(name) {
			names = append(names, name)
		}
	}
	return names
}

// Exposed returns the response headers that a page may read, in addition to those
// always allowed.
func Exposed() []string {
	return []string{
		"Content-Disposition", "Content-Range", "ETag", "Ferry-Error", "Ferry-Files", "Ferry-Guest", "Ferry-Parameter", "Link", "Location",
		"Repr-Digest", "Retry-After", "X-Amz-Checksum-Crc64nvme", "X-Request-Id",
	}
}

// Origins lists the origins whose web pages may use the service; * allows all. The
// service answers their browsers' preflights (Fetch standard, "CORS protocol").
// Credentials that a browser adds by itself, such as cookies, are never allowed; a
// page sends the Authorization header itself. In the cloud the gateway does this,
// with the same methods and for any header, and tells the functions the origins.
type Origins []string

// ParseOrigins reads a list of origins such as https://app.example.com, separated by
// commas, or * for all. An empty text gives an empty list.
func ParseOrigins(text string) (Origins, error) {
	var o Origins
	var errs []error
	for entry := range strings.SplitSeq(text, ",") {
		switch entry = strings.TrimSpace(entry); entry {
		case "":
		case "*":
			o = append(o, entry)
		default:
			origin, err := parseOrigin(entry)
			o, errs = append(o, origin), append(errs, err)
		}
	}
	return o, errors.Join(errs...)
}

type originsKey struct{}

// WithOrigins returns a context for requests that pages of these origins may make.
func WithOrigins(ctx context.Context, o Origins) context.Context {
	return context.WithValue(ctx, originsKey{}, o)
}

// allow reports whether an origin, as a browser sends it, is in the list.
func (o Origins) allow(origin string) bool {
	return origin != "" && (slices.Contains(o, "*") || slices.Contains(o, origin))
}

// parseOrigin returns an origin as browsers write it: in lower case, and without its
// scheme's default port.
func parseOrigin(text string) (string, error) {
	u, err := url.Parse(strings.ToLower(strings.TrimSuffix(text, "/")))
	if err != nil ||
		u.Scheme == "" ||
		u.Hostname() == "" ||
		u.Scheme+"://"+u.Host != u.String() ||
		strings.ContainsFunc(u.Host, notInHost) ||
		u.Host[0] != '[' && strings.Contains(u.Hostname(), ":") {
		return "", fmt.Errorf("%q is not an origin such as https://app.example.com", text)
	}
	usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	host := strings.TrimSuffix(strings.TrimSuffix(u.Host, usual), ":")
	return u.Scheme + "://" + host, nil
}

// notInHost reports characters that the host of an origin cannot have: browsers write
// other scripts in Punycode, and there are no wildcards.
func notInHost(r rune) bool { return r <= ' ' || r > '~' || r == '*' }

// Handler lets pages of the origins use the paths of next below prefix, and no other paths. Without
// origins it returns next.
func (o Origins) Handler(prefix string, next http.Handler) http.Handler {
	if len(o) == 0 {
		return next
	}
	all := slices.Contains(o, "*")
	methods, exposed := strings.Join(Methods(), ", "), strings.Join(Exposed(), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		origin := r.Header.Get("Origin")
		inside := strings.HasPrefix(r.URL.Path, prefix+"/")
		if inside && !all {
			h.Add("Vary", "Origin")
		}
		if !inside || !o.allow(origin) {
			next.ServeHTTP(w, r)
			return
		}
		if all {
			origin = "*"
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions &&
			r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", methods)
			if names := askedHeaders(r.Header); names != nil {
				h.Set("Access-Control-Allow-Headers", strings.Join(names, ", "))
			}
			h.Set("Access-Control-Max-Age", strconv.Itoa(int(MaxAge.Seconds())))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", exposed)
		next.ServeHTTP(w, r.WithContext(WithOrigins(r.Context(), o)))
	})
}
