package emulated

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sys/unix"
)

// The questions of a deployment, which nobody may add to.
const (
	region  = "AWS region, such as eu-west-1: "
	confirm = "Deploy this changeset? [y/N]: "
)

// built is a compiler for make. It takes the functions from one build for this machine, where the emulator runs
// them, as three deployments would each build all of them again.
func built(t *testing.T) (variable string) {
	t.Helper()
	folder := t.TempDir()
	check(t, functions(t.Context(), root, folder))
	script := filepath.Join(folder, "build.sh") // build.sh -o FILE ./functions/NAME
	check(t, os.WriteFile(script, []byte(`cp "`+folder+`/${3##*/}" "$2"`+"\n"), 0o600))
	return "CLOUD=sh " + script
}

// TestAFirstDeployment runs `make deploy` with the real SAM on a terminal, in a copy of
// what it needs. It has the emulator to itself, so that no other stack is in its way.
func TestAFirstDeployment(t *testing.T) {
	o, native := newOperator(t), built(t)
	text, err := os.ReadFile(filepath.Join(o.folder, "template.yaml"))
	check(t, err)
	// The emulator would turn the parameter into a string.
	template := regexp.MustCompile(`MaximumConcurrency: !Ref \w+`).
		ReplaceAllString(string(text), "MaximumConcurrency: 2")
	fails := "\n  Fails: {Type: Custom::Fails, DependsOn: LinkKeyParameter, Properties: " +
		"{ServiceToken: !Sub 'arn:aws:lambda:${AWS::Region}:${AWS::AccountId}:function:none'}}\n\nOutputs:\n"
	o.write("template.yaml", strings.Replace(template, "\nOutputs:\n", fails, 1))

	said, asked, err := o.run("make", native, "deploy")
	if err == nil || !slices.Equal(asked, []string{region, confirm}) {
		t.Fatalf("a deployment that must fail: %v, after the questions %q:\n%s", err, asked, end(said))
	}
	if left := o.left(); len(left) > 0 {
		t.Errorf("a first deployment that failed leaves %q:\n%s", left, end(said))
	}
	// The emulator would delete a protected table too.
	if !regexp.MustCompile(`(?s)DELETE_COMPLETE\s+Custom::LinkKey.*DELETE_COMPLETE\s+AWS::DynamoDB::Table`).
		MatchString(said) {
		t.Errorf("the table was deleted while it was protected:\n%s", end(said))
	}

	o.write("template.yaml", template)
	said, asked, err = o.run("make", native, "deploy")
	if err != nil || !slices.Equal(asked, []string{region, confirm}) {
		t.Fatalf("the second try: %v, after the questions %q:\n%s", err, asked, end(said))
	}
	if left := o.left(); len(left) != 4 || !strings.HasSuffix(left[0], ", protected: true") {
		t.Errorf("a deployment made %q", left)
	}

	first := regexp.MustCompile(`  bin/ferry user add NAME (--stack \S+ --region \S+)\s*$`).FindStringSubmatch(said)
	if first == nil {
		t.Fatalf("the last line makes no user:\n%s", end(said))
	}
	added, asked, err := o.run("bin/ferry", append([]string{"user", "add", "ann"}, strings.Fields(first[1])...)...)
	if err != nil || len(asked) > 0 || !strings.Contains(added, "temporary password: ") {
		t.Errorf("the first user: %v, after the questions %q:\n%s", err, asked, added)
	}

	o.environment = append(o.environment, "AWS_REGION="+o.config.Region)
	sender := regexp.MustCompile(`make deploy STACK=` + o.name + ` SET=SenderAddress=(\S+@\S+)`).
		FindStringSubmatch(said)
	if sender == nil {
		t.Fatalf("no command sets a sender:\n%s", end(said))
	}
	said, asked, err = o.run("make", native, "deploy", "STACK="+o.name, "SET=SenderAddress="+sender[1])
	if err != nil || !slices.Equal(asked, []string{confirm}) {
		t.Fatalf("a deployment with a sender: %v, after the questions %q:\n%s", err, asked, end(said))
	}
	said, asked, err = o.run("sam", "deploy", "--region", o.config.Region)
	if err != nil || len(asked) > 0 || o.parameter("SenderAddress") != sender[1] {
		t.Errorf("a deployment without changes, with the sender %s: %v, after the questions %q:\n%s",
			o.parameter("SenderAddress"), err, asked, end(said))
	}
}

// operator is somebody who deploys a copy of this module to the emulator, and has no
// settings of AWS but credentials.
type operator struct {
	*testing.T
	name        string // of the stack in samconfig.toml
	folder      string
	environment []string
	config      aws.Config
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	address := os.Getenv(AddressVariable)
	if address == "" {
		t.Skip("needs an emulator of AWS: go run ./infra/awslocal -- go test ./infra/stack/emulated")
	}
	if _, err := exec.LookPath("sam"); err != nil {
		t.Skip("SAM is not installed: pip install -r infra/ci/requirements.txt")
	}
	c, err := config.LoadDefaultConfig(t.Context(), config.WithBaseEndpoint(address))
	check(t, err)
	c.ConfigSources = nil // they name other servers for some services
	o := &operator{T: t, name: "ferry-" + strings.ToLower(rand.Text()[:8]), folder: t.TempDir(), config: c}
	for _, folder := range []string{"functions", "infra/deploy", "infra/ferry", "shared"} {
		check(t, os.CopyFS(filepath.Join(o.folder, folder), os.DirFS(filepath.Join(root, folder))))
	}
	check(t, os.MkdirAll(filepath.Join(o.folder, "infra", "stack"), 0o700))
	for _, name := range []string{
		"go.mod", "go.sum", "Makefile", "samconfig.toml", "template.yaml", "infra/stack/functions.mk",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		check(t, err)
		o.write(name, strings.NewReplacer(
			`stack_name = "ferry"`,
			`stack_name = "`+o.name+`"`,
			"STACK ?= ferry",
			"STACK ?= "+o.name,
		).
			Replace(string(text)))
	}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "AWS_") &&
			!strings.HasPrefix(name, "MAKE") &&
			name != "HOME" {
			o.environment = append(o.environment, e)
		}
	}
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED", "AWS_CONFIG_FILE",
		"AWS_SHARED_CREDENTIALS_FILE",
	} {
		o.environment = append(o.environment, name+"="+os.Getenv(name))
	}
	o.environment = append(
		o.environment,
		"AWS_ENDPOINT_URL="+address,
		"HOME="+t.TempDir(),
		"SAM_CLI_TELEMETRY=0",
		"SAM_CLI_POLL_DELAY=3",
	)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		check(t, err)
		o.environment = append(o.environment, name+"="+strings.TrimSpace(string(value)))
	}
	t.Cleanup(func() {
		_, err := cloudformation.NewFromConfig(c).
			DeleteStack(context.Background(), &cloudformation.DeleteStackInput{StackName: &o.name})
		check(t, err)
	})
	return o
}

func (o *operator) write(name, text string) {
	o.Helper()
	check(o, os.WriteFile(filepath.Join(o.folder, name), []byte(text), 0o600))
}

// run runs a program on a terminal, answers what it asks, and returns what it said. A
// question without an answer ends it.
func (o *operator) run(name string, args ...string) (said string, asked []string, err error) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), 30*time.Minute)
	defer cancel()
	ours, theirs := terminal(o.T)
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = o.folder, o.environment
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	check(o, c.Start())
	check(o, theirs.Close())
	var text bytes.Buffer
	for block := make([]byte, 4096); ; {
		n, err := ours.Read(block)
		text.Write(block[:n])
		for question, answer := range map[string]string{region: o.config.Region, confirm: "y"} {
			if bytes.HasSuffix(text.Bytes(), []byte(question)) {
				asked = append(asked, question)
				fmt.Fprintln(ours, answer)
			}
		}
		if err != nil { // nobody has the other side any more
			return text.String(), asked, c.Wait()
		}
	}
}

// end returns the end of what a program said, which tells why it failed.
func end(said string) string {
	return said[max(0, len(said)-4000):]
}

// terminal opens a pseudo-terminal and returns its two sides.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	check(t, err)
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	return ours, theirs
}

// left returns the table, the buckets and the stack that deployments have left.
func (o *operator) left() (all []string) {
	o.Helper()
	tables := dynamodb.NewFromConfig(o.config)
	for pages := dynamodb.NewListTablesPaginator(tables, &dynamodb.ListTablesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(o.Context())
		check(o, err)
		for _, name := range page.TableNames {
			if strings.HasPrefix(name, o.name+"-") {
				d, err := tables.DescribeTable(o.Context(), &dynamodb.DescribeTableInput{TableName: &name})
				check(o, err)
				all = append(all, fmt.Sprintf("%s, protected: %v", name, aws.ToBool(d.Table.DeletionProtectionEnabled)))
			}
		}
	}
	buckets, err := s3.NewFromConfig(o.config).ListBuckets(o.Context(), &s3.ListBucketsInput{})
	check(o, err)
	for _, b := range buckets.Buckets {
		if strings.HasPrefix(*b.Name, o.name+"-") {
			all = append(all, *b.Name)
		}
	}
	stacks, err := cloudformation.NewFromConfig(o.config).
		DescribeStacks(o.Context(), &cloudformation.DescribeStacksInput{})
	check(o, err)
	for _, s := range stacks.Stacks {
		if *s.StackName == o.name {
			all = append(all, fmt.Sprintf("the stack, %s", s.StackStatus))
		}
	}
	return all
}

// parameter returns a parameter of the stack.
func (o *operator) parameter(name string) string {
	o.Helper()
	d, err := cloudformation.NewFromConfig(o.config).
		DescribeStacks(o.Context(), &cloudformation.DescribeStacksInput{StackName: &o.name})
	check(o, err)
	for _, p := range d.Stacks[0].Parameters {
		if *p.ParameterKey == name {
			return *p.ParameterValue
		}
	}
	return ""
}
