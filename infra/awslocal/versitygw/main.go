// Command versitygw runs versitygw's S3 server on files and folders. Its own command
// has more backends, whose libraries take as long to compile as all the rest.
//
// Usage: versitygw ADDRESS REGION COPYTHRESHOLD FOLDER, with the credentials in
// ROOT_ACCESS_KEY_ID and ROOT_SECRET_ACCESS_KEY.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"strconv"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatal(err)
	}
}

// run serves until the process is killed. The numbers are those of versitygw's command.
func run(address, region, copyThreshold, folder string) error {
	threshold, err := strconv.ParseInt(copyThreshold, 10, 64)
	if err != nil {
		return err
	}
	sidecar := filepath.Join(folder, "metadata")
	metadata, err := meta.NewSideCar(sidecar)
	if err != nil {
		return err
	}
	store, err := posix.New(filepath.Join(folder, "buckets"), metadata, posix.PosixOpts{
		SideCarDir:          sidecar,
		VersioningDir:       filepath.Join(folder, "versions"),
		Concurrency:         5000,
		CopyObjectThreshold: threshold,
	})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), store, &embedgw.Config{
		RootUserAccess:    os.Getenv("ROOT_ACCESS_KEY_ID"),
		RootUserSecret:    os.Getenv("ROOT_SECRET_ACCESS_KEY"),
		Region:            region,
		Ports:             []string{address},
		Quiet:             true,
		KeepAlive:         true,
		MaxConnections:    250_000,
		MaxRequests:       100_000,
		MultipartMaxParts: 10_000,
	})
}
