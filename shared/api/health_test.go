package api_test

import (
	"errors"
	"testing"

	"ferry/shared/boot/apitest"
)

func TestHealthFollowsTheTable(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	if e := s.Decode(s.Request("GET", "/health", nil), 200); e.Status != 0 || e.User != "" {
		t.Errorf("the answer is %+v", e)
	}
	s.Calls.Before("table.Get", func() error { return errors.New("the disk is gone") })
	resp := s.Request("GET", "/health", nil)
	if says := resp.Header.Get("Ferry-Error"); says != "the table does not answer" || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("Ferry-Error is %q, Retry-After %q", says, resp.Header.Get("Retry-After"))
	}
	s.Decode(resp, 503)
	s.Calls.Before("table.Get", nil)
	s.Decode(s.Request("GET", "/health", nil), 200)
}
