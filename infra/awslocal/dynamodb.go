package main

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// The version of DynamoDB Local is in pom.xml: the newest that runs on Java 17.
const dynamoName = "dynamodb-local"

//go:embed dynamodb/pom.xml
var pom []byte

//go:embed dynamodb/Loopback.java
var loopback []byte

func installDynamoDB(ctx context.Context, cache string) (string, error) {
	return once(cache, dynamoName, [][]byte{pom, loopback}, func(dir string) error {
		for name, text := range map[string][]byte{"Loopback.java": loopback, "pom.xml": pom} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				return err
			}
		}
		return tool(ctx, dir, "mvn", "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=lib")
	})
}

// startDynamoDB starts DynamoDB Local with its tables in memory.
func startDynamoDB(ctx context.Context, dir string) (*server, error) {
	lib := filepath.Join(dir, "lib")
	return start(ctx, dynamoName, func(port int) *exec.Cmd {
		return exec.Command("java", "-Djava.library.path="+lib, "-cp", filepath.Join(lib, "*"),
			filepath.Join(dir, "Loopback.java"), "-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
	})
}
