package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// The version of DynamoDB Local is in pom.xml: the newest that runs on Java 17.
const dynamoName = "dynamodb-local"

// npmPackage carries DynamoDB Local too, for where Maven Central is out of reach.
const npmPackage = "amplify-dynamodb-simulator@2.9.30"

//go:embed dynamodb/pom.xml
var pom []byte

//go:embed dynamodb/Loopback.java
var loopback []byte

func installDynamoDB(ctx context.Context, cache string) (string, error) {
	return once(cache, dynamoName, [][]byte{pom, loopback, []byte(npmPackage)}, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "Loopback.java"), loopback, 0o644); err != nil {
			return err
		}
		mavenErr := fromMaven(ctx, dir)
		if mavenErr == nil || ctx.Err() != nil {
			return mavenErr
		}
		progress("%v; trying the npm package %s", mavenErr, npmPackage)
		if err := fromNPM(ctx, dir); err != nil {
			return errors.Join(mavenErr, err)
		}
		return nil
	})
}

func fromMaven(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), pom, 0o644); err != nil {
		return err
	}
	return tool(ctx, dir, "mvn", "-B", "-q", "-Dstyle.color=never", "dependency:copy-dependencies", "-DoutputDirectory=lib")
}

func fromNPM(ctx context.Context, dir string) error {
	if err := tool(ctx, dir, "npm", "pack", "--silent", npmPackage); err != nil {
		return err
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("npm packed %d files instead of one", len(packed))
	}
	lib := filepath.Join(dir, "lib")
	if err := os.RemoveAll(lib); err != nil {
		return err
	}
	if err := os.Mkdir(lib, 0o755); err != nil {
		return err
	}
	if err := unpackEmulator(packed[0], lib); err != nil {
		return err
	}
	return os.Remove(packed[0])
}

// unpackEmulator puts all jars and native libraries of the package's emulator
// folder side by side in lib, as Maven does.
func unpackEmulator(archive, lib string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(unzipped); ; {
		entry, err := entries.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", archive, err)
		}
		if entry.Typeflag != tar.TypeReg || !strings.HasPrefix(entry.Name, "package/emulator/") {
			continue
		}
		if err := writeFile(filepath.Join(lib, path.Base(entry.Name)), entries); err != nil {
			return err
		}
	}
}

func writeFile(name string, r io.Reader) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, r); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// startDynamoDB starts DynamoDB Local with its tables in memory.
func startDynamoDB(ctx context.Context, dir string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	lib := filepath.Join(dir, "lib")
	return start(ctx, dynamoName, port, nil,
		"java", "-Djava.library.path="+lib, "-cp", filepath.Join(lib, "*"),
		filepath.Join(dir, "Loopback.java"), "-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
}
