package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vkomp/vkomp/ompt/trace"
)

// traceFlags ask for a trace of the run.
type traceFlags struct {
	Trace  string `name:"trace" placeholder:"FILE" help:"Write what ran when, on which queue and worker: .json, for ui.perfetto.dev or chrome://tracing."`
	Report string `name:"report" placeholder:"FILE" help:"Write a page of the same, with the critical path and idle times: .html, opens from disk in a browser."`
}

// collector returns the collector for the run, nil if no file is asked for. A file that cannot be
// written is an error before the run.
func (f *traceFlags) collector() (*trace.Collector, error) {
	for _, file := range []struct{ flag, path, extension string }{{"trace", f.Trace, ".json"}, {"report", f.Report, ".html"}} {
		if file.path == "" {
			continue
		}
		if err := checkOutput(file.flag, file.path, file.extension); err != nil {
			return nil, err
		}
		if environmentSays("OMP_TOOL", "disabled") {
			return nil, fmt.Errorf("-%s %s: OMP_TOOL=%s: tools hear nothing", file.flag, file.path, os.Getenv("OMP_TOOL"))
		}
	}
	if f.Trace == "" && f.Report == "" {
		return nil, nil
	}
	return trace.New(trace.Options{}), nil
}

// write writes the files and prints their names.
func (f *traceFlags) write(stdout io.Writer, title string, traced *trace.Trace) error {
	var errs []error
	for _, file := range []struct {
		what, path string
		write      func(io.Writer) error
	}{
		{"trace", f.Trace, traced.WriteChrome},
		{"report", f.Report, func(w io.Writer) error { return traced.WriteReport(w, title) }},
	} {
		if file.path == "" {
			continue
		}
		err := writeFile(file.path, file.write)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%s written to %s\n", file.what, file.path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
