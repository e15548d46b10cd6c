// Package stores opens what a service keeps its data in: the table, the bytes of files and the key
// of links, each where the operator says. Start reading with Open. Lambda functions do not use this
// package: each names its own stores in its main, so that it links no others.
package stores

import (
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
		"FERRY_TABLE": at.Table, "FERRY_FILES_BUCKET": at.FilesBucket,
		"FERRY_BACKUP_BUCKET": at.BackupBucket, "FERRY_KEY_PARAMETER": at.KeyParameter,
	}[variable]
	if name != "" {
		return name
	}
	return os.Getenv(variable)
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
	remote []lambda.Opener
}

// Open opens the ports at a place.
func Open(ctx context.Context, at Place, o local.Options, needs ...Need) (*Stores, error) {
	p, err := local.NewPorts(o)
	if err != nil {
		return nil, err
	}
	s, folder := &Stores{Ports: p}, local.NewFolder(at.Dir, o)
	err = s.openTable(at, folder)
	if err == nil {
		err = s.openFiles(at, folder, needs)
	}
	if err == nil {
		err = s.openKey(at, folder, needs)
	}
	if err == nil {
		err = s.openRemote(ctx, at)
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

func (s *Stores) openTable(at Place, folder *local.Folder) (err error) {
	if at.inFolder(at.Table) {
		s.beside, err = folder.Table()
		s.Table = s.beside
		return err
	}
	s.remote = append(s.remote, lambda.Table(dynamo.Open))
	s.CountWait = lambda.CountWait
	return nil
}

func (s *Stores) openFiles(at Place, folder *local.Folder, needs []Need) error {
	if at.inFolder(at.FilesBucket + at.BackupBucket) {
		store, err := folder.Disk(s.beside)
		if err == nil {
			local.UseDisk(&s.Ports, store)
		}
		return err
	}
	if slices.Contains(needs, Files) {
		s.remote = append(s.remote, lambda.Blobs(s3.Open))
	}
	return nil
}

func (s *Stores) openKey(at Place, folder *local.Folder, needs []Need) (err error) {
	if at.inFolder(at.KeyParameter) {
		s.Key, err = folder.Key()
		return err
	}
	if slices.Contains(needs, Key) {
		s.remote = append(s.remote, lambda.LinkKey)
	}
	return nil
}

// openRemote opens what is in AWS.
func (s *Stores) openRemote(ctx context.Context, at Place) error {
	if len(s.remote) == 0 {
		return nil
	}
	cfg, err := at.AWS(ctx)
	if err != nil {
		return err
	}
	set := service.Settings{BackupClass: at.BackupClass}
	cloud := &lambda.Cloud{Config: cfg, Getenv: at.getenv, Settings: set}
	if err := cloud.Open(&s.Ports, s.remote...); err != nil {
		return err
	}
	return cloud.Begin(ctx)
}
