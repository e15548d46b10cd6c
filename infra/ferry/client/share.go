package client

import (
	"context"
	"strings"

	"ferry/infra/ferry/cli"
	"ferry/shared/api/param"
	"ferry/shared/client"
	"ferry/shared/notify/texts"
)

// sharing has the flags of commands that make links.
type sharing struct {
	Expires   string   `placeholder:"WHEN"`
	SMS       []string `name:"sms" sep:"none" placeholder:"NUMBER"`
	Mail      []string `sep:"none" placeholder:"ADDRESS" help:"Send a link to this mail address; may be repeated."`
	Message   string   `placeholder:"TEXT" help:"Message to send with the links."`
	Lang      string   `placeholder:"LANG" help:"Language of the link and of messages."`
	Downloads *int64   `placeholder:"N" help:"How many downloads each link allows (default no limit)."`
	protecting
	QR bool `name:"qr" help:"Show each link as a QR code too, on standard error."`
}

// check refuses flags that would do nothing, or not what they say.
func (s sharing) check() error {
	switch {
	case s.Message != "" && len(s.Mail)+len(s.SMS) == 0:
		return cli.Usage("--message is sent with a link: name a recipient with --mail or --sms")
	case s.Downloads != nil && *s.Downloads < 1:
		return cli.Usage(
			"--downloads %d: it must be at least 1; without the flag there is no limit",
			*s.Downloads,
		)
	case s.Lang != "":
		if _, ok := texts.Find(s.Lang); !ok {
			return cli.Usage(
				"--lang %s is not one of %s",
				s.Lang,
				strings.Join(texts.Tags(), ", "),
			)
		}
	}
	return nil
}

// limits returns what limits the links.
func (s sharing) limits(password string) client.Limits {
	return client.Limits{
		Expires:   s.Expires,
		Downloads: param.Value(s.Downloads),
		Password:  password,
	}
}

// changing has the flags of a command that changes a link.
type changing struct {
	Expires   *string `placeholder:"WHEN" help:"When it ends: after 12h, 7d or 2w, or a date; none means with the file."`
	Downloads *int64  `placeholder:"N" help:"How many downloads it allows in all; 0 removes the limit."`
	protecting
	NoPassword bool `help:"Remove the password."`
}

func (c changing) change(ctx context.Context, out cli.Console) (client.ChangeLink, error) {
	password, err := c.changed(ctx, out, c.NoPassword)
	return client.ChangeLink{
		Expires:   orNone(c.Expires),
		Downloads: c.Downloads,
		Password:  password,
	}, err
}

// printLink prints a link, and its file's name unless that is empty.
func (s sharing) printLink(out cli.Console, asJSON bool, link, name string) error {
	line := link
	if name != "" {
		line += "  " + name
	}
	if !asJSON {
		if err := out.Print("%s\n", line); err != nil {
			return err
		}
	}
	if !s.QR {
		return nil
	}
	return printQR(out.Err.Raw, link)
}

type Share struct {
	oneFile
	sharing
	JSON bool `name:"json" help:"Print a JSON array of the links."`
}

func (c Share) Run(ctx context.Context, out cli.Console, who *identity) error {
	if err := c.check(); err != nil {
		return err
	}
	password, err := c.linkPassword(ctx, out)
	if err != nil {
		return err
	}
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	made, err := who.AddLinks(ctx, id, client.NewLinks{
		SMS:     c.SMS,
		Mail:    c.Mail,
		Message: c.Message,
		Lang:    c.Lang,
		Limits:  c.limits(password),
	})
	if err != nil {
		return err
	}
	for _, l := range made {
		if l.LinkURL == "" {
			out.Tell("a link is on its way to %s\n", l.To)
		} else if err := c.printLink(out, c.JSON, l.LinkURL, ""); err != nil {
			return err
		}
	}
	return cli.Report(out, c.JSON, made, nil)
}

type Set struct {
	oneFile
	Name    *string `placeholder:"NAME" help:"New name."`
	Expires *string `placeholder:"WHEN"`
	JSON    bool    `name:"json" help:"Print the file as a JSON object."`
}

func (c Set) Run(ctx context.Context, out cli.Console, who *identity) error {
	if c.Name == nil && c.Expires == nil {
		return cli.Usage("say what to change: --name or --expires")
	}
	id, err := c.find(ctx, who)
	if err != nil {
		return err
	}
	d, err := who.ChangeFile(ctx, id, client.ChangeFile{
		Name:    c.Name,
		Expires: orNone(c.Expires),
	})
	if err != nil {
		return err
	}
	return printDetails(out, c.JSON, d)
}

// orNone replaces none with the empty text, which the service takes for its default.
func orNone(text *string) *string {
	if text != nil && *text == "none" {
		return new(string)
	}
	return text
}
