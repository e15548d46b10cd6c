package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"ferry/shared/boot"
	"ferry/shared/boot/local"
	"ferry/shared/table"

	"ferry/shared/notify"

	"ferry/shared/api"
)

type outboxCommands struct {
	List       outboxList       `cmd:"" help:"List the notifications that wait, and those that have failed."`
	Show       outboxShow       `cmd:"" help:"Show all that is known of one notification."`
	Retry      outboxRetry      `cmd:"" help:"Send notifications now that wait for their next try, or have failed."`
	Cancel     outboxCancel     `cmd:"" help:"End notifications that wait: whoever uploaded sees them as failed."`
	Suppressed outboxSuppressed `cmd:"" help:"List the addresses that get no mail."`
	Allow      outboxAllow      `cmd:"" help:"Let addresses get mail again that bounced or complained."`
}

// Help is shown by ferry outbox --help.
func (outboxCommands) Help() string {
	return "A notification can be sent twice only if a retry follows a message that was taken and reported as failed.\n\n" +
		"Exit codes: 66 no such notification, 67 the address is not suppressed, 75 it is being sent right now, 76 it was sent, or has failed, before, or the owner of the address wants no mail."
}

// onTable runs f on the table of the data.
func (s store) onTable(ctx context.Context, f func(table.Table, time.Time) error) error {
	return s.onPorts(ctx, func(p *api.Ports) error { return f(p.Table, p.Now()) })
}

func (s store) onPorts(ctx context.Context, f func(*api.Ports) error) (err error) {
	p, done, err := s.open(ctx, api.Settings{}, local.Options{Existing: true}, boot.Table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return f(p)
}

// notification is what an operator sees of a notice: no PIN can be made of it.
type notification struct {
	ID        string         `json:"id"`
	State     notify.State   `json:"state"`
	Kind      notify.Kind    `json:"kind"`
	Channel   notify.Channel `json:"channel"`
	To        string         `json:"to"`
	Owner     string         `json:"owner,omitempty"`
	File      int64          `json:"file,omitempty"`
	Name      string         `json:"name,omitempty"`
	Sender    string         `json:"sender,omitempty"`
	User      string         `json:"user,omitempty"`
	Tries     int64          `json:"tries"`
	Created   time.Time      `json:"created"`
	Expires   time.Time      `json:"expires,omitzero"`
	NextTry   time.Time      `json:"nextTry,omitzero"`
	Sent      time.Time      `json:"sent,omitzero"`
	Delivered time.Time      `json:"delivered,omitzero"`
	Failed    time.Time      `json:"failed,omitzero"`
	Provider  string         `json:"provider,omitempty"`
	Request   string         `json:"request,omitempty"` // id of the request that made it
	LastError string         `json:"lastError,omitempty"`
}

func showNotice(n notify.Notice) notification {
	out := notification{
		ID: n.ID, State: n.State(), Kind: n.Kind, Channel: n.Channel, To: n.To, Owner: n.Owner, File: n.File, Name: n.Name,
		Sender: n.Sender, User: n.User, Tries: n.Tries, Created: milliseconds(n.Created * 1000), Expires: milliseconds(n.Expires * 1000),
		Sent: milliseconds(n.SentAt), Delivered: milliseconds(n.Delivered), Failed: milliseconds(n.FailedAt),
		Provider: n.Provider, Request: n.Request, LastError: n.LastError,
	}
	if out.State == notify.Queued || out.State == notify.Sending {
		out.NextTry = milliseconds(n.NotBefore)
	}
	return out
}

// milliseconds is a time, zero for 0.
func milliseconds(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.UnixMilli(unix).UTC()
}

type outboxList struct {
	store
	Failed bool `help:"Only those that have failed in the last 30 days, newest first."`
	Limit  int  `default:"1000" placeholder:"N" help:"Most to list, of each kind (default ${default})."`
	JSON   bool `name:"json" help:"Print a JSON array."`
}

func (c outboxList) Run(ctx context.Context, out console) error {
	if c.Limit < 1 {
		return &coded{exitUsage, errors.New("--limit is at least 1")}
	}
	return c.onTable(ctx, func(t table.Table, _ time.Time) error {
		rows := newRows(out.Out, c.JSON)
		rows.head("%-40s  %-7s  %-7s  %-7s  %5s  %-16s  %s\n", "ID", "STATE", "KIND", "CHANNEL", "TRIES", "CREATED", "TO, LAST ERROR")
		if !c.Failed {
			if err := c.print(rows, notify.Waiting(ctx, t)); err != nil {
				return err
			}
		}
		if err := c.print(rows, notify.GivenUp(ctx, t)); err != nil {
			return err
		}
		return rows.end("no notification waits or has failed")
	})
}

func (c outboxList) print(rows *rows, all iter.Seq2[notify.Notice, error]) error {
	printed := 0
	for n, err := range all {
		if err != nil {
			return err
		}
		if printed++; printed > c.Limit {
			return nil
		}
		o := showNotice(n)
		line := fmt.Sprintf("%-40s  %-7s  %-7s  %-7s  %5d  %-16s  %s\n", printable(o.ID), o.State, printable(string(o.Kind)), printable(string(o.Channel)),
			o.Tries, o.Created.Local().Format("2006-01-02 15:04"), printable(o.To+"  "+o.LastError))
		if err := rows.row(o, line); err != nil {
			return err
		}
	}
	return nil
}

type outboxShow struct {
	store
	ID string `arg:"" help:"ID of the notification."`
}

// Help is shown by ferry outbox show --help.
func (outboxShow) Help() string { return "Prints a JSON object." }

func (c outboxShow) Run(ctx context.Context, out console) error {
	return c.onTable(ctx, func(t table.Table, _ time.Time) error {
		if err := checkNotice(c.ID); err != nil {
			return err
		}
		n, err := notify.Find(ctx, t, c.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", printable(c.ID), operatorError(err))
		}
		return printJSON(out, showNotice(n))
	})
}

// maxNotice is the most bytes of an ID that can be one.
const maxNotice = 200

func checkNotice(id string) error {
	if id == "" || len(id) > maxNotice {
		return &coded{exitNoFile, notify.ErrUnknown}
	}
	return nil
}

// operatorError gives an error of package notices its exit code.
func operatorError(err error) error {
	codes := map[error]int{
		notify.ErrUnknown: exitNoFile, notify.ErrHeld: exitBusy, notify.ErrSent: exitRefused, notify.ErrFailed: exitRefused,
	}
	if code := codes[err]; code != 0 {
		return &coded{code, err}
	}
	return err
}

// each runs f on each ID, prints what was done, and goes on after errors.
func each(out console, ids []string, done string, f func(id string) error) error {
	failed := failures{out: out}
	for _, id := range ids {
		err := checkNotice(id)
		if err == nil {
			err = operatorError(f(id))
		}
		if err == nil {
			fmt.Fprintf(out.Err, "%s %s\n", printable(id), done)
		}
		failed.add(id, err)
	}
	return failed.err()
}

type outboxRetry struct {
	store
	IDs       []string `arg:"" optional:"" name:"id" help:"IDs of notifications."`
	AllFailed bool     `help:"All that have failed in the last 30 days, instead."`
}

// Help is shown by ferry outbox retry --help.
func (outboxRetry) Help() string {
	return "The notification is due at once, and tried for another day. A running ferry serve looks every 30 seconds; in the cloud what has failed goes at once, and what waited goes when its queue shows it again, within the hour."
}

func (c outboxRetry) Run(ctx context.Context, out console) error {
	if (len(c.IDs) == 0) != c.AllFailed {
		return &coded{exitUsage, errors.New("name notifications by their IDs, or say --all-failed")}
	}
	return c.onTable(ctx, func(t table.Table, now time.Time) error {
		ids := c.IDs
		if c.AllFailed {
			var err error
			if ids, err = failedIDs(ctx, t); err != nil {
				return err
			}
		}
		return each(out, ids, "is due", func(id string) error { return notify.Retry(ctx, t, now, id) })
	})
}

func failedIDs(ctx context.Context, t table.Table) (ids []string, err error) {
	for n, err := range notify.GivenUp(ctx, t) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, n.ID)
	}
	return ids, nil
}

type outboxCancel struct {
	store
	IDs []string `arg:"" name:"id" help:"IDs of notifications."`
}

func (c outboxCancel) Run(ctx context.Context, out console) error {
	return c.onPorts(ctx, func(p *api.Ports) error {
		return each(out, c.IDs, "is cancelled", func(id string) error {
			return notify.Cancel(ctx, p.Table, p.Now(), id, notify.Events(p.Recorder()))
		})
	})
}

// suppression is one reason why an address gets no mail.
type suppression struct {
	To     string                `json:"to"`
	Reason notify.SuppressReason `json:"reason"`
	Detail string                `json:"detail,omitempty"`
	At     time.Time             `json:"at"`
}

type outboxSuppressed struct {
	store
	Addresses []string `arg:"" optional:"" name:"address" help:"Show these alone."`
	JSON      bool     `name:"json" help:"Print a JSON array."`
}

func (c outboxSuppressed) Run(ctx context.Context, out console) error {
	return c.onTable(ctx, func(t table.Table, _ time.Time) error {
		rows := newRows(out.Out, c.JSON)
		rows.head("%-40s  %-10s  %-16s  %s\n", "ADDRESS", "REASON", "SINCE", "DETAIL")
		failed := failures{out: out}
		for e, err := range c.entries(ctx, t) {
			var one *coded
			if errors.As(err, &one) {
				failed.add(e.To, err)
				continue
			}
			if err != nil {
				return err
			}
			for _, cause := range e.Causes() {
				s := suppression{e.To, cause.Reason, cause.Detail, milliseconds(cause.At)}
				line := fmt.Sprintf("%-40s  %-10s  %-16s  %s\n", printable(s.To), s.Reason, s.At.Local().Format("2006-01-02 15:04"), printable(s.Detail))
				if err := rows.row(s, line); err != nil {
					return err
				}
			}
		}
		if failed.err() != nil && !c.JSON {
			return failed.err()
		}
		return errors.Join(rows.end("no address is suppressed"), failed.err())
	})
}

// entries yields those asked for, or all.
func (c outboxSuppressed) entries(ctx context.Context, t table.Table) iter.Seq2[notify.Suppression, error] {
	if len(c.Addresses) == 0 {
		return notify.AllSuppressed(ctx, t)
	}
	return func(yield func(notify.Suppression, error) bool) {
		for _, address := range c.Addresses {
			e, ok, err := notify.Suppressed(ctx, t, address)
			if err == nil && !ok {
				e.To, err = address, errNotSuppressed
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

var (
	errNotSuppressed = &coded{exitUnknown, errors.New("the address is not suppressed")}
	errStopped       = &coded{exitRefused, errors.New("its owner has stopped the e-mails about files, and alone can undo that, with the link at the end of any of them")}
)

type outboxAllow struct {
	store
	Addresses []string `arg:"" name:"address" help:"Addresses."`
}

func (c outboxAllow) Run(ctx context.Context, out console) error {
	return c.onTable(ctx, func(t table.Table, _ time.Time) error {
		failed := failures{out: out}
		for _, address := range c.Addresses {
			told, err := allow(ctx, t, address)
			if err == nil {
				fmt.Fprintf(out.Err, "%s %s\n", printable(address), told)
			}
			failed.add(address, err)
		}
		return failed.err()
	})
}

// allow says what an address gets then, or why that does not change.
func allow(ctx context.Context, t table.Table, address string) (told string, err error) {
	was, left, err := notify.AllowMail(ctx, t, address)
	switch {
	case err != nil:
		return "", err
	case !was && left.Stopped != 0:
		return "", errStopped
	case !was:
		return "", errNotSuppressed
	case left.Stopped != 0:
		return "gets codes for a new password again, and no more: " + errStopped.Error(), nil
	}
	return "gets mail again", nil
}
