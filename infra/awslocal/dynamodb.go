package main

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

//go:embed dynamodb/pom.xml
var pom []byte

//go:embed dynamodb/Loopback.java
var loopback []byte

// dynamoDB is DynamoDB Local with its tables in memory. The version is in pom.xml:
// the newest that runs on Java 17.
func dynamoDB() standIn {
	return standIn{"dynamodb-local", [][]byte{pom, loopback},
		func(ctx context.Context, dir string) error {
			for name, text := range map[string][]byte{"Loopback.java": loopback, "pom.xml": pom} {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
					return err
				}
			}
			return tool(
				ctx,
				dir,
				"mvn",
				"-B",
				"-q",
				"dependency:copy-dependencies",
				"-DoutputDirectory=lib",
			)
		},
		func(ctx context.Context, dir, _ string, port int) *exec.Cmd {
			lib := filepath.Join(dir, "lib")
			return exec.CommandContext(
				ctx,
				"java",
				"-Djava.library.path="+lib,
				"-cp",
				filepath.Join(
					lib,
					"*",
				),
				filepath.Join(dir, "Loopback.java"),
				"-inMemory",
				"-disableTelemetry",
				"-port",
				strconv.Itoa(port),
			)
		},
	}
}
