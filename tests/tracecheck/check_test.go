package tracecheck

import (
	"strings"
	"testing"
)

// named holds the names of process 1 and its threads 1 and 2.
const named = `{"name":"process_name","ph":"M","ts":0,"pid":1,"args":{"name":"host"}},
	{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"worker 1"}},
	{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":2,"args":{"name":"worker 2"}}`

// someSlices has two nested slices on thread 1 and one slice on thread 2.
const someSlices = named + `,
	{"name":"a","ph":"X","ts":1,"dur":9,"pid":1,"tid":1},
	{"name":"b","ph":"X","ts":2.5,"dur":7.5,"pid":1,"tid":1},
	{"name":"c","ph":"X","ts":20,"dur":1,"pid":1,"tid":2}`

func trace(events string) []byte {
	return []byte(`{"displayTimeUnit":"ms","traceEvents":[` + events + `]}`)
}

func TestGoodTracesPass(t *testing.T) {
	counts, err := Check(trace(someSlices + `,
		{"name":"z","ph":"X","ts":30,"dur":0,"pid":1,"tid":2},
		{"name":"d","cat":"x","ph":"s","id":"1","ts":9.999,"pid":1,"tid":1},
		{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":20,"pid":1,"tid":2},
		{"name":"d","cat":"x","ph":"s","id":"2","ts":1,"pid":1,"tid":1},
		{"name":"d","cat":"x","ph":"f","bp":"e","id":"2","ts":30,"pid":1,"tid":2},
		{"name":"r","cat":"region","ph":"b","id":"1","ts":1,"pid":1},
		{"name":"r","cat":"region","ph":"e","id":"1","ts":2,"pid":1},
		{"name":"e","ph":"B","ts":1,"pid":1,"tid":1},
		{"ph":"E","ts":2,"pid":1,"tid":1},
		{"name":"memory","ph":"C","ts":1,"pid":1,"args":{"bytes":12}},
		{"name":"load","ph":"i","s":"p","ts":1,"pid":1}`))
	if err != nil {
		t.Error(err)
	}
	if counts.Phases["X"] != 4 || counts.Names["a"] != 1 || counts.Counters["memory"] != 12 || len(counts.Threads) != 2 {
		t.Errorf("counts %+v", counts)
	}
}

func TestBadTracesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"no phase", `{"name":"a"}`, "no ph"},
		{"unknown phase", `{"name":"a","ph":"Q","ts":1,"pid":1}`, `unknown ph "Q"`},
		{"unknown field", `{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"durr":2}`, "durr"},
		{"time of text", `{"name":"a","ph":"X","ts":"1","dur":1,"pid":1,"tid":1}`, "ts"},
		{"slice without a duration", `{"name":"a","ph":"X","ts":1,"pid":1,"tid":1}`, "no good dur"},
		{"slice without a thread", `{"name":"a","ph":"X","ts":1,"dur":1,"pid":1}`, "no good tid"},
		{"slice without a process", `{"name":"a","ph":"X","ts":1,"dur":1,"tid":1}`, "no good pid"},
		{"slice without a name", `{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1}`, "no good name"},
		{"slice without a time", `{"name":"a","ph":"X","dur":1,"pid":1,"tid":1}`, "no good ts"},
		{"duration below 0", named + `,{"name":"a","ph":"X","ts":1,"dur":-1,"pid":1,"tid":1}`, `"a" lasts -1`},
		{"thread without a name", `{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}`, "no name"},
		{"thread with two names", named + `,{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"x"}}`, "two names"},
		{"process with two names", named + `,{"name":"process_name","ph":"M","ts":0,"pid":1,"args":{"name":"x"}}`, "two names"},
		{"name that is no text", `{"name":"process_name","ph":"M","ts":0,"pid":1,"args":{"name":1}}`, "no args.name of text"},
		{"unknown metadata", `{"name":"process_colour","ph":"M","ts":0,"pid":1,"args":{"name":"x"}}`, "unknown metadata"},
		{"order that is no number", `{"name":"thread_sort_index","ph":"M","ts":0,"pid":1,"args":{"sort_index":"x"}}`, "sort_index"},
		{"slices that overlap", someSlices + `,{"name":"x","ph":"X","ts":5,"dur":5.001,"pid":1,"tid":1}`, `"x", 5000 to 10001 ns, begins in "b"`},
		{"begin without an end", named + `,{"name":"a","ph":"B","ts":1,"pid":1,"tid":1}`, "does not end"},
		{"end without a begin", named + `,{"name":"a","ph":"E","ts":1,"pid":1,"tid":1}`, "without a B"},
		{"end on another thread", named + `,{"name":"a","ph":"B","ts":1,"pid":1,"tid":1},{"ph":"E","ts":1,"pid":1,"tid":2}`, "without a B"},
		{"end of another", named + `,{"name":"a","ph":"B","ts":1,"pid":1,"tid":1},{"name":"b","ph":"E","ts":1,"pid":1,"tid":1}`, `E of "b" ends "a"`},
		{"async begin without an end", `{"name":"r","cat":"x","ph":"b","id":"1","ts":1,"pid":1}`, "does not end"},
		{"async end without a begin", `{"name":"r","cat":"x","ph":"e","id":"1","ts":1,"pid":1}`, "without a b"},
		{"async without an id", `{"name":"r","cat":"x","ph":"b","ts":1,"pid":1}`, "no good id"},
		{"async without a category", `{"name":"r","id":"1","ph":"b","ts":1,"pid":1}`, "no good cat"},
		{"flow without an end", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":1,"pid":1,"tid":1}`, "1 begins and 0 ends"},
		{"flow without a begin", someSlices + `,{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":1,"pid":1,"tid":1}`, "0 begins and 1 ends"},
		{"flow that begins after its slice", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":10,"pid":1,"tid":1},{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":20,"pid":1,"tid":2}`, "its s at 10 µs is in no slice"},
		{"flow that ends before its slice", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":1,"pid":1,"tid":1},{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":19.999,"pid":1,"tid":2}`, "its f at 19.999 µs is in no slice"},
		{"flow to another thread's slice", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":1,"pid":1,"tid":1},{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":5,"pid":1,"tid":2}`, "is in no slice"},
		{"flow back in time", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":20,"pid":1,"tid":2},{"name":"d","cat":"x","ph":"f","bp":"e","id":"1","ts":5,"pid":1,"tid":1}`, "ends before it begins"},
		{"flow to the next slice", someSlices + `,{"name":"d","cat":"x","ph":"s","id":"1","ts":1,"pid":1,"tid":1},{"name":"d","cat":"x","ph":"f","id":"1","ts":20,"pid":1,"tid":2}`, "without bp e"},
		{"counter of text", `{"name":"m","ph":"C","ts":1,"pid":1,"args":{"bytes":"12"}}`, "no number"},
		{"counter of nothing", `{"name":"m","ph":"C","ts":1,"pid":1,"args":{}}`, "no good args"},
		{"instant without a scope", `{"name":"m","ph":"i","ts":1,"pid":1}`, "no good s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Check(trace(c.events)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
	for _, file := range []string{``, `{}`, `[]`, `{"traceEvents":[{]}`, `{"traceEvents":[],"displayTimeUnit":"s"}`} {
		if _, err := Check([]byte(file)); err == nil {
			t.Errorf("%q passes", file)
		}
	}
}
