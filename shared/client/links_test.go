package client_test

import (
	"testing"

	"ferry/shared/boot/expect"
	"ferry/shared/client"
)

func TestLinksAreMadeChangedAndEnded(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	ctx := t.Context()
	f, err := c.Upload(ctx, "a.txt", "", []byte("content"), client.Delivery{Limits: client.Limits{
		Expires:   "7d",
		Downloads: 3,
		Password:  "open sesame é",
	}})
	must(t, err)
	d, err := c.File(ctx, client.UserArea, f.ID)
	if err != nil ||
		len(d.Links) != 1 ||
		d.Links[0].ID != client.OwnLink ||
		*d.Links[0].Left != 3 ||
		!d.Links[0].Protected {
		t.Fatalf("%+v, %v", d.Links, err)
	}
	made, err := c.AddLinks(ctx, f.ID, client.NewLinks{Limits: client.Limits{Expires: "1d", Downloads: 1}})
	if err != nil || len(made) != 1 || made[0].LinkURL == "" || made[0].State != "live" {
		t.Fatalf("%+v, %v", made, err)
	}
	sent, err := c.AddLinks(ctx, f.ID, client.NewLinks{
		Mail:    []string{"bob@example.com", "carla@example.com"},
		Message: "hello",
	})
	if err != nil || len(sent) != 2 || sent[0].To != "bob@example.com" || sent[0].LinkURL != "" {
		t.Fatalf("%+v, %v", sent, err)
	}
	two := int64(2)
	if l, err := c.ChangeLink(ctx, f.ID, made[0].ID, client.ChangeLink{Downloads: &two}); err != nil || *l.Left != 2 {
		t.Errorf("%+v, %v", l, err)
	}
	for range 2 {
		if l, err := c.EndLink(ctx, f.ID, made[0].ID); err != nil || l.State != "ended" {
			t.Errorf("%+v, %v", l, err)
		}
	}
	wantStatus(
		t,
		"a link that has ended",
		failed(c.ChangeLink(ctx, f.ID, made[0].ID, client.ChangeLink{Downloads: &two})),
		409,
	)
	expect.Err(t, "an unknown link", failed(c.EndLink(ctx, f.ID, "nothing")), client.ErrNotFound)
	if now, err := c.RenewLink(ctx, f.ID); err != nil || now.Link == f.Link || !now.Links[0].Protected {
		t.Errorf("%+v, %v", now, err)
	}
	name := "b.txt"
	if now, err := c.ChangeFile(ctx, f.ID, client.ChangeFile{Name: &name}); err != nil ||
		now.Name != name ||
		now.Expires != d.Expires {
		t.Errorf("%+v, %v", now, err)
	}
}
