package file_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"ferry/shared/boot/apitest"
	"ferry/shared/notify"
	"ferry/shared/table"
)

// TestConcurrentFirstDownloadsSendOneReceipt tests conflicting transactions, and so also
// runs with the cloud's table.
func TestConcurrentFirstDownloadsSendOneReceipt(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.AddUser("ann", "a password for a test")
	link := strings.TrimPrefix(s.Put(s.Login("ann", "a password for a test"), "file=a&notify=1", "content").Files[0].LinkURL, s.Base)
	for range 2 { // the second time it is no longer the first download
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 50 {
			wg.Go(func() {
				<-start
				if resp := s.Request("GET", link, nil, "User-Agent", "curl/8"); resp.StatusCode != 200 || s.Text(resp) != "content" {
					t.Errorf("status %d", resp.StatusCode)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	var receipts []notify.Notice
	for shard := range 8 {
		page, err := s.Data.Ports.Table.Query(t.Context(), table.Query{PK: fmt.Sprint("outbox#", shard), Limit: table.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			var n notify.Notice
			if err := item.Decode(&n); err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, n)
		}
	}
	if len(receipts) != 1 || receipts[0].Kind != notify.Receipt || receipts[0].To != "ann@example.com" {
		t.Errorf("the receipts are %+v", receipts)
	}
}
