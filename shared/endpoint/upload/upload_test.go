package upload_test

import "ferry/shared/users"

func quota(n int64) func(*users.User) { return func(u *users.User) { u.Quota = n } }
