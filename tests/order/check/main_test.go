package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/order"
)

const begin = "vkomp-order 1\nthread 1\ndevice 0 test\nqueue 1 0 0 0 7\nbuffer 1 0 64 concurrent\nmemory 1 0 64 7 0\nbind 1 1 0\nsemaphore 1 0 timeline 0\n"

func TestCheckSaysWhatIsWrong(t *testing.T) {
	const barrier = "b 1800:1800:1040:1860:0\n"
	for _, c := range []struct {
		name, between string
		command       command
		want          error
		says          []string
	}{
		{"right", barrier, command{}, nil, []string{"2 fills, 1 barriers", "0 violations"}},
		{"wrong", "", command{}, errViolations, []string{"memory 1 bytes [0, 16)", "1 violations"}},
		{"mutated", barrier, command{mutate: true, oracle: 100}, nil, []string{"barrier removed", "1 of 2 barriers, waits and signals are not needed: 50.00 %"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "log")
			log := begin + "commands 1 0\nf 1 0 16\n" + c.between + "f 1 0 16\nend\nsubmit 1 w c 1 s 1:1:10000\n"
			if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := c.command.check(name, &out); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			for _, says := range c.says {
				if !strings.Contains(out.String(), says) {
					t.Errorf("it does not say %q:\n%s", says, out.String())
				}
			}
		})
	}
}

func TestForeignWorkMayWaitForWhatIsSubmittedLater(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte(begin+"submit 1 w 1:1:10000 c s\nsignal 1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for c, want := range map[command]error{
		{}:              errViolations,
		{foreign: true}: nil,
		{foreign: true, mutate: true, oracle: 100}: nil,
	} {
		var out strings.Builder
		if err := c.check(name, &out); !errors.Is(err, want) {
			t.Errorf("%+v: got %v, want %v:\n%s", c, err, want, out.String())
		}
	}
}

func TestClausesFileIsRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const fill = "commands 1 0\nf 1 0 16\nend\nsubmit 1 w c 1 s 1:1:10000\n"
	const whole = fill + "wait b 1:1\ndestroy buffer 1\ndestroy memory 1\ndestroy semaphore 1\ndestroy device 0\n"
	c := command{clauses: filepath.Join(dir, "clauses")}
	var out strings.Builder
	for _, file := range []struct {
		clauses, log string
		want         error
		says         string
	}{
		{"task 0 0 host in=1\n", whole, nil, "\n0 violations\n"},
		{"task 0 0 in=1\n", whole, errViolations, "undispatched: task 0 0 has no dispatch in the log\n"},
		{"task 0 0 in=1\n", fill, nil, "1 tasks of the clauses have no dispatch: the log ends before its devices are destroyed\n0 violations\n"},
		{"task 0 0 in=1\n", "", order.ErrNoCommands, ""},
		{"", whole, order.ErrClauses, ""},
	} {
		out.Reset()
		write("clauses", file.clauses)
		write("log", begin+file.log)
		if err := c.check(filepath.Join(dir, "log"), &out); !errors.Is(err, file.want) || !strings.Contains(out.String(), file.says) {
			t.Errorf("clauses %q: error %v, want %v, and %q in\n%s", file.clauses, err, file.want, file.says, out.String())
		}
	}
	c.clauses += ".gone"
	if err := c.check(filepath.Join(dir, "log"), &out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
