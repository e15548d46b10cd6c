package local_test

import (
	"ferry/shared/boot/apitest"
)

const password = apitest.Password

// session begins an upload session with this JSON, and returns its path and that of its only part.
func session(c apitest.Caller, plan string) (path, part string) {
	c.Helper()
	path = c.Ask("POST /uploads", plan).Want(201).Header.Get("Location")
	a := c.Ask("POST "+path+"/parts", `{"numbers":[1]}`).Want(200)
	return path, apitest.Read[struct{ Parts []struct{ URL string } }](a).Parts[0].URL
}
