package order

import (
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	everything = "b 1800:1800:1040:1860:0\n"
	toHost     = "b 1800:4000:1040:6000:0\n"
)

// check checks lines that follow the setting of three queues.
func check(t *testing.T, lines string, o Options) *Report {
	t.Helper()
	r, err := Check(strings.NewReader(setting(t, 3).String()+lines), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	return r
}

// on returns a submission of commands to a queue that signals the queue's timeline. They have a command buffer to
// themselves, whose number is that of the queue, 0, and the value.
func on(queue, waits, commands, value string) string {
	buffer := queue + "0" + value
	return "commands " + buffer + " 0\n" + commands + "end\nsubmit " + queue + " w" + waits + " c " + buffer + " s " + queue + ":" + value + ":10000\n"
}

const (
	fill     = "f 1 0 16\n"
	fillNext = "f 1 16 16\n"
	copyOut  = "c 1 2 0:0:16\n"
	kernel   = "p 1\nr 0 0:1:0:16 1:2:0:16\nd 0 0 0 1 1 1\n" // reads 1, reads and writes 2
	flush    = "flush 1 0 16\n"
	read     = "invalidate 1 0 16\n"
	// twice imports bytes of the host through two memories.
	twice = "memory 3 0 4096 7 7000\nbuffer 3 0 4096 concurrent\nbind 3 3 0\nmemory 4 0 4096 7 7000\nbuffer 4 0 4096 concurrent\nbind 4 4 0\n"
)

// other is another device with a queue.
const other = "device 1 other\nqueue 9 1 0 0 7\n"

// skips binds the pipeline that skipping makes.
const skips = "p 2\n"

// skipping returns lines that make a pipeline of a kernel that begins with the elements of its two
// buffers whose numbers are the words 4 and 5 of its push constants. It writes to the second.
func skipping(t *testing.T) string {
	t.Helper()
	code, err := os.ReadFile("../testdata/affine.spv")
	if err != nil {
		t.Fatal(err)
	}
	return "module 2 0 " + hex.EncodeToString(code) + "\npipeline 2 0 2 main\n"
}

func TestOrders(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		want        []Kind
	}{
		{"nothing", "", nil},
		{"write, write", on("1", "", fill+fill, "1"), []Kind{Unordered}},
		{"write, barrier, write", on("1", "", fill+everything+fill, "1"), nil},
		{"writes of other bytes", on("1", "", fill+fillNext, "1"), nil},
		{"writes of other memory", on("1", "", fill+"f 2 0 16\n", "1"), nil},
		{"writes that share a byte", on("1", "", fill+"f 1 15 4\n", "1"), []Kind{Unordered}},
		{"reads", on("1", "", kernel+"c 1 2 0:32:16\n", "1"), nil},
		{"write, read", on("1", "", fill+kernel, "1"), []Kind{Unordered}},
		{"write, barrier, read", on("1", "", fill+everything+kernel, "1"), nil},
		{"read, write", on("1", "", copyOut+fill, "1"), []Kind{Unordered}},
		{"read, barrier of execution, write", on("1", "", copyOut+"b 1000:1000:0:0:0\n"+fill, "1"), nil},
		{"write, barrier of execution, write", on("1", "", fill+"b 1000:1000:0:0:0\n"+fill, "1"), []Kind{Unordered}},
		{"write, barrier of execution, read", on("1", "", fill+"b 1000:800:0:0:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier from another stage", on("1", "", fill+"b 800:1800:1040:1860:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier to another stage", on("1", "", fill+"b 1800:1000:1040:1860:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier from another access", on("1", "", fill+"b 1800:1800:40:1860:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier to another access", on("1", "", fill+"b 1800:1800:1040:40:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier to writes before a write", on("1", "", fill+"b 1800:1800:1040:860:0\n"+fill, "1"), []Kind{Unordered}},
		{"barrier of all commands and memory", on("1", "", fill+"b 10000:10000:10000:18000:0\n"+kernel, "1"), nil},
		{"barrier of nothing", on("1", "", fill+"b 1:2000:0:0:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier from COPY after a fill", on("1", "", fill+"b 100000000:800:1000:60:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier from CLEAR after a fill", on("1", "", fill+"b 800000000:800:1000:60:0\n"+kernel, "1"), nil},
		{"chain of barriers", on("1", "", fill+"b 1000:800:1000:20:0\n"+"b 800:1000:0:1800:0\n"+copyOut, "1"), nil},
		{"chain that is broken", on("1", "", fill+"b 1000:1000:1000:1000:0\n"+"b 800:800:0:60:0\n"+kernel, "1"), []Kind{Unordered}},
		{"barriers of one call are no chain", on("1", "", fill+"b 1000:800:1000:20:0 800:1000:0:1800:0\n"+copyOut, "1"), []Kind{Unordered}},
		{"barrier of the buffer", on("1", "", fill+"b 1800:1800:1040:1860:1:1:0:16\n"+kernel, "1"), nil},
		{"barrier of part of the buffer", on("1", "", fill+"b 1800:1800:1040:1860:1:1:0:8\n"+kernel, "1"), []Kind{Unordered}},
		{"barriers of both parts of the buffer", on("1", "", fill+"b 1800:1800:1040:1860:1:1:0:8 1800:1800:1040:1860:1:1:8:8\n"+kernel, "1"), nil},
		{"barrier of another buffer", on("1", "", fill+"b 1800:1800:1040:1860:1:2:0:64\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier of an image", on("1", "", fill+"b 1800:1800:1040:1860:2\n"+kernel, "1"), []Kind{Unordered}},
		{"barrier of an image orders execution", on("1", "", copyOut+"b 1800:1800:1040:1860:2\n"+fill, "1"), nil},
		{"indirect dispatch", on("1", "", "f 2 0 16\nb 1000:2:1000:1:0\np 1\nr 0 0:1:0:16 1:1:32:16\ni 2 0\n", "1"), nil},
		{"indirect dispatch, without DRAW_INDIRECT", on("1", "", "f 2 0 16\n"+everything+"p 1\nr 0 0:1:0:16 1:1:32:16\ni 2 0\n", "1"), []Kind{Unordered}},
		{"write before indirect dispatch reads", on("1", "", "p 1\nr 0 0:1:0:16 1:1:32:16\ni 2 0\nb 1000:1000:0:0:0\nf 2 0 16\n", "1"), []Kind{Unordered}},
		{"stages before the source are in its scope", on("1", "", "p 1\nr 0 0:1:0:16 1:1:32:16\ni 2 0\nb 800:1000:0:0:0\nf 2 0 16\n", "1"), nil},
		{"barrier to the top of the pipe", on("1", "", copyOut+"b 1000:1:0:0:0\n"+fill, "1"), nil},
		{"barrier from the bottom of the pipe", on("1", "", copyOut+"b 2000:1000:0:0:0\n"+fill, "1"), nil},
		{"wait at the top of the pipe", on("1", "", fill, "1") + on("2", " 1:1:1", fill, "1"), nil},
		{"read and write of one dispatch", on("1", "", "p 1\nr 0 0:1:0:16 1:1:0:16\nd 0 0 0 1 1 1\n", "1"), nil},

		{"copy to bytes beside", on("1", "", "c 1 1 0:16:16\n", "1"), nil},
		{"copy to bytes that it reads", on("1", "", "c 1 1 0:8:16\n", "1"), []Kind{Unordered}},
		{"copy to bytes that another region reads", on("1", "", "c 1 1 0:16:8 24:32:8 20:48:8\n", "1"), []Kind{Unordered}},
		{"copy of regions that read the same bytes", on("1", "", "c 1 2 0:16:8 0:32:8 4:48:8\n", "1"), nil},
		{"copy of regions that write the same bytes", on("1", "", "c 1 2 0:0:16 32:8:16\n", "1"), []Kind{Unordered}},
		{"copy to bytes that it reads as another buffer's", twice + on("1", "", "c 3 4 0:8:16\n", "1"), []Kind{Unordered}},
		{"copy between memories", on("1", "", "c 1 2 0:8:16\n", "1"), nil},

		{"batches of a queue", on("1", "", fill, "1") + on("1", "", fill, "2"), []Kind{Unordered}},
		{"barrier in a later batch", on("1", "", fill, "1") + on("1", "", everything+fill, "2"), nil},
		{"queues", on("1", "", fill, "1") + on("2", "", fill, "1"), []Kind{Unordered}},
		{"queues, with a wait", on("1", "", fill, "1") + on("2", " 1:1:10000", fill, "1"), nil},
		{"queues, with a wait for the one before", on("1", "", "", "1") + on("1", "", fill, "2") + on("2", " 1:1:10000", fill, "1"), []Kind{Unordered}},
		{"wait of another stage", on("1", "", fill, "1") + on("2", " 1:1:800", fill, "1"), []Kind{Unordered}},
		{"wait and barrier from its stage", on("1", "", fill, "1") + on("2", " 1:1:800", "b 800:1000:0:1800:0\n"+fill, "1"), nil},
		{"wait holds for later batches", on("1", "", fill, "1") + on("2", " 1:1:10000", "", "1") + on("2", "", fill, "2"), nil},
		{"signal holds for earlier batches", on("1", "", fill, "1") + on("1", "", "", "2") + on("2", " 1:2:10000", fill, "1"), nil},
		{"wait across three queues", on("1", "", fill, "1") + on("2", " 1:1:10000", "", "1") + on("3", " 2:1:10000", fill, "1"), nil},
		{"wait across three queues, other stages", on("1", "", fill, "1") + on("2", " 1:1:800", "", "1") + "commands 3 0\n" + fill + "end\nsubmit 3 w 2:1:10000 c 3 s 3:1:10000\n", nil},
		{"signal of another stage", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 s 1:1:800\n" + on("2", " 1:1:10000", fill, "1"), []Kind{Unordered}},
		{"binary semaphore", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 s 5:0:10000\n" + on("2", " 5:0:10000", fill, "1"), nil},
		{"binary semaphore waited for twice", "submit 1 w c s 5:0:10000\nsubmit 2 w 5:0:10000 c s\nsubmit 3 w 5:0:10000 c s\n", []Kind{WaitBeforeSignal, Hang}},
		{"binary semaphore signalled twice", "submit 1 w c s 5:0:10000\nsubmit 2 w c s 5:0:10000\n", []Kind{BadSignal}},
		{"batches of one call", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 s 1:1:10000 | w 1:1:10000 c 1 s\n", nil},
		{"command buffer submitted twice", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 1 s\n", []Kind{Unordered}},

		{"wait before signal", "submit 2 w 1:1:10000 c s\nsubmit 1 w c s 1:1:10000\n", []Kind{WaitBeforeSignal}},
		{"hang", "submit 2 w 1:1:10000 c s\n", []Kind{WaitBeforeSignal, Hang}},
		{"hang behind a smaller value", "submit 1 w c s 1:1:10000\nsubmit 2 w 1:2:10000 c s\n", []Kind{WaitBeforeSignal, Hang}},
		{"hang of the host", "wait b 1:1\n", []Kind{Hang}},
		{"value that does not grow", "submit 1 w c s 1:2:10000\nsubmit 1 w c s 1:2:10000\n", []Kind{BadSignal}},
		{"timeline signalled by two queues", on("1", "", "", "1") + "submit 2 w c s 1:2:10000\n", []Kind{BadSignal}},
		{"timeline signalled by two queues, with a wait for another batch", "submit 1 w c s 4:1:10000\nsubmit 1 w c s 1:1:10000\nsubmit 2 w 4:1:10000 c s 1:2:10000\n", []Kind{BadSignal}},
		{"timeline signalled by two queues, with a wait", on("1", "", "", "1") + "submit 2 w 1:1:10000 c s 1:2:10000\n", nil},
		{"timeline signalled by two queues, with a wait of a stage", on("1", "", "", "1") + "submit 2 w 1:1:800 c s 1:2:800\n", nil},
		{"timeline signalled by two queues, with a wait of other stages", on("1", "", "", "1") + "submit 2 w 1:1:800 c s 1:2:1000\n", []Kind{BadSignal}},
		{"timeline signalled by two queues, with a wait in an earlier batch", on("1", "", "", "1") + "submit 2 w 1:1:10000 c s\nsubmit 2 w c s 1:2:10000\n", nil},
		{"timeline signalled by two queues, with a wait for a later batch", on("1", "", "", "1") + "submit 1 w c s 4:1:10000\nsubmit 2 w 4:1:10000 c s 1:2:10000\n", nil},
		{"timeline signalled by two queues, with a wait for the same batch", "submit 1 w c s 1:1:10000 4:1:10000\nsubmit 2 w 4:1:10000 c s 1:2:10000\n", nil},
		{"timeline signalled by two queues, with a wait of the host", on("1", "", "", "1") + "wait b 1:1\nsubmit 2 w c s 1:2:10000\n", nil},
		{"timeline signalled by two queues, and again by the first", on("1", "", "", "1") + "submit 2 w 1:1:10000 c s 1:2:10000\nsubmit 1 w c s 1:3:10000\n", []Kind{BadSignal}},
		{"timeline signalled by a queue and the host", on("1", "", "", "1") + "signal 1 2\n", []Kind{BadSignal}},
		{"timeline signalled by a queue and, after a wait, the host", on("1", "", "", "1") + "idle b 1\nsignal 1 2\n", nil},
		{"timeline signalled by the host and a queue", "signal 4 1\nsubmit 1 w c s 4:2:10000\n", nil},
		{"wait for a value below the one that the host has seen", on("1", "", fill, "1") + "submit 1 w c s 1:2:800\ncount 1 2\n" + on("2", " 1:1:10000", fill, "1"), nil},
		{"wait of the host for a value below the one that it has seen", on("1", "", kernel, "1") + "submit 1 w c s 1:2:1000\ncount 1 2\nwait m 1:1\n" + flush, nil},
		{"submission that failed", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 s 1:1:10000\nfailed\n" + on("1", "", fill, "1"), nil},

		{"host write before", flush + on("1", "", kernel, "1"), nil},
		{"host write after the submission", on("1", "", kernel, "1") + flush, []Kind{Unordered}},
		{"host write after a wait", on("1", "", kernel, "1") + "wait b 1:1\n" + flush, nil},
		{"host write after a counter", on("1", "", kernel, "1") + "count 1 1\n" + flush, nil},
		{"host write after another wait", on("1", "", kernel, "1") + on("2", "", "", "1") + "wait b 2:1\n" + flush, []Kind{Unordered}},
		{"host write after a wait that gave up", on("1", "", kernel, "1") + "wait t\n" + flush, []Kind{Unordered}},
		{"host write over a write", on("1", "", fill, "1") + "wait b 1:1\n" + flush, []Kind{Unordered}},
		{"host write over a write, barrier", on("1", "", fill+toHost, "1") + "wait b 1:1\n" + flush, nil},
		{"host read", on("1", "", fill+toHost, "1") + "wait b 1:1\n" + read, nil},
		{"host read without a wait", on("1", "", fill+toHost, "1") + read, []Kind{Unordered}},
		{"host read without a barrier", on("1", "", fill, "1") + "wait b 1:1\n" + read, []Kind{Unordered}},
		{"host read, barrier to HOST_WRITE", on("1", "", fill+"b 1000:4000:1000:4000:0\n", "1") + "wait b 1:1\n" + read, []Kind{Unordered}},
		{"host read, barrier before the write", on("1", "", toHost+fill, "1") + "wait b 1:1\n" + read, []Kind{Unordered}},
		{"host read, barrier in a later batch", on("1", "", fill, "1") + on("1", "", toHost, "2") + "wait b 1:2\n" + read, nil},
		{"host read, barrier not waited for", on("1", "", fill, "1") + on("1", "", toHost, "2") + "wait b 1:1\n" + read, []Kind{Unordered}},
		{"host read, barrier on another queue", on("1", "", fill, "1") + on("2", " 1:1:10000", toHost, "1") + "wait b 2:1\n" + read, nil},
		{"host read through another queue's signal", on("1", "", fill+toHost, "1") + on("2", " 1:1:10000", "", "1") + "wait b 2:1\n" + read, nil},
		{"host read behind a fence", "commands 1 0\n" + fill + toHost + "end\nsubmit 1 w c 1 s f 1\nfences b 1\n" + read, nil},
		{"host read behind a signal of another stage", "commands 1 0\n" + fill + toHost + "end\nsubmit 1 w c 1 s 1:1:800\nwait b 1:1\n" + read, []Kind{Unordered}},
		{"host read behind a signal of another stage, barrier of the buffer", "commands 1 0\n" + fill + "b 1000:4000:1000:2000:1:1:0:16\nend\nsubmit 1 w c 1 s 1:1:800\nwait b 1:1\n" + read, []Kind{Unordered}},
		{"host read behind an idle queue", on("1", "", fill+toHost, "1") + "idle b 1\n" + read, nil},
		{"host read behind another idle queue", on("1", "", fill+toHost, "1") + "idle b 2\n" + read, []Kind{Unordered}},
		{"host read of the buffer that the barrier names", on("1", "", fill+"b 1000:4000:1000:2000:1:1:0:16\n", "1") + "wait b 1:1\n" + read, nil},
		{"host read of what the host wrote, barrier to HOST_WRITE", on("1", "", fill+"b 1000:4000:1000:4000:0\n", "1") + "wait b 1:1\n" + flush + read, nil},
		{"host read of some of what the host wrote, barrier to HOST_WRITE", on("1", "", fill+"b 1000:4000:1000:4000:0\n", "1") + "wait b 1:1\nflush 1 0 8\n" + read, []Kind{Unordered}},
		{"host reads", on("1", "", kernel, "1") + read, nil},
		{"device after the host waited", on("1", "", fill, "1") + "wait b 1:1\n" + on("2", "", fill, "1"), nil},
		{"device after the host waited too little", on("1", "", fill, "1") + on("1", "", fill, "2") + "wait b 1:1\n" + on("2", "", fill, "1"), []Kind{Unordered, Unordered}},
		{"signal by the host orders execution", on("1", "", kernel, "1") + "wait b 1:1\nsignal 4 1\n" + on("2", " 4:1:10000", fill, "1"), nil},

		{"memory freed in use", on("1", "", fill, "1") + "destroy memory 1\n", []Kind{Leftover}},
		{"memory freed after a wait", on("1", "", fill, "1") + "wait b 1:1\ndestroy memory 1\n", nil},
		{"memory recycled behind a wait", on("1", "", fill, "1") + "buffer 3 0 16 concurrent\nbind 3 1 0\n" + on("2", " 1:1:10000", "f 3 0 16\n", "1"), nil},
		{"memory recycled", on("1", "", fill, "1") + "buffer 3 0 16 concurrent\nbind 3 1 0\n" + on("2", "", "f 3 0 16\n", "1"), []Kind{Unordered}},
		{"buffer destroyed in use", on("1", "", fill, "1") + on("2", "", "", "1") + "wait b 2:1\ndestroy buffer 1\n", []Kind{Leftover}},
		{"buffer destroyed after a wait", on("1", "", fill, "1") + "wait b 1:1\ndestroy buffer 1\n", nil},
		{"buffer destroyed in use by one of two queues", on("1", "", copyOut, "1") + on("2", "", "c 1 2 0:32:16\n", "1") + "wait b 1:1\ndestroy buffer 1\n", []Kind{Leftover}},
		{"pipeline destroyed in use", on("1", "", kernel, "1") + "destroy pipeline 1\n", []Kind{Leftover}},
		{"pipeline destroyed after a wait", on("1", "", kernel, "1") + "wait b 1:1\ndestroy pipeline 1\n", nil},
		{"destroyed pipeline", "commands 1 0\n" + kernel + "end\ndestroy pipeline 1\nsubmit 1 w c 1 s\n", []Kind{Unbound}},
		{"command buffer freed in use", on("1", "", fill, "1") + "destroy commands 101\n", []Kind{Leftover}},
		{"command buffer freed after a wait", on("1", "", fill, "1") + "wait b 1:1\ndestroy commands 101\n", nil},
		{"command buffer recorded again in use", on("1", "", fill, "1") + "commands 101 0\nend\n", []Kind{Leftover}},
		{"command buffer recorded again after a wait", on("1", "", fill, "1") + "count 1 1\ncommands 101 0\nend\n", nil},
		{"command buffer recorded again after a wait for an earlier batch", on("1", "", "", "1") + on("1", "", fill, "2") + "count 1 1\ncommands 102 0\nend\n", []Kind{Leftover}},
		{"command buffer recorded again after the first of its submissions", on("1", "", everything+fill, "1") + "submit 1 w c 101 s 1:2:10000\nwait b 1:1\ncommands 101 0\nend\n", []Kind{Leftover}},
		{"command buffer without commands freed in use", on("1", "", "", "1") + "destroy commands 101\n", []Kind{Leftover}},
		{"command buffer of barriers recorded again in use", on("1", "", everything, "1") + "commands 101 0\nend\n", []Kind{Leftover}},
		{"command buffer freed after a wait for stages that it does not have", "commands 1 0\n" + fill + "end\nsubmit 1 w c 1 s 1:1:800\nwait b 1:1\ndestroy commands 1\n", []Kind{Leftover}},
		{"command buffer reset in use", on("1", "", fill, "1") + "discard 101\n", []Kind{Leftover}},
		{"command buffer begun again in use, and recorded after a wait", on("1", "", "", "1") + "discard 101\ncount 1 1\ncommands 101 0\nend\n", []Kind{Leftover}},
		{"command buffer begun again after a wait", on("1", "", "", "1") + "count 1 1\ndiscard 101\ncommands 101 0\nend\nsubmit 1 w c 101 s\n", nil},
		{"command buffer submitted after its reset", "commands 1 0\nend\ndiscard 1\nsubmit 1 w c 1 s\n", []Kind{Unbound}},
		{"semaphore destroyed in use by a signal", on("1", "", "", "1") + "destroy semaphore 1\n", []Kind{Leftover}},
		{"semaphore destroyed in use by a wait", on("1", "", "", "1") + on("2", " 1:1:10000", "", "1") + "wait b 1:1\ndestroy semaphore 1\n", []Kind{Leftover}},
		{"semaphore destroyed after a wait for another", on("1", "", "", "1") + on("2", " 1:1:10000", "", "1") + "wait b 2:1\ndestroy semaphore 1\n", nil},
		{"semaphore destroyed after a later batch", on("1", "", "", "1") + "submit 1 w c s 4:1:10000\nwait b 4:1\ndestroy semaphore 1\n", nil},
		{"semaphore destroyed behind an idle queue", on("1", "", "", "1") + on("2", " 1:1:10000", "", "1") + "idle b 2\ndestroy semaphore 1\n", nil},
		{"semaphore destroyed behind another idle queue", on("1", "", "", "1") + on("2", " 1:1:10000", "", "1") + "idle b 1\ndestroy semaphore 1\n", []Kind{Leftover}},
		{"semaphore destroyed that only the host signalled", "signal 4 1\ndestroy semaphore 4\n", nil},
		{"binary semaphore destroyed in use", "submit 1 w c s 5:0:10000\n" + on("2", " 5:0:10000", "", "1") + "destroy semaphore 5\nwait b 2:1\n", []Kind{Leftover, Leftover}},
		{"fence destroyed in use", "submit 1 w c s f 1\ndestroy fence 1\n", []Kind{Leftover}},
		{"fence destroyed after a wait", "submit 1 w c s f 1\nfences b 1\ndestroy fence 1\n", nil},
		{"device destroyed in use by a batch without commands", other + "submit 9 w c s\ndestroy device 1\n", []Kind{Leftover}},
		{"device destroyed when it is idle", other + "submit 9 w c s\nidle b 9\ndestroy device 1\n", nil},
		{"buffer of another device", other + "commands 9 1\nf 1 0 16\nend\nsubmit 9 w c 9 s\n", []Kind{Unbound}},
		{"pipeline of another device", other + "commands 9 1\np 1\nr 0 0:0:0:0 1:0:0:0\nd 0 0 0 1 1 1\nend\nsubmit 9 w c 9 s\n", []Kind{Unbound}},
		{"command buffer of another device", other + "commands 9 1\nend\nsubmit 1 w c 9 s\n", []Kind{Unbound}},
		{"signal of another device's semaphore", other + "submit 9 w c s 1:1:10000\n", []Kind{Unbound}},
		{"wait for another device's semaphore", on("1", "", "", "1") + other + "submit 9 w 1:1:10000 c s\n", []Kind{Unbound}},
		{"fence of another device", other + "submit 9 w c s f 1\n", []Kind{Unbound}},
		{"imported memory of two devices", "memory 3 0 4096 7 7000\nbuffer 3 0 4096 exclusive\nbind 3 3 0\n" + on("1", "", "f 3 0 64\n", "1") +
			"device 1 other\nqueue 9 1 0 0 7\nmemory 4 1 4096 7 7020\nbuffer 4 1 4096 exclusive\nbind 4 4 0\nsemaphore 9 1 timeline 0\n" +
			"commands 9 1\nf 4 0 16\nend\nsubmit 9 w c 9 s 9:1:10000\n", []Kind{Unordered}},
		{"imported memory of two devices, apart", "memory 3 0 4096 7 7000\nbuffer 3 0 4096 exclusive\nbind 3 3 0\n" + on("1", "", "f 3 0 32\n", "1") +
			"device 1 other\nqueue 9 1 0 0 7\nmemory 4 1 4096 7 7020\nbuffer 4 1 4096 exclusive\nbind 4 4 0\nsemaphore 9 1 timeline 0\n" +
			"commands 9 1\nf 4 0 16\nend\nsubmit 9 w c 9 s 9:1:10000\n", nil},
		{"imported memory that another device still has", "memory 3 0 4096 7 7000\ndevice 1 other\nqueue 9 1 0 0 7\nmemory 4 1 4096 7 7000\nbuffer 4 1 4096 exclusive\nbind 4 4 0\nsemaphore 9 1 timeline 0\n" +
			"commands 9 1\nf 4 0 16\nend\nsubmit 9 w c 9 s 9:1:10000\ndestroy memory 3\n" +
			"memory 5 0 4096 7 7000\nbuffer 5 0 4096 exclusive\nbind 5 5 0\n" + on("1", "", "f 5 0 16\n", "1"), []Kind{Unordered}},
		{"imported memory freed, its bytes in use through another import", twice + on("1", "", "f 3 0 16\n", "1") + "destroy memory 4\n", nil},
		{"imported memory freed in use, its bytes read later through another import", twice + on("1", "", "c 3 2 0:0:16\n", "1") +
			on("1", "", "b 1800:1800:1000:1000:0\nc 4 2 0:16:16\n", "2") + "destroy memory 3\n", []Kind{Leftover}},
		{"imported memory freed in use, its bytes written later through another import", twice + on("1", "", "c 3 2 0:0:16\n", "1") +
			on("1", "", "b 1800:1800:1000:1000:0\nf 4 0 16\n", "2") + "destroy memory 3\n", []Kind{Leftover}},
		{"imported memory freed after a wait, its bytes in use through another import", twice + on("1", "", "c 3 2 0:0:16\n", "1") + "wait b 1:1\n" +
			on("1", "", "b 1800:1800:1000:1000:0\nf 4 0 16\n", "2") + "destroy memory 3\n", nil},
		{"a kernel that skips the first elements", skipping(t) + on("1", "", skips+"R 0 0:2:0:4 1:1:0:16\nk 16 0,3\nd 0 0 0 1 1 1\nf 1 0 12\n", "1"), nil},
		{"a kernel that skips fewer", skipping(t) + on("1", "", skips+"R 0 0:2:0:4 1:1:0:16\nk 16 0,2\nd 0 0 0 1 1 1\nf 1 0 12\n", "1"), []Kind{Unordered}},
		{"a kernel that skips elements of another binding", skipping(t) + on("1", "", skips+"R 0 0:2:0:16 1:1:0:16\nk 16 3,0\nd 0 0 0 1 1 1\nf 1 0 12\n", "1"), []Kind{Unordered}},
		{"a kernel that skips elements of a whole buffer", skipping(t) + on("1", "", skips+"R 0 0:2:0:4 1:1:16:18446744073709551615\nk 16 0,8\nd 0 0 0 1 1 1\nf 1 16 32\nf 1 60 4\n", "1"), []Kind{Unordered}},
		{"past the end of a buffer", on("1", "", "f 1 60 8\n", "1"), []Kind{Unbound}},
		{"buffer bound past the end of its memory", "buffer 3 0 64 concurrent\nbind 3 1 32\n", []Kind{Unbound}},
		{"buffer whose memory is freed", "destroy memory 1\n" + on("1", "", fill, "1"), []Kind{Unbound}},
		{"recorded commands whose memory is freed", on("1", "", fill, "1") + "wait b 1:1\ndestroy memory 1\nsubmit 1 w c 101 s 1:2:10000\n", []Kind{Unbound}},
		{"barrier of a buffer that is destroyed", "commands 1 0\n" + "b 1800:1800:1040:1860:1:1:0:16\nend\ndestroy buffer 1\nsubmit 1 w c 1 s\n", []Kind{Unbound}},
		{"barrier of a buffer whose memory is freed", "destroy memory 1\n" + on("1", "", "b 1800:1800:1040:1860:1:1:0:16\n", "1"), []Kind{Unbound}},
		{"barrier past the end of a buffer", on("1", "", "b 1800:1800:1040:1860:1:1:60:16\n", "1"), []Kind{Unbound}},
		{"destroyed buffer", "commands 1 0\n" + fill + "end\ndestroy buffer 1\nsubmit 1 w c 1 s\n", []Kind{Unbound}},
		{"exclusive buffer on two families", "buffer 3 0 16 exclusive\nbind 3 1 0\n" + on("1", "", "f 3 0 16\n", "1") + on("2", " 1:1:10000", "f 3 0 16\n", "1"), []Kind{Ownership}},
		{"exclusive buffer on one family", "buffer 3 0 16 exclusive\nbind 3 1 0\n" + on("1", "", "f 3 0 16\n", "1") + on("3", " 1:1:10000", "f 3 0 16\n", "1"), nil},
		{"command that is not understood", on("1", "", "? vkCmdWaitEvents\n", "1"), []Kind{Unknown}},
		{"nothing bound", on("1", "", "p 1\nr 0 0:1:0:16\nd 0 0 0 1 1 1\n", "1"), []Kind{Unknown}},
		{"sets stay bound, pushed bindings are added", on("1", "", fill+everything+"p 1\nR 0 0:1:0:16\nR 0 1:2:0:16\nd 0 0 0 1 1 1\n", "1"), nil},
		{"device left with objects", "destroy device 0\n", []Kind{Leftover}},
	} {
		t.Run(c.name, func(t *testing.T) { judge(t, c.lines, Options{}, c.want) })
	}
}

// judge checks lines that follow the setting of three queues, and has the oracle judge them too.
func judge(t *testing.T, lines string, o Options, want []Kind) {
	t.Helper()
	r := check(t, lines, o)
	var got []Kind
	for _, v := range r.Violations {
		got = append(got, v.Kind)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v:\n%s", got, want, lines)
		for _, v := range r.Violations {
			t.Log(v)
		}
	}
	log := setting(t, 3).String() + lines
	tr, first := traceOf(t, log, o)
	if want := firstLoss(pointers(tr.events), hearsAll); first != want {
		t.Errorf("the checker finds event %d wrong, the oracle %d:\n%s%s", first, want, lines, describe(tr, first, want))
	}
}

// What foreign work does: a batch may be submitted before what it waits for.
func TestOrdersOfBatchesThatAreHeldBack(t *testing.T) {
	const signal = "signal 4 1\n"
	for _, c := range []struct {
		name, lines string
		want        []Kind
	}{
		{"signal by a later submission", on("2", " 1:1:10000", fill, "1") + on("1", "", fill, "1"), nil},
		{"signal by a later batch of the same call", "submit 1 w c s | w 2:1:10000 c s\n" + on("2", "", "", "1"), nil},
		{"signal by the host", on("1", " 4:1:10000", fill, "1") + signal + on("2", " 1:1:10000", fill, "1"), nil},
		{"signal of a larger value", on("2", " 1:1:10000", fill, "1") + on("1", "", fill, "2"), nil},
		{"signal of a smaller value", on("2", " 1:2:10000", "", "1") + on("1", "", "", "1"), []Kind{Hang}},
		{"no signal", on("2", " 1:1:10000", fill, "1"), []Kind{Hang}},
		{"no signal, and two batches behind", on("2", " 1:1:10000", fill, "1") + on("2", "", fill, "2") + on("3", " 2:2:10000", fill, "1"), []Kind{Hang, Hang}},
		{"no signal when the semaphore is destroyed", on("2", " 4:1:10000", "", "1") + "destroy semaphore 4\n", []Kind{Leftover, Hang}},
		{"no signal when the device is destroyed", other + "semaphore 9 1 timeline 0\nsubmit 9 w 9:1:10000 c s\ndestroy semaphore 9\ndestroy device 1\n", []Kind{Leftover, Leftover, Hang}},
		{"two batches that wait for each other", on("1", " 2:1:10000", "", "1") + on("2", " 1:1:10000", "", "1"), []Kind{Hang, Hang}},
		{"batches that follow each other", on("3", " 2:1:10000", fill, "1") + on("2", " 1:1:10000", fill, "1") + on("1", " 4:1:10000", fill, "1") + signal, nil},
		{"batches of a queue", on("1", " 4:1:10000", fill, "1") + on("1", "", fill, "2") + signal, []Kind{Unordered}},
		{"batches of a queue, with a barrier", on("1", " 4:1:10000", fill, "1") + on("1", "", everything+fill, "2") + signal, nil},
		{"wait of another stage", on("2", " 1:1:800", fill, "1") + on("1", "", fill, "1"), []Kind{Unordered}},
		{"no wait", on("2", " 4:1:10000", fill, "1") + on("1", "", fill, "1") + signal, []Kind{Unordered}},
		{"wait for a value that the host sees behind a batch that is held back",
			on("1", " 4:1:800", "", "1") + on("2", "", fill, "1") + on("1", " 2:1:10000", fill, "2") + "wait b 2:1\n" + signal, nil},
		{"the same without the wait", on("1", " 4:1:800", "", "1") + on("2", "", fill, "1") + on("1", "", fill, "2") + "wait b 2:1\n" + signal, []Kind{Unordered}},
		{"timelines whose larger value is submitted first", "submit 2 w 1:1:10000 c s 1:2:10000\nsubmit 1 w c s 1:1:10000\n", nil},
		{"timelines whose larger value is submitted first, and waits for nothing", "submit 2 w 4:1:10000 c s 1:1:10000\nsubmit 1 w c s 1:2:10000\n" + signal, []Kind{BadSignal}},
		{"binary semaphore", "submit 2 w 5:0:10000 c s\nsubmit 1 w c s 5:0:10000\n", []Kind{WaitBeforeSignal}},

		{"host write before the submission", flush + on("1", " 4:1:10000", kernel, "1") + signal, nil},
		{"host write after the submission", on("1", " 4:1:10000", kernel, "1") + flush + signal, []Kind{Unordered}},
		{"host write after the submission, barrier from HOST", on("1", " 4:1:10000", "b 4000:800:4000:20:0\n"+kernel, "1") + flush + signal, nil},
		{"host write after the submission of a batch behind", on("1", " 4:1:10000", "", "1") + on("1", "", kernel, "2") + flush + signal, []Kind{Unordered}},
		{"host write before the submission of a batch behind", on("1", " 4:1:10000", "", "1") + flush + on("1", "", kernel, "2") + signal, nil},
		{"host write before the submission that signals", on("1", " 2:1:10000", kernel, "1") + flush + on("2", "", "", "1"), nil},
		{"host write before the submission behind two", on("1", " 2:1:10000", kernel, "1") + on("2", " 4:1:10000", "", "1") + flush + signal, []Kind{Unordered}},
		{"host write after the signal", on("1", " 4:1:10000", kernel, "1") + signal + flush, []Kind{Unordered}},
		{"wait of the host after the submission", on("1", "", fill, "1") + on("2", " 4:1:800", fill, "1") + "wait b 1:1\n" + signal, []Kind{Unordered}},
		{"wait of the host before the submission", on("1", "", fill, "1") + "wait b 1:1\n" + on("2", " 4:1:800", fill, "1") + signal, nil},
		{"host read", on("1", " 4:1:10000", fill+toHost, "1") + signal + "wait b 1:1\n" + read, nil},
		{"host read behind a fence", "commands 1 0\n" + fill + toHost + "end\nsubmit 1 w 4:1:10000 c 1 s f 1\n" + signal + "fences b 1\n" + read, nil},
		{"host read behind a fence without a batch", on("1", " 4:1:10000", fill+toHost, "1") + "submit 1 f 1\n" + signal + "fences b 1\n" + read, nil},

		{"command buffer reset before the batch begins", on("1", " 4:1:10000", fill, "1") + "discard 101\n" + signal, []Kind{Leftover}},
		{"command buffer freed before the batch begins", on("1", " 4:1:10000", fill, "1") + "destroy commands 101\n" + signal, []Kind{Leftover}},
		{"command buffer recorded again before the batch begins", on("1", " 4:1:10000", fill, "1") + "commands 101 0\nf 2 0 16\nend\n" + signal + on("2", "", "f 2 0 16\n", "1"), []Kind{Leftover}},
		{"command buffer freed after an earlier batch", on("1", "", fill, "1") + on("1", " 4:1:10000", fillNext, "2") + "wait b 1:1\ndestroy commands 102\n" + signal, []Kind{Leftover}},
		{"semaphore destroyed before the batch signals it", on("1", " 4:1:10000", "", "1") + "destroy semaphore 1\n" + signal, []Kind{Leftover}},
		{"fence destroyed before the batch begins", "submit 1 w 4:1:10000 c s f 1\ndestroy fence 1\n" + signal, []Kind{Leftover}},
		{"buffer destroyed before the batch begins", on("1", " 4:1:10000", fill, "1") + "destroy buffer 1\n" + signal, []Kind{Unbound}},
		{"memory freed before the batch begins", on("1", " 4:1:10000", fill, "1") + "destroy memory 1\n" + signal, []Kind{Unbound}},
		{"pipeline destroyed before the batch begins", on("1", " 4:1:10000", kernel, "1") + "destroy pipeline 1\n" + signal, []Kind{Unbound}},
		{"all destroyed after a wait", on("1", " 4:1:10000", kernel, "1") + signal + "wait b 1:1\ndestroy commands 101\ndestroy semaphore 4\ndestroy semaphore 1\ndestroy buffer 1\ndestroy memory 1\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) { judge(t, c.lines, Options{Foreign: true}, c.want) })
	}
}

func TestViolationNamesBothCommands(t *testing.T) {
	r := check(t, on("1", "", "f 1 0 32\n", "1")+on("2", "", "p 1\nr 0 0:1:16:32 1:2:0:16\nk 0 3f800000,7\nd 0 0 0 1 1 1\n", "4"), Options{})
	if len(r.Violations) != 1 {
		t.Fatalf("%v", r.Violations)
	}
	const want = "line 31: unordered: memory 1 bytes [16, 32): " +
		"device 0 queue 1.0 submission 1 (signals semaphore 2 value 4) command 0 dispatch pipeline 1 main push [1065353216 7] " +
		"reads without a memory dependency what was written by " +
		"device 0 queue 0.0 submission 1 (signals semaphore 1 value 1) command 0 fill"
	if got := r.Violations[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReportCountsWaitsOfQueuesAndHost(t *testing.T) {
	r := check(t, on("1", "", fill+everything+kernel, "1")+on("2", " 1:1:10000", copyOut, "1")+on("1", " 1:1:10000", "", "2")+
		"wait b 1:1 2:1\nwait m 1:2\nthread 2\nwait t\ncount 3 0\nflush 1 32 16\ninvalidate 1 32 16\n", Options{})
	s := r.Sum()
	want := QueueTotals{Submissions: 3, Dispatches: 1, Launches: 1, Copies: 1, Fills: 1, Barriers: 1, Waits: 2, CrossWaits: 1, Signals: 3}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	hosts := map[int]HostTotals{}
	for _, h := range r.Hosts {
		hosts[h.Thread] = *h
	}
	if h := hosts[1]; h.Waits != 2 || h.Blocked != 1 {
		t.Errorf("thread 1: %+v", h)
	}
	if h := hosts[2]; h.Waits != 1 || h.Blocked != 1 || h.Observed != 1 {
		t.Errorf("thread 2: %+v", h)
	}
	if r.Flushes != 1 || r.Invalidates != 1 {
		t.Errorf("%d flushes, %d invalidations", r.Flushes, r.Invalidates)
	}
}

func TestLimitKeepsTheFirstViolations(t *testing.T) {
	r := check(t, on("1", "", strings.Repeat(fill, 10), "1"), Options{Limit: 3})
	if r.Total != 9 || len(r.Violations) != 3 || r.Kinds[Unordered] != 9 {
		t.Errorf("%d in all, %d kept, %v", r.Total, len(r.Violations), r.Kinds)
	}
}
