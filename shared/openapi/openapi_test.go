package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"ferry/shared/api"
	"ferry/shared/boot/expect"
	"ferry/shared/boot/local"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/openapi"
	"ferry/shared/wire"
)

func document(t *testing.T, base string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(openapi.For(base)))
	expect.NoErr(t, err)
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc := document(t, "https://ferry.example.com/v1")
	expect.NoErr(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()))
	expect.Equal(t, "the version of the document", doc.OpenAPI, "3.1.0")
}

func TestDocumentHasTheServicesAddress(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://ferry.example.com/v1", "http://[::1]:8080/v1", `http://a"b\c/v1`} {
		expect.Equal(t, "the server", document(t, base).Servers[0].URL, base)
	}
}

func TestDocumentDescribesExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	var described []string
	for path, item := range document(t, "http://127.0.0.1:8080/v1").Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	routes := []string{api.PartRoute.Method + " " + api.PartRoute.Path}
	for _, e := range local.Endpoints() {
		for _, r := range e.Routes {
			if e.Prefix != "" { // not those of pages
				routes = append(routes, r.Method+" "+r.Path)
			}
		}
	}
	slices.Sort(described)
	slices.Sort(routes)
	expect.Equal(t, "what is described", described, routes)
}

func TestEachOperationIsFullyDescribed(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for path, item := range document(t, "http://127.0.0.1:8080/v1").Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" || op.OperationID == "" || len(op.Tags) == 0 || op.Security == nil {
				t.Errorf("%s %s lacks its summary, id, tag or security", method, path)
			}
			if ids[op.OperationID] {
				t.Errorf("there are two operations with the id %s", op.OperationID)
			}
			ids[op.OperationID] = true
			good := op.Responses.Status(200) != nil ||
				op.Responses.Status(201) != nil ||
				op.Responses.Status(204) != nil ||
				op.Responses.Status(303) != nil
			if !good || op.Responses.Status(500) == nil {
				t.Errorf("%s %s lacks a success response, or 500", method, path)
			}
		}
	}
}

// TestAnswersAndEventsAreDescribedExactly changes one thing at a time in a list and in an event.
func TestAnswersAndEventsAreDescribedExactly(t *testing.T) {
	t.Parallel()
	doc := document(t, "http://127.0.0.1:8080/v1")
	list := doc.Paths.Value("/download/list").Get.Responses.Status(200).Value.Content["application/json"].Schema.Value
	event := doc.Webhooks["file.deleted"].Post.RequestBody.Value.Content["application/cloudevents+json"].Schema.Value
	for _, c := range []struct {
		schema *openapi3.Schema
		good   string
		bad    [][2]string // what is replaced, and by what
	}{
		{
			schema: list,
			good: `{"status":0,"description":"handlerDownloadList:succsessfully","apiver":"v1 (3.6.0)","user":"a","files":[],` +
				`"time":"2025-10-03 09:12:50.123456789 +0200 CEST m=+42.123456789"}`,
			bad: [][2]string{
				{`"user"`, `"more":1,"user"`}, {`"user":"a",`, ``}, {"succsessfully", "successfully"}, {" m=+", " "}, {`:0,`, `:"0",`},
			},
		},
		{
			schema: event,
			good: `{"specversion":"1.0","id":"1759482770123-89abcdef01234567","source":"https://ferry.example.com/v1","type":"file.deleted",` +
				`"subject":"files/alice/7","time":"2025-10-03T09:12:50.123Z","datacontenttype":"application/json","data":` +
				`{"owner":"alice","id":7,"name":"x","length":5,"modified":1,"area":"backup","crc64nvme":"xLtyZIRLp3M=","reason":"user"}}`,
			bad: [][2]string{
				{`"specversion":"1.0",`, ``}, {`"1.0"`, `"0.3"`}, {`89abcdef`, `x`}, {`"subject":"files/`, `"subject":"file/`}, {`T09:12`, ` 09:12`},
				{`"file.deleted"`, `"file.uploaded"`}, {`,"reason":"user"`, ``}, {`"reason":"user"`, `"reason":"whim"`}, {`"id":7`, `"id":"7"`},
				{`"id":7`, `"id":7,"linkURL":"https://x"`}, {`"data":`, `"token":"x","data":`}, {`"name":"x",`, ``},
			},
		},
	} {
		valid := func(text string) bool {
			var v any
			expect.NoErr(t, json.Unmarshal([]byte(text), &v))
			return c.schema.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation()) == nil
		}
		if !valid(c.good) {
			t.Errorf("%s is not allowed", c.good)
		}
		for _, change := range c.bad {
			if bad := strings.Replace(c.good, change[0], change[1], 1); bad == c.good || valid(bad) {
				t.Errorf("%s is allowed", bad)
			}
		}
	}
}

func TestExactlyTheEventTypesAreDescribed(t *testing.T) {
	t.Parallel()
	want := []notify.EventType{
		notify.EventType(files.Deleted), notify.EventType(files.Downloaded), notify.EventType(files.Restored), notify.EventType(files.Uploaded), notify.LinkFailed, notify.LinkSent, notify.PasswordChanged,
	}
	got := slices.Sorted(maps.Keys(document(t, "http://127.0.0.1:8080/v1").Webhooks))
	if !slices.EqualFunc(got, want, func(name string, t notify.EventType) bool { return name == string(t) }) {
		t.Errorf("described are %v, want %v", got, want)
	}
}

func TestFileNamesAreDescribedExactly(t *testing.T) {
	t.Parallel()
	schema := document(t, "http://127.0.0.1:8080/v1").Components.Schemas["FileName"].Value
	names := []string{"", "...", "a.txt", "a/", `a\ .`, "/b", "a/..b", "a\n", "\f\u008e", "\u202e/\n. \n"}
	for r := range rune(unicode.MaxRune) + 1 {
		names = append(names, string(r))
	}
	for _, name := range names {
		if described, taken := schema.VisitJSON(name) == nil, wire.CleanFileName(name) != ""; described != taken {
			t.Errorf("%q: described as a name is %v, taken as one is %v", name, described, taken)
		}
	}
}
