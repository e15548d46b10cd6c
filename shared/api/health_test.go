package api_test

import (
	"errors"
	"testing"

	"ferry/shared/boot/apitest"
)

func TestHealthFollowsTheTable(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	if a := s.Send("GET /health", "").Want(200); a.Status != 0 || a.User != "" {
		t.Errorf("the answer is %s", a.Text)
	}
	s.Calls.Before("table.Get", func() error { return errors.New("the disk is gone") })
	s.Send("GET /health", "").Want(503).WantHeaders("Ferry-Error", "the table does not answer", "Retry-After", "5")
	s.Calls.Before("table.Get", nil)
	s.Send("GET /health", "").Want(200)
}
