package operator

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"time"

	"ferry/infra/ferry/cli"
	"ferry/shared/files"
	"ferry/shared/notify"
	"ferry/shared/notify/inbox"
	"ferry/shared/service"
	"ferry/shared/table"
)

type Outbox struct {
	List       outboxList       `cmd:"" help:"List the notices that wait, and those that have failed."`
	Show       outboxShow       `cmd:"" help:"Show everything about one notice."`
	Retry      outboxRetry      `cmd:"" help:"Send waiting or failed notices now."`
	Cancel     outboxCancel     `cmd:"" help:"Cancel waiting notices: the uploader sees them as failed."`
	Suppressed outboxSuppressed `cmd:"" help:"List the addresses that get no mail."`
	Allow      outboxAllow      `cmd:"" help:"Let addresses that bounced or complained get mail again."`
}

// notice is what an operator sees of a notice: it reveals no PIN.
type notice struct {
	ID        string        `json:"id"`
	State     notify.State  `json:"state"`
	Kind      notify.Kind   `json:"kind"`
	Channel   files.Channel `json:"channel"`
	To        string        `json:"to"`
	Owner     string        `json:"owner,omitempty"`
	File      int64         `json:"file,omitempty"`
	Name      string        `json:"name,omitempty"`
	Sender    string        `json:"sender,omitempty"`
	User      string        `json:"user,omitempty"`
	Tries     int64         `json:"tries"`
	Created   time.Time     `json:"created"`
	Expires   time.Time     `json:"expires,omitzero"`
	NextTry   time.Time     `json:"nextTry,omitzero"`
	Sent      time.Time     `json:"sent,omitzero"`
	Delivered time.Time     `json:"delivered,omitzero"`
	Failed    time.Time     `json:"failed,omitzero"`
	Provider  string        `json:"provider,omitempty"`
	LogID     string        `json:"request,omitempty"` // of the HTTP request that made it
	LastError string        `json:"lastError,omitempty"`
}

func showNotice(n notify.Notice) notice {
	out := notice{
		ID:        n.ID,
		State:     n.State(),
		Kind:      n.Kind,
		Channel:   n.Channel,
		To:        n.To,
		Owner:     n.Owner,
		File:      n.File,
		Name:      n.Name,
		Sender:    n.Sender,
		User:      n.User,
		Tries:     n.Tried(),
		Created:   milliseconds(n.Created * 1000),
		Expires:   milliseconds(n.Expires * 1000),
		Sent:      milliseconds(n.SentAt),
		Delivered: milliseconds(n.Delivered),
		Failed:    milliseconds(n.FailedAt),
		Provider:  n.Provider,
		LogID:     n.LogID,
		LastError: n.LastError,
	}
	if out.State == notify.Queued || out.State == notify.Sending {
		out.NextTry = milliseconds(n.NotBefore)
	}
	return out
}

// milliseconds converts a time from Unix milliseconds; 0 becomes the zero time.
func milliseconds(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.UnixMilli(unix).UTC()
}

type outboxList struct {
	Store
	Failed bool `help:"List only those that have failed in the last 30 days, newest first."`
	Limit  int  `default:"1000" placeholder:"N" help:"Maximum number to list, of each kind (default ${default})."`
	JSON   bool `name:"json" help:"Print a JSON array."`
}

func (c outboxList) Run(ctx context.Context, out cli.Console) error {
	if c.Limit < 1 {
		return cli.Usage("--limit %d: it must be at least 1", c.Limit)
	}
	return c.use(ctx, func(p *service.Service) error {
		return cli.Listing[notice]{
			JSON:   c.JSON,
			Format: "%-40s  %-7s  %-7s  %-7s  %5v  %-16s  %s\n",
			Titles: []any{
				"ID", "STATE", "KIND", "CHANNEL", "TRIES", "CREATED", "TO, LAST ERROR",
			},
			Columns: func(n notice) []any {
				return []any{
					n.ID, n.State, string(n.Kind), string(n.Channel), n.Tries, cli.When(n.Created), n.To +
						"  " +
						n.LastError,
				}
			},
			Nothing: "no waiting or failed notices\n",
		}.Print(out, c.all(ctx, p.Table))
	})
}

// all yields the waiting and the failed notices, each kind up to the limit.
func (c outboxList) all(ctx context.Context, t table.Table) iter.Seq2[notice, error] {
	kinds := []iter.Seq2[notify.Notice, error]{notify.Waiting(ctx, t), notify.GivenUp(ctx, t)}
	if c.Failed {
		kinds = kinds[1:]
	}
	return func(yield func(notice, error) bool) {
		for _, kind := range kinds {
			left := c.Limit
			for n, err := range kind {
				if left--; left < 0 {
					break
				}
				if !yield(showNotice(n), err) {
					return
				}
			}
		}
	}
}

type outboxShow struct {
	Store
	ID string `arg:"" help:"ID of the notice."`
}

func (c outboxShow) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		return eachNotice(ctx, out, []string{c.ID}, "", func(id string) error {
			n, err := notify.Find(ctx, p.Table, id)
			return cli.Report(out, err == nil, showNotice(n), err)
		})
	})
}

// eachNotice is like each, for IDs of notices.
func eachNotice(
	ctx context.Context,
	out cli.Console,
	ids []string,
	done string,
	f func(id string) error,
) error {
	return cli.Each(ctx, out, ids, done, func(id string) error {
		if id == "" || len(id) > 200 { // the table refuses such a key
			return notify.ErrUnknown
		}
		return f(id)
	})
}

type outboxRetry struct {
	Store
	IDs       []string `arg:"" optional:"" name:"id" help:"IDs of notices."`
	AllFailed bool     `help:"Retry all that have failed in the last 30 days."`
}

func (c outboxRetry) Run(ctx context.Context, out cli.Console) error {
	if (len(c.IDs) == 0) != c.AllFailed {
		return cli.Usage("name notices by their IDs, or use --all-failed")
	}
	return c.use(ctx, func(p *service.Service) error {
		if c.AllFailed {
			for n, err := range notify.GivenUp(ctx, p.Table) {
				if err != nil {
					return err
				}
				c.IDs = append(c.IDs, n.ID)
			}
		}
		return eachNotice(ctx, out, c.IDs, "%s is due", func(id string) error {
			return notify.Retry(ctx, p.Table, p.Now(), id)
		})
	})
}

type outboxCancel struct {
	Store
	IDs []string `arg:"" name:"id" help:"IDs of notices."`
}

func (c outboxCancel) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		return eachNotice(ctx, out, c.IDs, "%s is cancelled", func(id string) error {
			return notify.Cancel(ctx, p.Table, p.Now(), id, p.Outbox().LinkEnded)
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
	Store
	Addresses []string `arg:"" optional:"" name:"address" help:"Show only these."`
	JSON      bool     `name:"json" help:"Print a JSON array."`
}

func (c outboxSuppressed) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		list := cli.Listing[suppression]{
			JSON:   c.JSON,
			Format: "%-40s  %-10s  %-16s  %s\n",
			Titles: []any{"ADDRESS", "REASON", "SINCE", "DETAIL"},
			Columns: func(s suppression) []any {
				return []any{s.To, s.Reason, cli.When(s.At), s.Detail}
			},
			Nothing: "no address is suppressed\n",
		}
		if len(c.Addresses) == 0 {
			return list.Print(out, suppressions(notify.AllSuppressed(ctx, p.Table)))
		}
		list.Nothing = ""
		failed := cli.Failures{Out: out}
		err := list.Print(out, suppressions(func(yield func(notify.Suppression, error) bool) {
			for _, address := range c.Addresses {
				e, ok, err := notify.Suppressed(ctx, p.Table, address)
				if err == nil && !ok {
					failed.Add(address, errNotSuppressed)
				} else if !yield(e, err) {
					return
				}
			}
		}))
		return cmp.Or(err, failed.First)
	})
}

// suppressions yields the reasons one by one.
func suppressions(all iter.Seq2[notify.Suppression, error]) iter.Seq2[suppression, error] {
	return func(yield func(suppression, error) bool) {
		for e, err := range all {
			for _, cause := range e.Causes() {
				if !yield(suppression{e.To, cause.Reason, cause.Detail, milliseconds(cause.At)}, nil) {
					return
				}
			}
			if err != nil && !yield(suppression{}, err) {
				return
			}
		}
	}
}

var (
	errNotSuppressed = cli.Fail(cli.ExitUnknown, "the address is not suppressed")
	errStopped       = cli.Fail(
		cli.ExitRefused,
		"its owner has stopped the e-mails about files, "+
			"and only the owner can undo that, with the link at the end of any such e-mail",
	)
)

type outboxAllow struct {
	Store
	Addresses []string `arg:"" name:"address" help:"Addresses."`
}

func (c outboxAllow) Run(ctx context.Context, out cli.Console) error {
	return c.use(ctx, func(p *service.Service) error {
		return cli.Each(ctx, out, c.Addresses, "", func(address string) error {
			was, left, err := notify.AllowMail(ctx, p.Table, address)
			gets := "gets mail again"
			switch {
			case err != nil:
				return err
			case !was && left.Stopped != 0:
				return errStopped
			case !was:
				return errNotSuppressed
			case left.Stopped != 0:
				gets = "gets codes for a new password again, but nothing else: " +
					errStopped.Error()
			}
			out.Tell("%s %s\n", address, gets)
			return nil
		})
	})
}

type Inbox struct {
	Store
	SMTP  string `name:"smtp" env:"FERRY_SMTP_URL" hidden:""`
	JSON  bool   `name:"json" help:"Print a JSON array."`
	Limit int    `default:"20" help:"How many messages to show, newest first (1 to 100)."`
}

func (c Inbox) Run(ctx context.Context, out cli.Console) error {
	if c.Limit < 1 || c.Limit > inbox.MaxList {
		return cli.Usage("--limit %d: it must be a number from 1 to %d", c.Limit, inbox.MaxList)
	}
	return c.use(ctx, func(p *service.Service) error {
		if u, err := url.Parse(c.SMTP); err == nil && u.Host != "" {
			out.Tell(
				"Mails go to the mail server %s, and are not shown here; ferry outbox list has those that failed.\n",
				u.Host,
			)
		}
		messages, err := inbox.New(p.Table, p.Now).List(ctx, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return cli.PrintJSON(out, append([]inbox.Message{}, messages...))
		}
		if len(messages) == 0 {
			out.Print("Nothing was sent yet. An upload with ?m=ADDRESS, or a forgotten password, sends a mail. " +
				"Where ferry serve has a mail server (--smtp), mails go there, and are not shown here.\n")
		}
		for i, m := range messages {
			if i > 0 {
				out.Print("\n")
			}
			out.Print("%s  %s to %s\n", m.Sent.Local().Format(time.DateTime), m.Channel, m.To)
			if m.Subject != "" {
				out.Print("Subject: %s\n", m.Subject)
			}
			fmt.Fprintf(out.Out, "\n%s\n", m.Text)
		}
		return nil
	})
}
