package cloud_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"ferry/infra/cloud"
	"ferry/shared/boot/boottest"

	"ferry/shared/api"
)

// root is that of the module.
const root = "../.."

// TestADeployedStack builds the functions once for all that is looked at.
func TestADeployedStack(t *testing.T) {
	t.Parallel()
	if os.Getenv(cloud.AddressVariable) == "" {
		t.Skip("needs an emulator of AWS: go run ./infra/awslocal -- go test ./infra/cloud")
	}
	c := open(t, root)
	for name, test := range map[string]func(*testing.T, *cloud.Cloud){
		"brings a link to its recipients by itself":                links,
		"tells the sender of a file that a mail bounced":           bounce,
		"is swept on its schedule":                                 sweep,
		"without a sender says what is missing and keeps the mail": noSender,
		"works on while its functions are replaced and put back":   upgrade,
		"leaves its data when it is deleted":                       deletion,
		"answers each fixture as its functions' roles allow":       fixtures,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// deployed is a stack that a test looks at.
type deployed struct {
	*testing.T
	*cloud.Stack
	config aws.Config
	ports  *api.Ports
	name   string
}

// deploy makes a stack with these parameters, and with the users and files of
// boottest.
func deploy(t *testing.T, c *cloud.Cloud, parameters map[string]string) *deployed {
	t.Helper()
	name := strings.ToLower("cloud-" + rand.Text()[:8])
	if parameters["SenderAddress"] != "" {
		check(t, c.Verify(t.Context(), parameters["SenderAddress"]))
	}
	s, err := c.Deploy(t.Context(), name, parameters)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	d := &deployed{T: t, Stack: s, config: c.Config, name: name}
	d.knownKey()
	d.ports, err = s.Ports(t.Context())
	check(t, err)
	d.ports.Log = boottest.Log(t)
	boottest.Seed(t, d.ports)
	return d
}

// Name implements testing.TB.
func (d *deployed) Name() string { return d.T.Name() }

// knownKey sets the key of the links that are in events/.
func (d *deployed) knownKey() {
	d.Helper()
	_, err := ssm.NewFromConfig(d.config).PutParameter(d.Context(), &ssm.PutParameterInput{Name: &d.KeyParameter, Value: aws.String(boottest.Key), Overwrite: aws.Bool(true)})
	check(d, err)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
