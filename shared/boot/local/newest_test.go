package local_test

import (
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
)

// TestAnUploadListsTheNewestHundredFilesAndItsOwn lets an upload take its id, and then
// lets others finish first.
func TestAnUploadListsTheNewestHundredFilesAndItsOwn(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("alice", password)
	bearer := s.Login("alice", password)
	begun, passed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.Calls.Before("blob.Create", func() error {
		once.Do(func() {
			close(begun)
			<-passed
		})
		return nil
	})
	done := make(chan apitest.Envelope)
	go func() { done <- s.Put(bearer, "file=slow", "x") }()
	<-begun
	s.Calls.Before("blob.Create", nil)
	s.Fill(bearer, 104)
	last := s.Put(bearer, "file=quick", "x")
	close(passed)
	slow := <-done
	if n := len(last.Files); n != 100 || last.Files[0].ID != 106 || last.Files[99].ID != 7 {
		t.Errorf("the answer has %d files, from %d to %d", n, last.Files[0].ID, last.Files[n-1].ID)
	}
	if n := len(slow.Files); n != 101 || slow.Files[n-1].Name != "slow" || slow.Files[n-1].ID != 1 {
		t.Errorf("the slow one's answer has %d files and ends in %+v", n, slow.Files[n-1])
	}
	resp := s.Request("POST", "/upload?file=z", strings.NewReader("x"), "Authorization", "Bearer "+bearer)
	want := `<` + s.Base + `/download/list?lang=en&limit=100&after=8>; rel="next"`
	if got := resp.Header.Get("Link"); got != want {
		t.Errorf("Link is %q, want %q", got, want)
	}
}
