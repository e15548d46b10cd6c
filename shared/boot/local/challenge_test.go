package local_test

import (
	"testing"

	"ferry/shared/api"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
)

func TestHeadOfALargeFileIsNotRedirected(t *testing.T) {
	t.Parallel()
	c := apitest.Begin(t, func(set *api.Settings, _ *local.ServiceOptions) { set.RedirectOver = 3 })
	link := c.Upload("file=x", "large").LinkURL
	c.Calls.Reset()
	c.Send("HEAD "+link, "").Want(200).WantHeaders("Content-Length", "5")
	c.Send("GET "+link, "", "Accept", "application/json").Want(200)
	apitest.Equal(t, "addresses of the store for HEAD and the record", c.Calls.Reset()["blob.SignGet"], 0)
	c.Send("GET "+link, "")
	apitest.Equal(t, "addresses of the store for GET", c.Calls.Reset()["blob.SignGet"], 1)
}
