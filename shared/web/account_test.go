package web_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/boot/apitest"
	"ferry/shared/boot/expect"
	"ferry/shared/notify"
	"ferry/shared/service"
	"ferry/shared/users"
)

func TestABrowserLogsInAndOut(t *testing.T) {
	v := visit(t)
	v.opens("login", 200, `name="user"`, `autocomplete="current-password"`, `href="forgot"`, "-alert")
	v.shows(v.post("login", "user", "ann", "password", "wrong"), 401,
		`value="ann"`, "name or the password is wrong", `aria-invalid="true"`)
	v.has("the log", v.Log.String(), `msg="login refused" address=127.0.0.1 login=password user=ann`)
	v.leads(v.open("account?x=1"), "login?next=account%3Fx%3D1")
	v.opens("login?next=account%3Fx%3D1", 200, `name="next" value="account?x=1"`)
	v.leads(v.post("login", "user", " ann ", "password", apitest.Password, "next", "account?x=1"), "account?x=1")
	v.leads(v.open("login?next=account"), "account")
	v.leads(v.another(desk).
		post("login", "user", "ann", "password", apitest.Password, "next", "//evil.example.org"), "send")
	old := v.cookies["ferry"]
	v.leads(v.post("logout"), "login?out=1")
	v.opens("login?out=1", 200, "You are logged out.")
	v.cookies["ferry"] = old
	v.leads(v.open("account"), "login?next=account")
	v.opens("login?next=account", 200, "Your login has ended.")
}

func TestPagesOfLoginsHaveTheThrottlesOfTheInterface(t *testing.T) {
	v := visit(t)
	for i := range 9 {
		if i == 4 {
			v.login("ann") // which clears the tries before it
		}
		v.post("login", "user", "ann", "password", "wrong").Want(401)
	}
	for v.post("login", "user", "ann", "password", "wrong").Code == 401 {
	}
	v.shows(v.post("login", "user", "ann", "password", apitest.Password), 429,
		"Too many tries. You can try again", "<time", `value="ann"`)
	v.Send("POST /auth/login", "", "Authorization", apitest.Basic("ann", apitest.Password)).Want(429)
}

func TestAForgottenPasswordIsReplacedByTheLinkInTheMail(t *testing.T) {
	v := visit(t)
	v.opens("forgot", 200, `name="user"`, "Send the code")
	v.shows(v.post("forgot", "user", "nobody"), 401, "There is no user of this name", `value="nobody"`)
	v.AddUser("off", apitest.Password, func(u *users.User) { u.Email = "" })
	v.shows(v.post("forgot", "user", "off"), 403, "This account gets no codes")
	to := v.post("forgot", "user", "ann").Want(303).Header.Get("Location")
	v.opens(to, 200, `name="code"`, `value="ann" autocomplete="username"`, `autocomplete="one-time-code"`)
	mail := v.Mail()
	pin, mailed := regexp.MustCompile(`(?m)^[0-9]{8}$`).FindString(mail), v.mailedPage(mail)
	// The mail is read on another site.
	v.shows(v.send("GET "+mailed, "", "Sec-Fetch-Site", "cross-site"), 200, `name="code"`, "-ann")
	v.opens(mailed+"&wrong=400", 200, "Choose another one: at least 10 characters")
	change := func(code, password string) apitest.Answer {
		return v.post("password", "k", valueOf(mailed, "k"), "code", code, "new", password, "user", "ann")
	}
	v.shows(change("12345678", "a new password"), 401,
		"This is not the code", "-a new password", `value="ann" autocomplete="username"`)
	v.shows(change(pin, "short"), 400, "This is too short", `value="`+pin+`"`, `-short"`)
	v.shows(change(pin, ""), 400, "This is too short")
	v.shows(change(pin, "password123"), 400, "This is easy to guess")
	v.shows(change(pin, strings.Repeat("long ", 30)), 400, "This is too long")
	v.leads(change(pin[:4]+" "+pin[4:], "a new password"), "login?changed=1&user=ann")
	v.opens("login?changed=1&user=ann", 200, "Your new password is set.", `value="ann"`)
	v.opens(mailed, 401, "<h1>This link is no longer valid", `href="forgot"`)
	v.shows(change(pin, "another password"), 401, "<h1>This link is no longer valid")
	v.leads(v.open("password"), "forgot")
	for range 2 {
		v.post("forgot", "user", "ann").Want(303)
	}
	v.shows(v.post("forgot", "user", "ann"), 429, "Too many tries. You can try again <time")
}

// mailedPage returns the page to which the link in a mail leads.
func (v visitor) mailedPage(mail string) string {
	v.Helper()
	link := regexp.MustCompile(`http\S+/v1/auth/change\S+`).FindString(mail)
	a := v.Send("GET "+link, "", "Accept", "text/html", "Sec-Fetch-Mode", "navigate").Want(303)
	return strings.TrimPrefix(a.Header.Get("Location"), "../../")
}

func TestPagesHideUsersWhereTheInterfaceDoes(t *testing.T) {
	v := visit(t, set(func(s *service.Settings) { s.HideUsers = true }))
	pages := map[string]string{}
	for _, user := range []string{"ann", "eve"} {
		to := v.post("forgot", "user", user).Want(303).Header.Get("Location")
		token := valueOf(to, "k")
		tried := v.post("password", "k", token, "code", "12345678", "new", "a new password", "user", user).Want(401)
		seen := strings.NewReplacer(user, "USER", token, "TOKEN").Replace(v.open(to).Want(200).Text + tried.Text)
		pages[user] = regexp.MustCompile(`static/\w+/`).ReplaceAllString(seen, "")
	}
	expect.Equal(t, "the pages of somebody who is not there", pages["eve"], pages["ann"])
	v.shows(v.post("forgot", "user", "no body"), 400, "There is no user of this name")
}

func TestANewUserChoosesAPasswordByTheTemporaryOneOrByTheInvitation(t *testing.T) {
	v := visit(t)
	v.AddUser("new", "temporary password", func(u *users.User) { u.State = users.FirstAccess })
	to := v.post("login", "user", "new", "password", "temporary password").Want(303).Header.Get("Location")
	v.opens(to, 200, "Welcome, new.", `-name="code"`, `autocomplete="new-password" minlength="10" maxlength="128"`)
	v.has("the log", v.Log.String(), "-login refused")
	expect.Equal(t, "cookies, as this is no login", len(v.cookies), 0)
	u, err := v.Users.Get(t.Context(), "new")
	expect.NoErr(t, err)
	expect.NoErr(t, v.Service.Users().Invite(t.Context(), u, ""))
	invited := v.mailedPage(v.Mail())
	v.shows(v.send("GET "+invited, "", "Sec-Fetch-Site", "cross-site"), 200, "Welcome, new.")
	token := valueOf(invited, "k")
	v.shows(v.post("password", "k", token, "new", "short"), 400, "Welcome, new.", "This is too short")
	v.leads(v.post("password", "k", token, "new", "a new password"), "send")
	v.opens("account", 200, "new", "This browser") // which is logged in now
	v.opens(to, 401, "<h1>This link is no longer valid", "replaced by a temporary password")
}

func TestTheAccountShowsItsDevicesAndTokensAndEndsThem(t *testing.T) {
	v := visit(t).login("ann")
	other := v.another(phone).login("ann")
	v.opens("account", 200, "ann@example.com", "Chrome, Linux", "This browser", "Safari, iPhone", "No tokens yet",
		"You can send 1000 more e-mails and text messages today", "used in the last day", "No limit", `<option value="upload">`)
	made := v.post("account", "do", "token", "name", "<b>build</b>", "scope", "upload", "expires", "90d")
	v.shows(made, 201, "Your new token: &lt;b&gt;build&lt;/b&gt;", "-<b>build", "Copy it now",
		"Uploads only, never used, ends <time", `data-copy="token"`)
	token := allOf(made.Text, `value="(ferry_[^"]+)"`)[0]
	v.Send("POST /upload?file=a.txt", "x", "Authorization", "Bearer "+token).Want(200)
	v.leads(v.another("").send("GET files", "", "Cookie", "ferry="+token), "login?next=files")
	v.opens(
		"account",
		200,
		"<bdi>&lt;b&gt;build&lt;/b&gt;</bdi>",
		"Uploads only, used in the last day",
		"-"+token,
		"-No tokens yet",
	)
	v.shows(v.post(
		"account",
		"do",
		"token",
		"name",
		" ",
		"scope",
		"all",
		"expires",
		"",
	), 400, "in at most 100 characters",
		`<option value="all" selected>`, `<option value="" selected>`, `<details class="fold ruled" open>`)
	for _, bad := range []string{"login", "root"} {
		v.shows(v.post("account", "do", "token", "name", "x", "scope", bad), 400, `role="alert"`)
	}
	ids := allOf(v.open("account").Text, `name="id" value="([^"]+)"`)
	for _, id := range append(ids, ids[0]) { // also what has ended
		v.leads(v.post("account", "do", "end", "id", id), "account")
	}
	v.leads(other.open("account"), "login?next=account")
	v.opens("account", 200, "No tokens yet")
	v.shows(v.post("account", "do", "nothing"), 400, "<h1>This did not work")
	other.login("ann")
	v.As("ann").Ask("POST /tokens", `{"name":"backup","scope":"all"}`).Want(201)
	v.leads(v.post("account", "do", "everywhere"), "login?everywhere=1")
	v.opens("login?everywhere=1", 200, "logged out everywhere")
	v.leads(other.open("account"), "login?next=account")
	expect.Equal(t, "cookies", len(v.cookies), 0)
	v.login("ann").opens("account", 200, "<bdi>backup</bdi>") // a program's token goes on
	v.leads(v.post("account", "do", "tokens"), "account")
	v.opens("account", 200, "No tokens yet", "This browser")
}

func TestAPasswordIsChangedByWhoKnowsTheOldOne(t *testing.T) {
	v := visit(t).login("ann")
	change := func(old, password string) apitest.Answer {
		return v.post("account", "do", "password", "old", old, "new", password)
	}
	v.shows(
		change("wrong", "a new password"),
		403,
		"This is not your password",
		"-a new password",
		`<details class="fold" open>`,
	)
	v.shows(change(apitest.Password, "short"), 400, "This is too short")
	v.leads(change(apitest.Password, "a new password"), "account?changed=1")
	v.opens("account?changed=1", 200, "Your password is changed.", "This browser")
	for change("wrong", "a new password").Code == 403 {
	}
	v.shows(change("a new password", "another password"), 429, "Too many tries. Wait")
}

func TestMailsAreStoppedAndResumedByThePage(t *testing.T) {
	v := visit(t)
	const address = `"<b>"@example.com`
	token, shown := v.Data.Ports.Key.Stop(address), html.EscapeString(address)
	page := "stop?lang=en&t=" + token
	v.opens(page, 200, shown+" will get no more e-mails", "Send me no more", "-Undo", `-<b>"@`)
	v.leads(v.post("stop", "t", token), page)
	v.opens(page, 200, shown+" gets no e-mails from Ferry about files any more", "Undo", `role="status"`)
	v.leads(v.post("stop", "t", token, "undo", "1"), page)
	v.opens(page, 200, "will get no more e-mails")
	expect.NoErr(
		t,
		v.Data.Ports.Table.Write(t.Context(), notify.Suppress(address, notify.AddressBounced, "", time.Now())),
	)
	v.opens(page, 200, "came back, or were reported", "-<form", `-<b>"@`)
	for wrong, status := range map[string]int{"": 400, token + "x": 401} {
		v.opens("stop?t="+wrong, 401, "<h1>This link is not valid", "-example.com", "-<form")
		v.shows(v.post("stop", "t", wrong), status, "<h1>This link is not valid")
	}
	v.has("the log", v.Log.String(), "-example.com")
}

func TestErrorsArePagesThatSayWhatToDo(t *testing.T) {
	v := visit(t).login("ann")
	v.opens("nowhere", 404, "<h1>There is no such page", "Show my files")
	v.another("").opens("nowhere", 404, `<a class="button primary" href="./">`)
	v.Calls.Before("table.GetMany", func() error { return http.ErrBodyNotAllowed })
	a := v.open("account")
	v.shows(a, 500, "<h1>Something went wrong", "<code>"+a.Header.Get("X-Request-Id")+"</code>", "-does not allow")
}
