package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"ferry/shared/api"
)

// where says at which address the service answers, and with which certificate.
type where struct {
	Addr    string   `env:"FERRY_ADDR" placeholder:"HOST:PORT" help:"Address to listen on (default 127.0.0.1:8080)."`
	Domains []string `name:"tls-domain" env:"FERRY_TLS_DOMAIN" placeholder:"DOMAIN" help:"Get a certificate for it."`
	Cert    string   `name:"tls-cert" env:"FERRY_TLS_CERT" type:"path" placeholder:"FILE" help:"Certificate, in PEM."`
	Key     string   `name:"tls-key" env:"FERRY_TLS_KEY" type:"path" placeholder:"FILE" help:"Its private key."`
}

// secure reports whether the service speaks https itself.
func (w where) secure() bool { return len(w.Domains) > 0 || w.Cert != "" }

func (w where) listenOn() string {
	if w.Addr == "" && len(w.Domains) > 0 {
		return ":443"
	}
	return cmp.Or(w.Addr, "127.0.0.1:8080")
}

// publicURL returns the address of a service that listens on addr.
func (w where) publicURL(addr net.Addr) string {
	host, scheme := addr.String(), "http"
	if w.secure() {
		scheme = "https"
	}
	if len(w.Domains) > 0 {
		_, port, _ := net.SplitHostPort(host)
		host = net.JoinHostPort(w.Domains[0], port)
	}
	if scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host + api.Prefix
}

type healthCommand struct {
	Where where  `embed:""`
	URL   string `arg:"" optional:"" help:"Address of the service (default the one that runs here with these settings)."`
}

// Help is shown by ferry health --help.
func (healthCommand) Help() string { return "Exit codes: 0 the service works, 1 it does not." }

func (c healthCommand) Run(ctx context.Context, out console) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	base, config := strings.TrimSuffix(c.URL, "/"), &tls.Config{}
	if base == "" {
		base = c.Where.here()
		config.InsecureSkipVerify = true // the certificate is for another name than this machine's own
		if len(c.Where.Domains) > 0 {
			config.ServerName = c.Where.Domains[0]
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return &coded{exitOther, err}
	}
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Do(req)
	if err != nil {
		return &coded{exitOther, err}
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &coded{exitOther, errors.New(base + " answers with " + resp.Status)}
	}
	fmt.Fprintln(out.Out, base, "works")
	return nil
}

// here returns the address of the service for this machine itself.
func (w where) here() string {
	scheme := "http://"
	if w.secure() {
		scheme = "https://"
	}
	host, port, _ := net.SplitHostPort(w.listenOn())
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "localhost"
	}
	return scheme + net.JoinHostPort(host, port) + api.Prefix
}
