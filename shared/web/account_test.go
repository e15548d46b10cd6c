package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ferry/shared/api"
	"ferry/shared/auth"
	"ferry/shared/boot/apitest"
	"ferry/shared/boot/local"
	"ferry/shared/notify"
)

// visitor is a browser with its cookies, on the pages of a service with the user ann.
type visitor struct {
	*apitest.Server
	cookies map[string]string
	agent   string
}

func visit(t testing.TB, options ...apitest.Option) visitor {
	t.Helper()
	s := apitest.New(t, options...)
	s.AddUser("ann", apitest.Password)
	return visitor{s, map[string]string{}, "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"}
}

// another returns another browser.
func (v visitor) another(agent string) visitor { return visitor{v.Server, map[string]string{}, agent} }

func (v visitor) send(request, body string, headers ...string) apitest.Answer {
	v.Helper()
	method, path, _ := strings.Cut(request, " ")
	var all []string
	for name, value := range v.cookies {
		all = append(all, name+"="+value)
	}
	headers = append([]string{"Accept", "text/html,*/*;q=0.8", "Accept-Language", "en", "User-Agent", v.agent, "Cookie", strings.Join(all, "; ")}, headers...)
	a := v.Send(method+" "+v.Root+"/"+path, body, headers...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return a
}

func (v visitor) get(path string) apitest.Answer { v.Helper(); return v.send("GET "+path, "") }

// post sends a form of pairs.
func (v visitor) post(path string, pairs ...string) apitest.Answer {
	v.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return v.send("POST "+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// login logs ann in.
func (v visitor) login() visitor {
	v.Helper()
	v.to("a login", v.post("login", "user", "ann", "password", apitest.Password), "send")
	return v
}

// to checks where a page leads.
func (v visitor) to(what string, a apitest.Answer, want string) {
	v.Helper()
	if got := a.Header.Get("Location"); a.Code != 303 || got != want {
		v.Errorf("%s: status %d to %q, want 303 to %q: %.1000s", what, a.Code, got, want, a.Text)
	}
}

// shows checks a page's status, that it has some texts, and that it lacks those that begin with "not ".
func (v visitor) shows(what string, a apitest.Answer, status int, texts ...string) {
	v.Helper()
	if a.Code != status {
		v.Errorf("%s: status %d, want %d", what, a.Code, status)
	}
	_, main, _ := strings.Cut(html.UnescapeString(a.Text), "<main")
	main = strings.NewReplacer("\u00a0", " ", "\u2068", "", "\u2069", "").Replace(main)
	for _, text := range texts {
		lacks, isLack := strings.CutPrefix(text, "not ")
		if strings.Contains(main, lacks) == isLack {
			v.Errorf("%s: %q in\n%s", what, text, main)
		}
	}
}

// mail returns the newest message.
func (v visitor) mail() string {
	v.Helper()
	v.Deliver()
	all, err := v.Service.Inbox.List(v.Context(), 1)
	apitest.Must(v.TB, err)
	return all[0].Text
}

func TestABrowserLogsInAndOut(t *testing.T) {
	t.Parallel()
	v := visit(t)
	v.shows("the page", v.get("login"), 200, `name="user"`, `autocomplete="current-password"`, `href="forgot"`, "not alert")
	v.shows("a wrong password", v.post("login", "user", "ann", "password", "wrong"), 401, `value="ann"`, "name or the password is wrong", `aria-invalid="true"`)
	if log := v.Log.String(); !strings.Contains(log, `msg="login refused" address=127.0.0.1 login=password user=ann`) {
		t.Errorf("the log is %s", log)
	}
	v.to("a page before the login", v.get("account?x=1"), "login?next=account%3Fx%3D1")
	v.shows("the login for it", v.get("login?next=account%3Fx%3D1"), 200, `name="next" value="account?x=1"`)
	a := v.post("login", "user", " ann ", "password", apitest.Password, "next", "account?x=1")
	v.to("a login for a page", a, "account?x=1")
	set := a.Header.Get("Set-Cookie")
	for _, want := range []string{"ferry=ferry_", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"} {
		if !strings.Contains(set, want) {
			t.Errorf("the cookie is %s", set)
		}
	}
	v.to("the login of who is logged in", v.get("login?next=account"), "account")
	for _, other := range []string{"https://evil.example.org", "//evil.example.org", "/x", "javascript:x", "a\r\nb"} {
		v.to("a login that leads to "+other, v.another("").post("login", "user", "ann", "password", apitest.Password, "next", other), "send")
	}
	old := v.cookies["ferry"]
	v.to("the end", v.post("logout"), "login?out=1")
	v.shows("the page after it", v.get("login?out=1"), 200, "You are logged out.")
	v.cookies["ferry"] = old
	v.to("the old cookie", v.get("account"), "login?next=account")
	v.shows("its login", v.get("login?next=account"), 200, "Your login has ended.")
}

func TestPagesOfLoginsHaveTheThrottlesOfTheInterface(t *testing.T) {
	t.Parallel()
	v := visit(t)
	for i := range 9 {
		if i == 4 {
			v.login() // which clears the tries before it
		}
		v.post("login", "user", "ann", "password", "wrong").Want(401)
	}
	for v.post("login", "user", "ann", "password", "wrong").Code == 401 {
	}
	v.shows("a try too soon", v.post("login", "user", "ann", "password", apitest.Password), 429, "Too many tries. You can try again", "<time", `value="ann"`)
	v.Send("POST /auth/login", "", "Authorization", apitest.Basic("ann", apitest.Password)).Want(429)
}

func TestAForgottenPasswordIsReplacedByTheLinkInTheMail(t *testing.T) {
	t.Parallel()
	v := visit(t)
	v.shows("the page", v.get("forgot"), 200, `name="user"`, "Send the code")
	v.shows("no name", v.post("forgot", "user", ""), 400, "There is no user of this name")
	v.shows("an unknown name", v.post("forgot", "user", "nobody"), 401, "There is no user of this name", `value="nobody"`)
	v.AddUser("off", apitest.Password, func(u *auth.User) { u.Email = "" })
	v.shows("a user without an address", v.post("forgot", "user", "off"), 403, "This account gets no codes")
	a := v.post("forgot", "user", "ann").Want(303)
	to := a.Header.Get("Location")
	v.shows("the next page", v.get(to), 200, `name="code"`, `value="ann" autocomplete="username"`, `autocomplete="one-time-code"`)
	mail := v.mail()
	pin := regexp.MustCompile(`(?m)^[0-9]{8}$`).FindString(mail)
	link := regexp.MustCompile(`http\S+/v1/auth/change\S+`).FindString(mail)
	a = v.Send("GET "+link, "", "Accept", "text/html").Want(303)
	mailed := strings.TrimPrefix(a.Header.Get("Location"), "../../")
	v.shows("the page of the mail, from another site", v.send("GET "+mailed, "", "Sec-Fetch-Site", "cross-site"), 200, `name="code"`, "not ann")
	v.shows("what the interface refused", v.get(mailed+"&wrong=400"), 200, "Choose another one: at least 10 characters")
	u, err := url.Parse(mailed)
	apitest.Must(t, err)
	token := u.Query().Get("k")
	change := func(code, password string) apitest.Answer {
		return v.post("password", "k", token, "code", code, "new", password, "user", "ann")
	}
	v.shows("a wrong code", change("12345678", "a new password"), 401, "This is not the code", "not a new password", `value="ann" autocomplete="username"`)
	v.shows("no code", change("", "a new password"), 403, "This is not the code")
	v.shows("a short password", change(pin, "short"), 400, "This is too short", `value="`+pin+`"`, "not short\"")
	v.shows("no password", change(pin, ""), 400, "This is too short")
	v.shows("a common password", change(pin, "password123"), 400, "This is easy to guess")
	v.shows("a long password", change(pin, strings.Repeat("long ", 30)), 400, "This is too long")
	v.to("the right code", change(pin[:4]+" "+pin[4:], "a new password"), "login?changed=1&user=ann")
	v.shows("the login", v.get("login?changed=1&user=ann"), 200, "Your new password is set.", `value="ann"`)
	v.to("a login", v.post("login", "user", "ann", "password", "a new password"), "send")
	v.shows("the used link", v.get(mailed), 401, "This link is no longer valid", `href="forgot"`)
	v.shows("its form", change(pin, "another password"), 401, "This link is no longer valid")
	v.to("a link without a token", v.get("password"), "forgot")
	for range 2 {
		v.post("forgot", "user", "ann").Want(303)
	}
	v.shows("one too many", v.post("forgot", "user", "ann"), 429, "Too many tries. You can try again <time")
}

func TestPagesHideUsersWhereTheInterfaceDoes(t *testing.T) {
	t.Parallel()
	v := visit(t, func(set *api.Settings, _ *local.ServiceOptions) { set.HideUsers = true })
	pages := map[string]string{}
	for _, user := range []string{"ann", "eve"} {
		to := v.post("forgot", "user", user).Want(303).Header.Get("Location")
		u, err := url.Parse(to)
		apitest.Must(t, err)
		token := u.Query().Get("k")
		seen := v.get(to).Want(200).Text + v.post("password", "k", token, "code", "12345678", "new", "a new password", "user", user).Want(401).Text
		pages[user] = strings.NewReplacer(user, "USER", token, "TOKEN").Replace(seen)
		pages[user] = regexp.MustCompile(`static/\w+/`).ReplaceAllString(pages[user], "")
	}
	apitest.Equal(t, "the pages of somebody who is not there", pages["eve"], pages["ann"])
	v.shows("an impossible name", v.post("forgot", "user", "no body"), 400, "There is no user of this name")
}

func TestANewUserChoosesAPasswordByTheTemporaryOneOrByTheInvitation(t *testing.T) {
	t.Parallel()
	v := visit(t)
	v.AddUser("new", "temporary password", func(u *auth.User) { u.State = auth.FirstAccess })
	to := v.post("login", "user", "new", "password", "temporary password").Want(303).Header.Get("Location")
	v.shows("the page", v.get(to), 200, "Welcome, new.", "not name=\"code\"", `autocomplete="new-password" minlength="10" maxlength="128"`)
	if log := v.Log.String(); strings.Contains(log, "login refused") || len(v.cookies) > 0 {
		t.Errorf("the first access is a failed login or a real one: %s", log)
	}
	u, err := v.Users.Get(t.Context(), "new")
	apitest.Must(t, err)
	outbox := notify.NewOutbox(v.Data.Ports.Ports, notify.Limits{}, "", false)
	apitest.Must(t, auth.NewAccounts(auth.AccountsConfig{Ports: v.Data.Ports.Ports, Outbox: outbox}).Invite(t.Context(), u, ""))
	link := regexp.MustCompile(regexp.QuoteMeta(v.Base) + `/auth/change\S+`).FindString(v.mail())
	invited := strings.TrimPrefix(v.Send("GET "+link, "", "Accept", "text/html").Want(303).Header.Get("Location"), "../../")
	v.shows("the invitation, from another site", v.send("GET "+invited, "", "Sec-Fetch-Site", "cross-site"), 200, "Welcome, new.")
	at, err := url.Parse(invited)
	apitest.Must(t, err)
	v.shows("a poor password", v.post("password", "k", at.Query().Get("k"), "new", "short"), 400, "Welcome, new.", "This is too short")
	v.to("a good one", v.post("password", "k", at.Query().Get("k"), "new", "a new password"), "login?changed=1&user=new")
	v.to("a login", v.post("login", "user", "new", "password", "a new password"), "send")
	v.shows("the other way", v.get(to), 401, "no longer valid")
}

func TestTheAccountShowsItsDevicesAndTokensAndEndsThem(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	phone := v.another("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Mobile/15E148 Safari/604.1").login()
	v.shows("the page", v.get("account"), 200, "ann@example.com", "Chrome, Linux", "This browser", "Safari, iPhone", "No tokens yet",
		"You can send 1000 more e-mails and text messages today", "used in the last day", "No limit")
	made := v.post("account", "do", "token", "name", "<b>build</b>", "scope", "upload", "expires", "90d")
	v.shows("a new token", made, 201, "Your new token: <b>build</b>", "Copy it now", "Uploads only, never used, ends <time", `data-copy="token"`)
	if strings.Contains(made.Text, "<b>build") {
		t.Error("the name is markup")
	}
	token := regexp.MustCompile(`value="(ferry_[^"]+)"`).FindStringSubmatch(made.Text)[1]
	v.Send("POST /upload?file=a.txt", "x", "Authorization", "Bearer "+token).Want(200)
	v.to("its cookie", v.another("").send("GET files", "", "Cookie", "ferry="+token), "login?next=files")
	v.shows("the page after it", v.get("account"), 200, "<b>build</b>", "used in the last day", "not "+token, "not No tokens yet")
	v.shows("a token without a name", v.post("account", "do", "token", "name", " ", "scope", "all", "expires", ""), 400,
		"in at most 100 characters", `<option value="all" selected>`, `<option value="" selected>`, `<details class="fold ruled" open>`)
	for _, bad := range []string{"login", "root", ""} {
		v.shows("a token for "+bad, v.post("account", "do", "token", "name", "x", "scope", bad), 400, `role="alert"`)
	}
	ids := regexp.MustCompile(`name="id" value="([^"]+)"`).FindAllStringSubmatch(v.get("account").Text, -1)
	apitest.Equal(t, "what can be ended", len(ids), 2)
	for _, id := range ids {
		v.to("an end", v.post("account", "do", "end", "id", id[1]), "account")
	}
	v.to("an end that has come", v.post("account", "do", "end", "id", ids[0][1]), "account")
	v.Send("GET /download/list", "", "Authorization", "Bearer "+token).Want(401)
	v.to("the phone", phone.get("account"), "login?next=account")
	v.shows("nothing", v.post("account", "do", "nothing"), 400, "This did not work")
	phone.login()
	v.to("all ends", v.post("account", "do", "everywhere"), "login?everywhere=1")
	v.shows("the login", v.get("login?everywhere=1"), 200, "logged out everywhere")
	v.to("the phone again", phone.get("account"), "login?next=account")
	apitest.Equal(t, "cookies", len(v.cookies), 0)
}

func TestAChangedPasswordEndsAllOtherLogins(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	phone := v.another("iPhone").login()
	change := func(old, password string) apitest.Answer {
		return v.post("account", "do", "password", "old", old, "new", password)
	}
	v.shows("a wrong old one", change("wrong", "a new password"), 403, "This is not your password", "not a new password", `<details class="fold" open>`)
	v.shows("a poor new one", change(apitest.Password, "short"), 400, "This is too short")
	v.to("a good one", change(apitest.Password, "a new password"), "account?changed=1")
	v.shows("this browser", v.get("account?changed=1"), 200, "Your password is changed.", "This browser", "not iPhone")
	v.to("the other", phone.get("account"), "login?next=account")
	for change("wrong", "a new password").Code == 403 {
	}
	v.shows("too many tries", change("a new password", "another password"), 429, "Too many tries. Wait")
}

func TestAQuotaIsShownAsAMeter(t *testing.T) {
	t.Parallel()
	v := visit(t)
	v.Add("carl", apitest.Quota(1000)).Upload("file=a.txt", strings.Repeat("x", 250))
	v.post("login", "user", "carl", "password", apitest.Password)
	v.shows("the account", v.get("account"), 200, "250 B of 1 kB used", `value="25"`)
	v.shows("the files", v.get("files"), 200, "250 B of 1 kB used", `<meter min="0" max="1000" low="800" high="950"`)
}

func TestMailsAreStoppedAndResumedByThePage(t *testing.T) {
	t.Parallel()
	v := visit(t)
	const address = `"<b>"@example.com`
	token := v.Data.Ports.Key.Stop(address)
	page := "stop?lang=en&t=" + token
	v.shows("the page", v.get(page), 200, address+" will get no more e-mails", "Send me no more", "not Undo")
	v.to("stopping", v.post("stop", "t", token), page)
	v.shows("after that", v.get(page), 200, address+" gets no e-mails from Ferry about files any more", "Undo", `role="status"`)
	v.to("resuming", v.post("stop", "t", token, "undo", "1"), page)
	v.shows("after that", v.get(page), 200, "will get no more e-mails")
	apitest.Must(t, v.Data.Ports.Table.Write(t.Context(), notify.Suppress(address, notify.AddressBounced, "", time.Now())))
	v.shows("an address that came back", v.get(page), 200, "came back, or were reported", "not <form")
	v.Calls.Reset()
	for _, wrong := range []string{"", "x", token + "x"} {
		v.shows("a wrong link", v.get("stop?t="+wrong), 401, "This link is not valid", "not example.com", "not <form")
		v.shows("its form", v.post("stop", "t", wrong), map[bool]int{true: 400, false: 401}[wrong == ""], "This link is not valid")
	}
	apitest.Equal(t, "calls for wrong links", v.Calls.Reset(), map[string]int{})
	if a := v.get(page); strings.Contains(a.Text, "<b>\"@") || strings.Contains(v.Log.String(), "example.com") {
		t.Errorf("the address is markup, or logged: %s", a.Text)
	}
	for _, lang := range api.Languages() {
		a := v.get("stop?lang=" + lang + "&t=" + token)
		apitest.Equal(t, "the language", a.Header.Get("Content-Language"), lang)
	}
}

func TestErrorsArePagesThatSayWhatToDo(t *testing.T) {
	t.Parallel()
	v := visit(t).login()
	a := v.get("nowhere")
	v.shows("a page that is not there", a, 404, "There is no such page", "Show my files")
	v.shows("the same for who is not logged in", v.another("").get("nowhere"), 404, `href="./"`)
	v.Calls.Before("table.GetMany", func() error { return http.ErrBodyNotAllowed })
	a = v.get("account")
	v.shows("a fault of ours", a, 500, "Something went wrong", "<code>"+a.Header.Get("X-Request-Id")+"</code>", "not does not allow")
}
