package vkomp_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// The task goes on until the wait for it has reported its progress.
func TestWaitsReportTheirProgress(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, rt *vkomp.Runtime, task func(ctx context.Context) error) error{
		"Taskwait": func(ctx context.Context, rt *vkomp.Runtime, task func(ctx context.Context) error) error {
			if err := task(ctx); err != nil {
				return err
			}
			return rt.Taskwait(ctx)
		},
		"Taskgroup": func(ctx context.Context, rt *vkomp.Runtime, task func(ctx context.Context) error) error {
			return rt.Taskgroup(ctx, task)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t)
			y := make([]float32, 1000)
			adder(t, rt, y)(false)
			done := rt.Stats().Tasks
			reported := make(chan vkomp.Progress)
			ended := false
			ctx := vkomp.WithProgress(t.Context(), time.Millisecond, func(p vkomp.Progress) {
				if ended {
					t.Error("a wait that is over reports")
				}
				select {
				case reported <- p:
				default:
				}
			})
			var got vkomp.Progress
			err := wait(ctx, rt, func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error {
					got = <-reported
					return nil
				}})
			})
			must(t, err)
			ended = true
			stats := rt.Stats()
			want := vkomp.Progress{Tasks: done + 1, Done: done, BytesToDevice: stats.BytesToDevice, BytesFromDevice: stats.BytesFromDevice}
			if got != want || got.BytesToDevice == 0 {
				t.Errorf("reported %+v, want %+v", got, want)
			}
			if same := vkomp.WithProgress(t.Context(), 0, nil); same != t.Context() {
				t.Error("a context without a report is another one")
			}
		})
	}
}

// The report function is code of the program and may fail: the wait returns the failure.
func TestReportsOfProgressThatFail(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("report") }, "runtime.Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t)
			for what, wait := range map[string]func(ctx context.Context, task func(ctx context.Context) error) error{
				"Taskwait": func(ctx context.Context, task func(ctx context.Context) error) error {
					must(t, task(ctx))
					return rt.Taskwait(ctx)
				},
				"Taskgroup": func(ctx context.Context, task func(ctx context.Context) error) error {
					return rt.Taskgroup(ctx, task)
				},
			} {
				reported := make(chan struct{})
				ctx := vkomp.WithProgress(t.Context(), time.Millisecond, func(vkomp.Progress) {
					close(reported)
					leave()
				})
				ran := false
				err := wait(ctx, func(ctx context.Context) error {
					return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error {
						<-reported
						ran = true
						return nil
					}})
				})
				if err == nil || !strings.Contains(err.Error(), name) || !ran {
					t.Errorf("%s: %v, and the task ran: %v", what, err, ran)
				}
			}
		})
	}
}

// A tool can end the goroutine that waits. vktest finds what goes on then.
func TestReportsOfProgressEndWithTheWaitsGoroutine(t *testing.T) {
	rt := vktest.Open(t)
	reported, over := make(chan struct{}, 1), make(chan struct{})
	ctx := vkomp.WithProgress(t.Context(), time.Millisecond, func(vkomp.Progress) {
		select {
		case reported <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(over)
		rt.ReportWhile(ctx, func() error {
			<-reported
			runtime.Goexit()
			return nil
		})
	}()
	<-over
}

func TestTaskwaitWithDependReportsProgress(t *testing.T) {
	rt := vktest.Open(t)
	var once sync.Once
	reported, x := make(chan struct{}), []int{0}
	ctx := vkomp.WithProgress(t.Context(), time.Millisecond, func(vkomp.Progress) { once.Do(func() { close(reported) }) })
	must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error {
		<-reported
		return nil
	}}))
	must(t, rt.Taskwait(ctx, vkomp.In(x)))
}
