package client_test

import (
	"bytes"
	"errors"
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/client"
)

func TestAGuestUploadsByALinkAloneOverABadLine(t *testing.T) {
	t.Parallel()
	_, ann := start(t)
	password := "öffne dich"
	made, err := ann.AddRequest(t.Context(), client.NewRequest{Password: &password})
	must(t, err)
	o := client.GuestOptions{Retry: quick()}
	_, _, err = client.Join(t.Context(), made.LinkURL, o)
	expect.Err(t, "without the password", err, client.ErrPassword)
	o.HTTP = cutter(3000, 5).client()
	o.Password = func(wrong error) (string, error) {
		if wrong == nil {
			return "open sesame", nil
		}
		return password, nil
	}
	guest, about, err := client.Join(t.Context(), made.LinkURL, o)
	must(t, err)
	expect.Equal(t, "the maker", about.Maker, "ann")
	small, err := guest.Upload(t.Context(), "small.txt", "text/plain", []byte("hello"), client.Delivery{})
	must(t, err)
	expect.Equal(t, "the answer", small, client.File{Name: "small.txt", Length: 5})

	large := client.Source{Name: "large.bin", Length: 12 << 20, Content: bytes.NewReader(bytesOf(1, 12<<20))}
	var session string
	_, err = guest.Put(
		t.Context(),
		large,
		client.PutOptions{Delivery: client.Delivery{Mail: []string{"bob@example.com"}}},
	)
	wantStatus(t, "with a recipient", err, 400)
	_, err = guest.Put(t.Context(), large, client.PutOptions{
		Began: func(s client.Session) error { session = s.ID; return errors.New("interrupted") },
	})
	if err == nil || session == "" {
		t.Fatal("no session began")
	}
	o.Secret, o.Password = guest.GuestSecret(), nil
	again, _, err := client.Join(t.Context(), made.LinkURL, o)
	must(t, err)
	f, err := again.Put(t.Context(), large, client.PutOptions{Session: session})
	must(t, err)
	expect.Equal(t, "the length", f.Length, 12<<20)
	all, err := ann.Requests(t.Context())
	must(t, err)
	expect.Equal(t, "what arrived", all[0].Arrived.Files, 2)
	must(t, ann.EndRequest(t.Context(), made.ID))
	wantStatus(t, "after the end", failed(again.Upload(t.Context(), "a", "", nil, client.Delivery{})), 401)
}

func TestAGuestsBundleSaysHowManyFilesItWillHave(t *testing.T) {
	t.Parallel()
	_, ann := start(t)
	most := int64(2)
	made, err := ann.AddRequest(t.Context(), client.NewRequest{Files: &most})
	must(t, err)
	for files, tr := range map[int]tree{3: {"a": nil, "b": nil, "c": nil}, 2: {"a": nil, "b": nil, "empty/": nil}} {
		guest, _, err := client.Join(t.Context(), made.LinkURL, client.GuestOptions{Retry: quick()})
		must(t, err)
		began, stop := false, errors.New("interrupted")
		_, err = guest.Put(t.Context(), tr.source(t), client.PutOptions{
			Began: func(client.Session) error { began = true; return stop },
		})
		if began != (files == 2) || !began && client.StatusOf(err) != 403 {
			t.Errorf("with %d files it began: %v, %v", files, began, err)
		}
	}
}
