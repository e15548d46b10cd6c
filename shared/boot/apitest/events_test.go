package apitest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ferry/shared/notify"
)

func TestEventsThatTheDescriptionForbidsAreFound(t *testing.T) {
	t.Parallel()
	c := described(t)
	const (
		head = `{"specversion":"1.0","id":"1759482770123-89abcdef01234567","source":"https://ferry.example.com/v1","type":"file.deleted","subject":"files/alice/7","time":"2025-10-03T09:12:50.123Z","datacontenttype":"application/json","data":`
		good = head + `{"owner":"alice","id":7,"name":"x","length":5,"modified":1,"area":"backup","crc64nvme":"xLtyZIRLp3M=","reason":"user"}}`
	)
	if err := c.event("file.deleted", good); err != nil {
		t.Error(err)
	}
	for _, change := range [][2]string{
		{`"specversion":"1.0",`, ``}, {`"1.0"`, `"0.3"`}, {`89abcdef`, `x`}, {`"subject":"files/`, `"subject":"file/`}, {`T09:12`, ` 09:12`},
		{`"file.deleted"`, `"file.uploaded"`}, {`,"reason":"user"`, ``}, {`"reason":"user"`, `"reason":"whim"`}, {`"id":7`, `"id":"7"`},
		{`"id":7`, `"id":7,"linkURL":"https://x"`}, {`"data":`, `"token":"x","data":`}, {`"name":"x",`, ``},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if err := c.event("file.deleted", bad); bad == good || err == nil {
			t.Errorf("%s passes", bad)
		}
	}
	for _, name := range []string{"file.uploaded", "file.renamed"} {
		if err := c.event(name, good); err == nil {
			t.Errorf("it passes as %s", name)
		}
	}
}

func TestExactlyTheEventTypesAreDescribed(t *testing.T) {
	t.Parallel()
	c := described(t)
	want := []notify.EventType{
		notify.FileDeleted, notify.FileDownloaded, notify.FileRestored, notify.FileUploaded, notify.LinkFailed, notify.LinkSent, notify.PasswordChanged,
	}
	got := slices.Sorted(maps.Keys(c.doc.Webhooks))
	if !slices.EqualFunc(got, want, func(name string, t notify.EventType) bool { return name == string(t) }) {
		t.Errorf("described are %v, want %v", got, want)
	}
}
