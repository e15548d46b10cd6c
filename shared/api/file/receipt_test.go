package file_test

import (
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
)

// TestConcurrentFirstDownloadsSendOneReceipt tests conflicting transactions, and so also
// runs with the cloud's table.
func TestConcurrentFirstDownloadsSendOneReceipt(t *testing.T) {
	t.Parallel()
	s := begin(t)
	link := s.Upload("file=a&notify=1", "content").LinkURL
	for range 2 { // the second time it is no longer the first download
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				apitest.Equal(t, "the content", s.Send("GET "+link, "", "User-Agent", "curl/8").Text, "content")
			})
		}
		wg.Wait()
	}
	if all := s.Outbox(); len(all) != 1 || all[0].Kind != "receipt" || all[0].To != "ann@example.com" {
		t.Errorf("the receipts are %+v", all)
	}
}
