package upload_test

import (
	"ferry/shared/auth"
)

func quota(n int64) func(*auth.User) { return func(u *auth.User) { u.Quota = n } }
