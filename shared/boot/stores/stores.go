// Package stores opens what a service keeps its data in: the table, the bytes of files and the key
// of links, each where the operator says. Start reading with Open. Lambda functions do not use this
// package: each names its own stores in its main, so that it links no others.
package stores

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"ferry/shared/blob/s3"
	"ferry/shared/boot/lambda"
	"ferry/shared/boot/local"
	"ferry/shared/service"
	"ferry/shared/table/dynamo"
	"ferry/shared/table/sqlite"
)

// Place says where the data is. Whatever has no name of its own is in the folder.
type Place struct {
	Dir                       string // the folder; without one everything needs a name
	Table                     string // of DynamoDB
	FilesBucket, BackupBucket string // of S3
	BackupClass               string // as in service.Settings
	KeyParameter              string // of SSM
	// AWS returns the configuration of AWS. It is called only if something is there.
	AWS func(context.Context) (aws.Config, error)
}

// inFolder reports whether something with this name is in the folder.
func (at Place) inFolder(name string) bool { return name == "" && at.Dir != "" }

// getenv is like os.Getenv, but the place comes first.
func (at Place) getenv(variable string) string {
	name := map[string]string{
		"FERRY_TABLE":         at.Table,
		"FERRY_FILES_BUCKET":  at.FilesBucket,
		"FERRY_BACKUP_BUCKET": at.BackupBucket,
		"FERRY_KEY_PARAMETER": at.KeyParameter,
	}[variable]
	return cmp.Or(name, os.Getenv(variable))
}

// Need is what a command uses besides the table. In AWS nothing else is opened, as the command may
// lack its name, or the permission to use it.
type Need int

// The needs.
const (
	Files Need = iota
	Key
)

// Stores are ports that were opened. Close them after use.
type Stores struct {
	service.Ports
	beside *sqlite.DB // the table in the folder; nil if the table is elsewhere
}

// Open opens the ports at a place.
func Open(ctx context.Context, at Place, o local.Options, needs ...Need) (*Stores, error) {
	p, err := local.NewPorts(o)
	if err != nil {
		return nil, err
	}
	s := &Stores{Ports: p}
	remote, err := s.openFolder(at, local.NewFolder(at.Dir, o), needs)
	if err == nil && len(remote) > 0 {
		err = s.openRemote(ctx, at, remote)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the stores. What was answered is safe even without it.
func (s *Stores) Close() error {
	if s.beside == nil {
		return nil
	}
	return s.beside.Close()
}

// openFolder opens what is in the folder. It returns openers of what else is needed.
func (s *Stores) openFolder(
	at Place,
	folder *local.Folder,
	needs []Need,
) (remote []lambda.Opener, err error) {
	if at.inFolder(at.Table) {
		if s.beside, err = folder.Table(); err != nil {
			return nil, err
		}
		s.Table = s.beside
	} else {
		remote = append(remote, lambda.Table(dynamo.Open))
		s.CountWait = lambda.CountWait
	}
	if at.inFolder(at.FilesBucket + at.BackupBucket) {
		store, err := folder.Disk(s.beside)
		if err != nil {
			return nil, err
		}
		local.UseDisk(&s.Ports, store)
	} else if slices.Contains(needs, Files) {
		remote = append(remote, lambda.Blobs(s3.Open))
	}
	if at.inFolder(at.KeyParameter) {
		s.Key, err = folder.Key()
	} else if slices.Contains(needs, Key) {
		remote = append(remote, lambda.LinkKey)
	}
	return remote, err
}

func (s *Stores) openRemote(ctx context.Context, at Place, remote []lambda.Opener) error {
	cfg, err := at.AWS(ctx)
	if err != nil {
		return err
	}
	set := service.Settings{BackupClass: at.BackupClass}
	cloud := &lambda.Cloud{Config: cfg, Getenv: at.getenv, Settings: set}
	if err := cloud.Open(&s.Ports, remote...); err != nil {
		return err
	}
	return cloud.Begin(ctx)
}
