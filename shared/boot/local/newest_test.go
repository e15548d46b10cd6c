package local_test

import (
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
)

// TestAnUploadListsTheNewestHundredFilesAndItsOwn lets an upload take its id, and then
// lets others finish first.
func TestAnUploadListsTheNewestHundredFilesAndItsOwn(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t)
	var last apitest.Answer
	c.Calls.Before("blob.Create", sync.OnceValue(func() error {
		c.Calls.Before("blob.Create", nil)
		c.Fill(104)
		last = c.Ask("POST /upload?file=quick", "x").Want(200)
		return nil
	}))
	slow := c.Ask("POST /upload?file=slow", "x").Want(200)
	if n := len(last.Files); n != 100 || last.Files[0].ID != 106 || last.Files[99].ID != 7 {
		t.Errorf("the answer has %d files, from %d to %d", n, last.Files[0].ID, last.Files[n-1].ID)
	}
	if n := len(slow.Files); n != 101 || slow.Files[n-1].Name != "slow" || slow.Files[n-1].ID != 1 {
		t.Errorf("the slow one's answer has %d files and ends in %+v", n, slow.Files[n-1])
	}
	c.Ask("POST /upload?file=z", "x").WantHeaders("Link", `<`+c.Base+`/download/list?lang=en&limit=100&after=8>; rel="next"`)
}
