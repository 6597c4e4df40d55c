package order

import (
	"errors"
	"strings"
	"testing"
)

func TestLogsThatMakeNoSense(t *testing.T) {
	for name, log := range map[string]string{
		"empty":                  "",
		"other version":          "vkomp-order 2\n",
		"no number":              header + "\nthread x\n",
		"unknown line":           header + "\ndevice 0 d\nnonsense 1 0\n",
		"no device":              header + "\nbuffer 1 0 64 exclusive\n",
		"no queue":               header + "\nsubmit 1 w c s\ndevice 0 d\n",
		"no semaphore":           header + "\nwait b 1:1\n",
		"no memory":              header + "\nflush 1 0 64\n",
		"unknown command":        header + "\ndevice 0 d\ncommands 1 0\nz 1\nend\n",
		"unfinished":             header + "\ndevice 0 d\ncommands 1 0\n",
		"no kernel bound":        header + "\ndevice 0 d\ncommands 1 0\nd 0 0 0 1 1 1\nend\n",
		"code not hex":           header + "\ndevice 0 d\nmodule 1 0 zz\n",
		"code not SPIR-V":        header + "\ndevice 0 d\nmodule 1 0 00\n",
		"object destroyed twice": header + "\ndevice 0 d\nbuffer 1 0 64 exclusive\ndestroy buffer 1\ndestroy buffer 1\n",
		"a batch of no part":     header + "\ndevice 0 d\nqueue 1 0 0 0 7\nsubmit 1 7\n",
		"a batch behind a fence": header + "\ndevice 0 d\nqueue 1 0 0 0 7\nfence 1 0 0\nsubmit 1 f 1 w c s\n",
		"queue without flags":    header + "\ndevice 0 d\nqueue 1 0 0 0\n",
		"size above 64 bits":     header + "\ndevice 0 d\nbuffer 1 0 18446744073709551616 exclusive\n",
		"flags above 64 bits":    header + "\ndevice 0 d\nqueue 1 0 0 0 10000000000000007\n",
		"no size of a dispatch":  setting(t, 1).String() + "commands 1 0\np 1\nd 0 0 0 1 1\nend\n",
	} {
		report, err := Check(strings.NewReader(log), Options{})
		if !errors.Is(err, ErrLog) || report == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// noLine is a file without an end that has no line. It counts how often it is read.
type noLine struct{ reads int }

func (n *noLine) Read(b []byte) (int, error) {
	if n.reads++; n.reads > 10 {
		return 0, errors.New("read on and on")
	}
	clear(b)
	return len(b), nil
}

func TestFileThatIsNoLogIsNotReadOn(t *testing.T) {
	in := new(noLine)
	if _, err := Read(in); !errors.Is(err, ErrLog) || in.reads > 1 {
		t.Errorf("%v, %d reads", err, in.reads)
	}
}

func TestErrorNamesTheLine(t *testing.T) {
	_, err := Check(strings.NewReader(header+"\ndevice 0 d\nbuffer 1 0 x exclusive\n"), Options{})
	const want = `line 3, "buffer 1 0 x exclusive": want a decimal number at "x exclusive"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The program may have ended in the middle of a line.
func TestCutOffLastLineIsLeftOut(t *testing.T) {
	r := check(t, on("1", "", fill+toHost, "1")+"wait b 1:1\ninvalid", Options{})
	if r.Total != 0 {
		t.Errorf("%v", r.Violations)
	}
}

func TestLinesLongerThanTheBuffer(t *testing.T) {
	lines := "commands 1 0\nc 1 2" + strings.Repeat(" 0:0:0", 100_000) + "\nend\nsubmit 1 w c 1 s\n"
	r := check(t, lines, Options{})
	if r.Total != 0 || r.Sum().Copies != 1 {
		t.Errorf("%d copies, %v", r.Sum().Copies, r.Violations)
	}
}

func FuzzCheck(f *testing.F) {
	begin := setting(f, 3).String()
	f.Add(on("1", "", fill+everything+kernel, "1") + on("2", " 1:1:10000", copyOut, "1") + "wait b 1:1\n" + flush + read + "destroy memory 1\n")
	f.Add("submit 1 w 1:1:800 c s 5:0:1 | w c s 1:1:1 f 1\nfences m 1\nidle b 1 2\nsignal 4 2\nfailed\ndestroy device 0\n")
	f.Add(on("1", " 4:1:10000", fill, "1") + on("1", "", fill, "2") + "submit 1 f 1\ndestroy semaphore 4\ndestroy commands 101\ndestroy fence 1\nsignal 4 1\n")
	f.Add("submit 1 w 1 0 0 0\nsignal 1\n")
	f.Add("commands 1 0\nb 1:2:3:4:1:1:0:64 1:2:3:4:2\nk 0 1,2,3\n? x\nend\nbuffer 3 0 16 exclusive\nbind 3 1 60\n")
	f.Fuzz(func(t *testing.T, lines string) {
		// No log makes it panic, and errors match a sentinel.
		if _, err := Read(strings.NewReader(begin + lines)); err != nil && !errors.Is(err, ErrLog) {
			t.Error(err)
		}
		for _, foreign := range [...]bool{false, true} {
			o := Options{Clauses: strings.NewReader(lines), Foreign: foreign}
			if _, err := Check(strings.NewReader(begin+lines), o); err != nil && !errors.Is(err, ErrLog) && !errors.Is(err, ErrClauses) && !errors.Is(err, ErrNoCommands) {
				t.Error(err)
			}
		}
	})
}
