//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The first interrupt ends nothing here, because what the process does is to read a file.
func TestSecondInterruptEndsTheProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command("vkomp-demo", "cost", pipe)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	// This waits until the process has opened the pipe.
	log, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	// When the first one has been noticed cannot be seen from outside, so more follow it.
	for range 3000 {
		_ = process.Process.Signal(os.Interrupt)
		select {
		case <-ended:
			if status, ok := process.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != os.Interrupt {
				t.Errorf("the process has ended with %v, want %v", process.ProcessState, os.Interrupt)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the process goes on")
	_ = process.Process.Kill()
	<-ended
}
