package tests

import (
	"context"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp/tests/vktest"
)

// The first program in the README, with its shader and its commands, runs in a module of its own
// beside the repository.
func TestProgramInReadmeRuns(t *testing.T) {
	vktest.Once(t)
	vktest.Long(t)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, shader, commands := fenced(t, string(readme), "go"), fenced(t, string(readme), "glsl"), fenced(t, string(readme), "sh")
	if lines := strings.Count(program, "\n"); lines > 30 {
		t.Errorf("the program has %d lines, more than 30", lines)
	}
	if formatted, err := format.Source([]byte(program)); err != nil || string(formatted) != program {
		t.Errorf("the program is not as gofmt leaves it: %v", err)
	}
	want := wantedOutput(t, commands)

	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	folder := filepath.Join(work, "axpy")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	// The checkout that the commands expect beside the program is this one, by its own path:
	// the go command finds its packages built.
	if !strings.Contains(commands, "=../vkomp") {
		t.Fatalf("the README's commands do not use a checkout beside the program:\n%s", commands)
	}
	commands = strings.ReplaceAll(commands, "=../vkomp", "='"+root+"'")
	for name, text := range map[string]string{"main.go": program, "axpy.comp": shader} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	vktest.GoTool(t)
	// A program that hangs must not outlive the test.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "OMP_TARGET_OFFLOAD=mandatory")
	command.WaitDelay = 10 * time.Second
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, output, stderr.String())
	}
	if lines := strings.Split(strings.TrimSpace(string(output)), "\n"); lines[len(lines)-1] != want {
		t.Errorf("the program printed %q, not %q\n%s", lines[len(lines)-1], want, stderr.String())
	}
}

// fenced returns the only code block in a language.
func fenced(t *testing.T, text, language string) string {
	t.Helper()
	blocks := strings.Split(text, "```"+language+"\n")
	if len(blocks) != 2 {
		t.Fatalf("the README has %d blocks of %s, not one", len(blocks)-1, language)
	}
	block, _, closed := strings.Cut(blocks[1], "```")
	if !closed {
		t.Fatalf("the README's block of %s has no end", language)
	}
	return block
}

// wantedOutput returns the output of go run that the README shows.
func wantedOutput(t *testing.T, commands string) string {
	t.Helper()
	_, comment, found := strings.Cut(commands, "go run .")
	if !found {
		t.Fatal("the README's commands do not run the program")
	}
	_, output, found := strings.Cut(comment, "# ")
	if !found {
		t.Fatal("the README does not say what the program prints")
	}
	return strings.TrimSpace(output)
}
