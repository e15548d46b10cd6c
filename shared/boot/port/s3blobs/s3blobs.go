// Package s3blobs opens the port Blobs on S3.
package s3blobs

import (
	"errors"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"ferry/shared/blob/s3"

	"ferry/shared/boot/lambda"

	"ferry/shared/api"
)

// Open opens the buckets that FERRY_FILES_BUCKET and FERRY_BACKUP_BUCKET name.
func Open(c *lambda.Cloud, p *api.Ports) error {
	files, err1 := c.Name("FERRY_FILES_BUCKET")
	backup, err2 := c.Name("FERRY_BACKUP_BUCKET")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	client := awss3.NewFromConfig(c.Config, func(o *awss3.Options) {
		if address := c.Endpoint("S3"); address != nil {
			o.BaseEndpoint = address
			o.UsePathStyle = true // stand-ins have no host per bucket
		}
	})
	store := s3.New(client, s3.Buckets{Files: files, Backup: backup})
	p.Blobs, p.Parts = store, store
	return nil
}
