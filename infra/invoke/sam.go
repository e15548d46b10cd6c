package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"ferry/infra/stack/emulated"
	"ferry/shared/boot/boottest"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/users"
	"ferry/shared/wire"
)

const (
	sender          = "ferry@example.com" // of mail
	environmentFile = ".tmp/env.json"     // gives SAM the functions' environment
	built           = ".tmp/sam"          // contains the functions for this machine's processor
)

// runSAM runs SAM with these arguments, such as `local start-api`, until Ctrl-C.
func runSAM(ctx context.Context, out io.Writer, args []string) error {
	p, environment, err := fill(ctx)
	if err == nil {
		err = boottest.Notices(ctx, p)
	}
	if err == nil && slices.Contains(args, "start-api") {
		err = demo(ctx, out, p, environment, args)
	}
	if err != nil {
		return err
	}
	cmd, err := sam(ctx, map[string]any{"Parameters": environment}, args...)
	if err != nil {
		return err
	}
	cmd.Stdout = out
	if err = cmd.Run(); ctx.Err() != nil {
		return nil
	}
	return err
}

// demo adds a user for the README's commands, and prints how these commands begin here.
func demo(
	ctx context.Context,
	out io.Writer,
	p *service.Service,
	environment map[string]string,
	args []string,
) error {
	port, password := "3000", rand.Text()
	if i := slices.Index(args, "--port"); i > 0 && i+1 < len(args) {
		port = args[i+1]
	}
	base := "http://127.0.0.1:" + port + wire.Prefix
	environment["FERRY_PUBLIC_URL"] = base
	hash, err := p.Hasher.Hash(ctx, password)
	if err == nil {
		user := users.User{
			Name:     "demo",
			Email:    "demo@example.com",
			State:    users.Active,
			Password: hash,
		}
		err = p.Users().Add(ctx, user)
	}
	if err != nil {
		return err
	}
	inbox, err := showMail(ctx, p)
	fmt.Fprintf(
		out,
		"LOGIN=demo:%[1]s\nFERRY=%[2]s\nfiles that are not text, which SAM damages in a body: "+
			"FERRY_PASSWORD=%[1]s bin/ferry up --session FILE --url %[2]s --user demo\nmail and text messages: %[3]s\n",
		password,
		base,
		inbox,
	)
	return err
}

// showMail delivers waiting messages to an inbox, and returns the inbox's address: here no table
// stream calls the functions that would send them. Both run until this process ends.
func showMail(ctx context.Context, p *service.Service) (address string, err error) {
	s, err := local.NewService(p.Ports, p.Settings, local.ServiceOptions{
		From:      sender,
		ShowInbox: true,
	})
	if err != nil {
		return "", err
	}
	go s.Run(ctx)
	go func() {
		for range time.Tick(time.Second) {
			s.Sender.Wake() // a function in a container cannot do this
		}
	}()
	address, _, err = emulated.Serve(s.Handler())
	return address + "/inbox", err
}

// fill makes a table, buckets and more with the data that events/ refer to. It returns
// the environment of functions in Docker that use them.
func fill(ctx context.Context) (*service.Service, map[string]string, error) {
	if os.Getenv(emulated.AddressVariable) == "" {
		return nil, nil, errors.New("there are no stand-ins for AWS: go run ./infra/awslocal -- COMMAND")
	}
	d, err := boottest.Make(ctx, "local-"+strings.ToLower(rand.Text()[:8]))
	if err = errors.Join(err, baseImage(ctx)); err != nil {
		return nil, nil, err
	}
	address, err := relay()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := config.LoadDefaultConfig(
		ctx,
		config.WithBaseEndpoint(os.Getenv(emulated.AddressVariable)),
	)
	if err == nil {
		err = (&emulated.Cloud{Config: cfg}).Verify(ctx, sender)
	}
	d.Environment["AWS_ENDPOINT_URL"], d.Environment["FERRY_MAIL_FROM"] = address, sender
	for _, variable := range []string{"FERRY_NOTICES_TOPIC", "FERRY_EVENTS_TOPIC"} {
		topic, failed := sns.NewFromConfig(cfg).
			CreateTopic(ctx, &sns.CreateTopicInput{Name: &variable})
		if err = errors.Join(err, failed); err != nil {
			return nil, nil, err
		}
		d.Environment[variable] = *topic.TopicArn
	}
	p, err := emulated.Fill(ctx, cfg, d, slog.New(slog.DiscardHandler))
	return p, d.Environment, err
}

// sam returns a command of SAM. The environment is given per function or, under Parameters, for all of them.
func sam(ctx context.Context, environment map[string]any, args ...string) (*exec.Cmd, error) {
	text, err := json.MarshalIndent(environment, "", "  ")
	if err == nil {
		err = errors.Join(
			os.MkdirAll(filepath.Dir(environmentFile), 0o755),
			os.WriteFile(environmentFile, text, 0o600),
		)
	}
	args = append(
		args,
		"--template-file",
		built+"/template.yaml",
		"--language-extensions",
		"--skip-pull-image",
		"--env-vars",
		environmentFile,
		"--parameter-overrides",
		"Architecture="+architecture(),
	)
	cmd := exec.CommandContext(ctx, "sam", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "SAM_CLI_CONTAINER_CONNECTION_TIMEOUT=600") // SAM's 20 s are too short on a busy machine
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                      // a second interrupt would keep it from removing its containers
	cmd.Cancel, cmd.WaitDelay = func() error {
		return cmd.Process.Signal(os.Interrupt)
	}, time.Minute
	return cmd, err
}

// architecture is Lambda's name for this machine's processor.
func architecture() string { return strings.Replace(runtime.GOARCH, "amd64", "x86_64", 1) }

// signed finds which service a request is signed for.
var signed = regexp.MustCompile(`/(dynamodb|s3)/aws4_request`)

// relay passes requests from containers on to the stand-ins, which listen on loopback,
// and returns its address. Containers reach this machine through Docker's bridge or,
// where Docker runs in a virtual machine, by a name.
func relay() (string, error) {
	host, at := "host.docker.internal", "127.0.0.1"
	if bridge, err := net.InterfaceByName("docker0"); err == nil {
		if addresses, _ := bridge.Addrs(); len(addresses) > 0 {
			host, _, _ = strings.Cut(addresses[0].String(), "/")
			at = host
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		return "", fmt.Errorf("listening for containers: %w", err)
	}
	go http.Serve(l, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { // until this process ends
		to := os.Getenv(emulated.AddressVariable)
		scope := r.In.Header.Get("Authorization") + r.In.URL.Query().Get("X-Amz-Credential")
		if found := signed.FindStringSubmatch(scope); found != nil {
			to = os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(found[1]))
		}
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", strings.TrimPrefix(
			to,
			"http://",
		), r.In.Host
	}})
	return fmt.Sprintf("http://%s:%d", host, l.Addr().(*net.TCPAddr).Port), nil
}

// baseImage makes sure that Docker has the image in which SAM runs functions. If its registry
// cannot be reached, an image with busybox as its shell is enough: SAM adds its own emulator of Lambda.
func baseImage(ctx context.Context) error {
	const script = `docker image inspect "$0" || docker pull -q "$0" || {
		program=$(command -v busybox) && tar -C / --transform 's|.*|bin/sh|' -ch "$program" | docker import - "$0"; }`
	name := "public.ecr.aws/lambda/provided:al2023-" + architecture()
	if out, err := exec.CommandContext(ctx, "docker", "version").CombinedOutput(); err != nil {
		return fmt.Errorf("asking docker: %s%w", out, err)
	}
	if out, err := exec.CommandContext(ctx, "sh", "-c", script, name).CombinedOutput(); err != nil {
		return fmt.Errorf(
			"install busybox-static, as the registry of %s cannot be reached\n%s%w",
			name,
			out,
			err,
		)
	}
	return nil
}
