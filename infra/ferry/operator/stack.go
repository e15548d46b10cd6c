package operator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"ferry/infra/ferry/cli"
	"ferry/shared/fault"
)

// awsConfig reads the SDK's own configuration: files, and variables such as AWS_PROFILE,
// AWS_REGION and AWS_ENDPOINT_URL. A given region takes precedence.
func awsConfig(ctx context.Context, region string) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	return cfg, fault.Wrap(err, "reading the AWS configuration")
}

// variables returns the variables for a stack's outputs, which say where the data is, and for
// the parameters that commands on its data use.
func variables() (outputs, parameters map[string]string) {
	return map[string]string{
			"TableName":        "FERRY_TABLE",
			"FilesBucketName":  "FERRY_FILES_BUCKET",
			"BackupBucketName": "FERRY_BACKUP_BUCKET",
			"KeyParameterName": "FERRY_KEY_PARAMETER",
		}, map[string]string{
			"Events":             "FERRY_EVENTS",
			"KeepDays":           "FERRY_KEEP_DAYS",
			"BackupDays":         "FERRY_BACKUP_DAYS",
			"BackupStorageClass": "FERRY_BACKUP_STORAGE_CLASS",
		}
}

// FromStack sets a command's flags from the stack that --stack names. A flag or a variable
// overrides a parameter of the stack, but it may not also say where the data is: the table of one
// stack must not be used with the buckets of another.
func FromStack(ctx context.Context, k *kong.Context) error {
	flags := map[string]*kong.Flag{}
	for _, f := range k.Flags() {
		for _, variable := range append(f.Envs, f.Tag.Get("output")) {
			flags[variable] = f
		}
	}
	if flags["FERRY_STACK"] == nil || flags["FERRY_STACK"].Target.IsZero() {
		return nil
	}
	outputs, _ := variables()
	for _, variable := range outputs {
		if f := flags[variable]; !f.Target.IsZero() {
			return cli.Usage(
				"--stack already sets --%s (%s); give one of them",
				f.Name,
				variable,
			)
		}
	}
	values, err := stackValues(
		ctx,
		flags["FERRY_STACK"].Target.String(),
		flags["AWS_REGION"].Target.String(),
	)
	if err != nil {
		return cli.WithCode(cli.ExitSettings, err)
	}
	for variable, value := range values {
		if f := flags[variable]; f != nil && f.Target.IsZero() {
			token := kong.Token{Type: kong.FlagValueToken, Value: value}
			if err := f.Parse(kong.ScanFromTokens(token), f.Target); err != nil {
				return cli.Fail(cli.ExitSettings, "reading the stack's settings: %w", err)
			}
		}
	}
	return nil
}

// stackValues returns a stack's values by the names of the variables.
func stackValues(ctx context.Context, name, region string) (map[string]string, error) {
	cfg, err := awsConfig(ctx, region)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("which region is the stack %s in? Set --region or AWS_REGION",
			name)
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf(
			"there are no AWS credentials; AWS_PROFILE can name a profile that has some: %w", err,
		)
	}
	in := &cloudformation.DescribeStacksInput{StackName: &name}
	found, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, in)
	if err == nil && len(found.Stacks) == 0 ||
		err != nil && strings.HasSuffix(err.Error(), " does not exist") {
		return nil, fmt.Errorf("there is no stack %s in %s", name, cfg.Region)
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the stack %s: %w", name, err)
	}
	return valuesOf(found.Stacks[0])
}

// valuesOf picks these values from CloudFormation's answer.
func valuesOf(s types.Stack) (map[string]string, error) {
	values := map[string]string{}
	outputs, parameters := variables()
	for _, p := range s.Parameters {
		variable, value := parameters[aws.ToString(p.ParameterKey)], aws.ToString(p.ParameterValue)
		values[variable] = cmp.Or(map[string]string{"on": "true", "off": "false"}[value], value)
	}
	for _, o := range s.Outputs {
		name, value := aws.ToString(o.OutputKey), aws.ToString(o.OutputValue)
		values[name] = value // for BaseUrl: a server beside the stack has an address of its own
		values[outputs[name]] = value
	}
	delete(values, "") // what has no variable
	for output, variable := range outputs {
		if values[variable] == "" {
			return nil, fmt.Errorf(
				"the stack %s is in state %s and has no output %s: is it Ferry's, and deployed?",
				aws.ToString(s.StackName),
				s.StackStatus,
				output,
			)
		}
	}
	return values, nil
}
