package lambda_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ferry/shared/api"
	"ferry/shared/blob"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/table"
)

// way notes which of our packages are on the stack when a store is first called.
type way struct{ packages []string }

func (w *way) look() {
	if w.packages != nil {
		return
	}
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, ours := strings.CutPrefix(f.Function, "ferry/")
		slash := strings.LastIndex(name, "/")
		name = name[:slash+1+max(strings.Index(name[slash+1:], "."), 0)]
		if ours && !strings.HasSuffix(name, "_test") && !slices.Contains(w.packages, name) {
			w.packages = append(w.packages, name)
		}
	}
}

type watchedTable struct {
	table.Table
	way *way
}

func (t watchedTable) Get(ctx context.Context, key table.Key, into any) error {
	t.way.look()
	return t.Table.Get(ctx, key, into)
}

type watchedBlobs struct {
	blob.Store
	way *way
}

func (s watchedBlobs) Create(ctx context.Context, area blob.Area, key string, r io.Reader, size int64) (blob.Written, error) {
	s.way.look()
	return s.Store.Create(ctx, area, key, r, size)
}

func TestATokenAndAnUploadPassFewPackages(t *testing.T) {
	t.Parallel()
	const most = 8
	for name, c := range map[string]struct {
		endpoint string
		watch    func(*api.Ports, *way)
	}{
		"the token of a download": {"downloadfile", func(p *api.Ports, w *way) { p.Table = watchedTable{p.Table, w} }},
		"the bytes of an upload":  {"upload", func(p *api.Ports, w *way) { p.Blobs = watchedBlobs{p.Blobs, w} }},
	} {
		for shape, answer := range map[string]func(*api.Ports) int{
			"in Lambda": func(p *api.Ports) int {
				r, err := lambda.Gateway(lambda.With(p).Handler(named(t, c.endpoint)), p)(t.Context(), load(t, c.endpoint))
				check(t, err)
				return r.StatusCode
			},
			"in one process": func(p *api.Ports) int {
				e := load(t, c.endpoint)
				body := e.Body
				if decoded, err := base64.StdEncoding.DecodeString(body); err == nil && e.IsBase64Encoded {
					body = string(decoded)
				}
				r := httptest.NewRequest(e.HTTPMethod, e.Path+"?"+url.Values(e.MultiValueQueryStringParameters).Encode(), strings.NewReader(body))
				for name, values := range e.MultiValueHeaders {
					r.Header[http.CanonicalHeaderKey(name)] = values
				}
				w := httptest.NewRecorder()
				local.Handler(p).ServeHTTP(w, r)
				return w.Code
			},
		} {
			t.Run(name+" "+shape, func(t *testing.T) {
				t.Parallel()
				p, w := boottest.Ports(t, nil), &way{}
				c.watch(p, w)
				if status := answer(p); status != http.StatusOK {
					t.Fatalf("status %d", status)
				}
				if len(w.packages) == 0 || len(w.packages) > most {
					t.Errorf("the call passes %d packages, want at most %d: %v", len(w.packages), most, w.packages)
				}
			})
		}
	}
}

// TestAFunctionLinksFewPackages limits what a function links to what it uses.
func TestAFunctionLinksFewPackages(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"health": 10, "openapi": 10, "authlogin": 14, "downloadfile": 16, "upload": 17, "relay": 16} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./functions/"+name)
		list.Dir = boottest.Root(t)
		out, err := list.Output()
		check(t, err)
		ours := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool { return !strings.HasPrefix(p, "ferry/") })
		if len(ours) > most {
			t.Errorf("functions/%s links %d packages of ours, want at most %d: %v", name, len(ours), most, ours)
		}
	}
}

// floor returns the layer of a package in the design; 0 is the lowest.
func floor(pkg string) int {
	room := strings.TrimPrefix(pkg, "ferry/shared/")
	for i, names := range [][]string{
		{"table", "blob", "wire", "fault", "contact", "notify/mail"}, {"envelope", "client"}, {"auth"}, {"files"}, {"notify"}, {"api"}, {"openapi"}, {"boot"},
	} {
		for _, name := range names {
			if room == name || strings.HasPrefix(room, name+"/") && name != "api" {
				return i
			}
		}
	}
	return 6 // the endpoints, below api
}

func TestNoImportGoesUp(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./shared/...")
	list.Dir = boottest.Root(t)
	out, err := list.Output()
	check(t, err)
	backend := regexp.MustCompile(`/(dynamo|s3|ses|sns|sqs)$`)
	for line := range strings.Lines(string(out)) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasSuffix(pkg, "test") { // support for tests
			continue
		}
		for imported := range strings.FieldsSeq(imports) {
			if strings.HasPrefix(imported, "ferry/") && floor(imported) > floor(pkg) {
				t.Errorf("%s imports %s, which is in a higher layer", pkg, imported)
			}
			if strings.HasPrefix(imported, "github.com/aws/") && floor(pkg) < floor("boot") && !backend.MatchString(pkg) {
				t.Errorf("%s imports %s; only backends and boot know AWS", pkg, imported)
			}
		}
	}
}
