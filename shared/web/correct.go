package web

import (
	"net/url"
	"strings"

	"ferry/shared/fault"
	"ferry/shared/files"
	"ferry/shared/wire"
)

// correction is a form that sends a link again, to the right address, in place of a link whose
// message did not arrive.
type correction struct {
	File     int64
	Link, To string
	Next     string // the page that it leads to
	Wrong    string // what is wrong with To
}

// Correct returns the form for a link whose message did not arrive. If the form has just been
// refused, it shows what was entered.
func (p page) Correct(file int64, link, to, next string) correction {
	c := correction{File: file, Link: link, To: to, Next: next}
	if p.wrongs.Link == link {
		c.To, c.Wrong = p.wrongs.To, p.wrongs.Wrong
	}
	return c
}

// correct handles the form. An error is shown on the page that the form came from.
func (v *visit) correct(form url.Values) error {
	back := next(form.Get("next"), "files")
	to := strings.TrimSpace(form.Get("to"))
	v.again = func(_ int, wrong error) error {
		v.wrongs = correction{Link: form.Get("link"), To: to, Wrong: v.wrong(wrong)}
		if f := fault.Of(wrong); f != nil && v.has("call.parameter."+f.Parameter) {
			v.wrongs.Wrong = v.T("call.parameter." + f.Parameter)
		}
		page, query, _ := strings.Cut(back, "?")
		v.r.URL.RawQuery = query
		if page == "send" {
			return v.send()
		}
		return v.showFiles()
	}
	body := wire.NewLinks{Instead: form.Get("link"), Lang: v.Lang}
	if files.ChannelOf(to) == files.Mail {
		body.Mail = wire.Texts{to}
	} else {
		body.SMS = wire.Texts{to}
	}
	if _, err := v.ask(question{
		at:   "POST /files/" + url.PathEscape(form.Get("id")) + "/links",
		json: body,
	}, nil); err != nil {
		return err
	}
	return v.to(back, nil)
}
