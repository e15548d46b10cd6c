// Package account has the endpoints of credentials: log in and out, a new
// password, and the end of mail to an address. It may import api and the domains
// (auth, files, notify), and no backend. Start reading with token.go.
package account

import (
	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/notify"
)

func passwords(p *api.Ports) *auth.Accounts {
	return auth.NewAccounts(auth.AccountsConfig{
		Ports: p.Ports, HideUsers: p.HideUsers, Outbox: notify.NewOutbox(p.Ports, notify.Limits{}, p.PublicURL, p.Events),
	})
}
