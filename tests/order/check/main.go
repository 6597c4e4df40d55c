// Command check reads logs of the recording layer and prints every violation of order in them,
// and statistics. With -mutate it then changes the log's synchronization, one change at a time,
// and prints what the checker reports for each. It exits with status 1 if there is a violation,
// or a change on which the checker and the oracle disagree.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/vkomp/vkomp/tests/order"
)

func main() {
	var c command
	flag.StringVar(&c.clauses, "clauses", "", "the clauses `file` of the run")
	flag.IntVar(&c.limit, "limit", 20, "print at most `n` violations of a log")
	flag.BoolVar(&c.foreign, "foreign", false, "the program uses foreign work, which may wait for what is submitted later")
	flag.BoolVar(&c.mutate, "mutate", false, "change the synchronization and see what is caught")
	c.oracle = order.OracleBounded
	flag.Func("oracle", "with -mutate: examine `n` changes by brute force, or all, or as many as take some seconds (bounded)", c.setOracle)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: check [-clauses FILE] [-foreign] [-mutate] LOG...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	status := 0
	for _, name := range flag.Args() {
		if err := c.check(name, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			status = 1
		}
	}
	os.Exit(status)
}

type command struct {
	clauses string
	limit   int
	foreign bool
	mutate  bool
	oracle  int
}

var (
	errViolations = errors.New("order is violated")
	errMissed     = errors.New("a change that loses an order was missed")
	errSpurious   = errors.New("a change that loses no order was reported")
)

func (c *command) setOracle(text string) error {
	switch text {
	case "all":
		c.oracle = math.MaxInt
		return nil
	case "bounded":
		c.oracle = order.OracleBounded
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	c.oracle = int(n)
	return err
}

func (c *command) check(name string, out io.Writer) error {
	log, err := os.Open(name)
	if err != nil {
		return err
	}
	defer log.Close()
	o := order.Options{Limit: c.limit, Foreign: c.foreign}
	if c.clauses != "" {
		f, err := os.Open(c.clauses)
		if err != nil {
			return err
		}
		defer f.Close()
		o.Clauses = f
	}
	if _, err := fmt.Fprintf(out, "%s:\n", name); err != nil {
		return err
	}
	if !c.mutate {
		report, err := order.Check(log, o)
		return errors.Join(report.Print(out), err, violated(report))
	}
	mutations, report, err := order.Mutate(log, order.MutateOptions{Options: o, Oracle: c.oracle})
	if report != nil {
		err = errors.Join(report.Print(out), err)
	}
	if mutations != nil {
		err = errors.Join(err, mutations.Print(out))
		if len(mutations.Missed) > 0 {
			err = errors.Join(err, errMissed)
		}
		if len(mutations.Spurious) > 0 {
			err = errors.Join(err, errSpurious)
		}
	}
	return err
}

func violated(r *order.Report) error {
	if r.Total > 0 {
		return errViolations
	}
	return nil
}
