package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"ferry/shared/notify"
	"ferry/shared/notify/texts"
)

// words is what pages say in one language, and its rules for sizes, dates and numbers. A value is a
// text, or two texts, for one thing and for several.
type words struct {
	notify.Texts
	own map[string]word
}

// word is a text for one thing and a text for several; for most words they are the same.
type word [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(text []byte) error {
	var both [2]string
	if json.Unmarshal(text, &both) == nil {
		*w = both
		return nil
	}
	err := json.Unmarshal(text, &w[0])
	w[1] = w[0]
	return err
}

// mailAlone ends the keys of texts that replace others where no text messages are sent.
const mailAlone = "-mail"

// wordsOf returns the words of a language, for a service that sends text messages or not.
func wordsOf(lang string, messages bool) words {
	w := words{Texts: notify.TextsOf(lang)}
	if err := json.Unmarshal(texts.Pages(w.Lang), &w.own); err != nil {
		panic("words of " + lang + ": " + err.Error()) // a test reads each file
	}
	for key, text := range w.own {
		other, ok := strings.CutSuffix(key, mailAlone)
		if !ok || !w.has(other) {
			continue
		}
		if !messages {
			w.own[other] = text
		}
		delete(w.own, key)
	}
	return w
}

// remembered returns f with its results kept: f is called once for each argument.
func remembered[K comparable, V any](f func(K) V) func(K) V {
	var all sync.Map
	return func(k K) V {
		made, _ := all.LoadOrStore(k, sync.OnceValue(func() V { return f(k) }))
		return made.(func() V)()
	}
}

// T returns the text of a key. Its arguments are as in fmt.Sprintf.
func (w words) T(key string, args ...any) string {
	text, ok := w.own[key]
	if !ok {
		panic("there is no text " + key) // a test finds it
	}
	if len(args) == 0 {
		return text[0]
	}
	return fmt.Sprintf(text[0], args...)
}

// first returns the first text that one of these keys has, or else that something went wrong.
func (w words) first(keys ...string) string {
	for _, key := range keys {
		if w.has(key) {
			return w.T(key)
		}
	}
	return w.T("error.internal")
}

func (w words) has(key string) bool { return w.own[key] != word{} }

// N writes a number with the things that a key names.
func (w words) N(key string, n int64) string { return w.Count(n, [2]string(w.own[key])) }

// Size writes a number of bytes.
func (w words) Size(n int64) string { return w.WriteSize(n, true) }

// Exactly writes a time to the minute.
func (w words) Exactly(at time.Time) string { return w.WriteTime(at.Unix(), w.DateTime) }

// Day writes the day of a time.
func (w words) Day(at time.Time) string { return w.WriteTime(at.Unix(), w.Date) }

// Wait writes how long to wait, rounded up.
func (w words) Wait(d time.Duration) string { return w.span(d, true) }

// span writes a time span in its largest unit.
func (w words) span(d time.Duration, up bool) string {
	for _, u := range []struct {
		key  string
		unit time.Duration
	}{{"time.days", 24 * time.Hour}, {"time.hours", time.Hour}, {"time.minutes", time.Minute}} {
		if d >= 2*u.unit || u.unit == time.Minute && d >= u.unit {
			part := u.unit / 2
			if up {
				part = u.unit - 1
			}
			return w.N(u.key, int64((d+part)/u.unit))
		}
	}
	return w.N("time.seconds", max(1, int64(d.Seconds()+0.5)))
}

// Relative writes how far a time is from now.
func (w words) Relative(at, now time.Time) string {
	d := at.Sub(now)
	switch {
	case d > 0:
		return w.T("time.in", w.span(d, false))
	case d > -time.Minute:
		return w.T("time.now")
	}
	return w.T("time.ago", w.span(-d, false))
}
