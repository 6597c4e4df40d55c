package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// browser is a Chromium with one page, controlled by the DevTools protocol: JSON messages with a
// zero byte after each, over two pipes.
type browser struct {
	command *exec.Cmd
	profile string
	stderr  strings.Builder
	to      *os.File
	from    *bufio.Reader
	pipe    *os.File
	session string
	last    int
	// events are all events so far, in order.
	events []event
}

type event struct {
	Method string
	Params json.RawMessage
}

// patience limits the whole conversation.
const patience = 2 * time.Minute

func startBrowser(program string) (b *browser, err error) {
	b = &browser{}
	if b.profile, err = os.MkdirTemp("", "page"); err != nil {
		return nil, err
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, theirs2, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b.to, b.pipe, b.from = to, from, bufio.NewReader(from)
	// Without a sandbox it also runs as root in containers. It only opens our own file.
	b.command = exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+b.profile, "--remote-debugging-pipe", "about:blank")
	b.command.ExtraFiles = []*os.File{theirs, theirs2}
	b.command.Stderr = &b.stderr
	err = b.command.Start()
	err = errors.Join(err, theirs.Close(), theirs2.Close())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.profile))
	}
	limit := time.Now().Add(patience)
	if err := errors.Join(b.to.SetDeadline(limit), b.pipe.SetDeadline(limit)); err != nil {
		return nil, errors.Join(err, b.close())
	}
	var target struct{ TargetID string }
	err = b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	if err == nil {
		err = b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", program, err, b.stderr.String()), b.close())
	}
	b.session = session.SessionID
	return b, nil
}

// close closes the browser.
func (b *browser) close() error {
	b.session = ""
	ended := b.call("Browser.close", nil, nil)
	if ended != nil {
		ended = errors.Join(ended, b.command.Process.Kill())
	}
	err := b.command.Wait()
	if ended == nil {
		// How it exits after that does not matter.
		err = nil
	}
	return errors.Join(ended, err, b.to.Close(), b.pipe.Close(), os.RemoveAll(b.profile))
}

// call calls a method and waits for its result.
func (b *browser) call(method string, params, result any) error {
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for {
		answer, err := b.receive()
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case answer.ID != b.last:
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(answer.Result, result)
		}
	}
}

// await waits for an event, unless it has come already.
func (b *browser) await(method string) error {
	for seen := 0; ; {
		for ; seen < len(b.events); seen++ {
			if b.events[seen].Method == method {
				return nil
			}
		}
		if _, err := b.receive(); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
}

type answer struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
}

// receive receives one message and records it if it is an event.
func (b *browser) receive() (a answer, err error) {
	text, err := b.from.ReadBytes(0)
	if err != nil {
		return a, err
	}
	var message struct {
		answer
		event
	}
	if err := json.Unmarshal(text[:len(text)-1], &message); err != nil {
		return a, err
	}
	if message.Method != "" {
		b.events = append(b.events, message.event)
	}
	return message.answer, nil
}

// evaluate evaluates an expression in the page, and awaits a promise.
func (b *browser) evaluate(expression string, result any) error {
	var evaluated struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	err := b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &evaluated)
	if err != nil {
		return err
	}
	if evaluated.ExceptionDetails != nil {
		return fmt.Errorf("evaluating: %s", evaluated.ExceptionDetails)
	}
	return json.Unmarshal(evaluated.Result.Value, result)
}

// mouse moves the mouse or turns its wheel.
func (b *browser) mouse(kind string, x, y, wheel float64) error {
	return b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "deltaX": 0, "deltaY": wheel}, nil)
}
