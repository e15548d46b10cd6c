package webhook

import "time"

// Signatures is the header that an event is signed with.
func Signatures(secrets []Secret, id string, at time.Time, body string) string {
	return signatures(secrets, id, at, body)
}
