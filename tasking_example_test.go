package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func ExampleTask_detach() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	answer := []int{0}

	// The body starts something that ends elsewhere: the task is complete when the event is
	// fulfilled.
	var arrived vkomp.Event
	request := make(chan int)
	go func() {
		answer[0] = 2 * <-request
		if err := arrived.Fulfill(); err != nil {
			log.Print(err)
		}
	}()
	err = errors.Join(
		rt.Task(ctx, vkomp.Task{
			Detach: &arrived,
			Depend: []vkomp.Depend{vkomp.Out(answer)},
			Body:   func(context.Context) error { request <- 21; return nil },
		}),
		rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.In(answer)},
			Body:   func(context.Context) error { fmt.Println(answer[0]); return nil },
		}),
		rt.Taskwait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: 42
}

func ExampleRuntime_Taskgroup() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	var leaves atomic.Int32
	var split func(n int) func(ctx context.Context) error
	split = func(n int) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if n == 1 {
				leaves.Add(1)
				return nil
			}
			// No Taskwait: the group waits for descendants too.
			return errors.Join(
				rt.Task(ctx, vkomp.Task{Body: split(n / 2)}),
				rt.Task(ctx, vkomp.Task{Body: split(n - n/2)}),
			)
		}
	}
	err = rt.Taskgroup(context.Background(), split(10))
	fmt.Println(leaves.Load(), err)
	// Output: 10 <nil>
}

func ExampleRuntime_CancelTaskgroup() {
	environment := map[string]string{"OMP_CANCELLATION": "true"}
	rt, err := vkomp.Open(vkomp.Options{LookupEnv: func(name string) (string, bool) { value, ok := environment[name]; return value, ok }})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	cell := []int{0}
	search := func(ctx context.Context) error {
		cell[0]++
		if cell[0] == 3 {
			// Found: drop the tasks that have not started.
			return rt.CancelTaskgroup(ctx)
		}
		return nil
	}
	err = rt.Taskgroup(context.Background(), func(ctx context.Context) error {
		for range 10 {
			err := rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(cell)}, Body: search})
			if err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(cell[0], err)
	// Output: 3 <nil>
}

func ExampleRuntime_Taskwait_depend() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	x, y := []int{0}, []int{0}
	release := make(chan struct{})
	err = errors.Join(
		rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error { x[0] = 1; return nil }}),
		rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(y)}, Body: func(context.Context) error { <-release; y[0] = 2; return nil }}),
		// The second task does not matter to this wait.
		rt.Taskwait(ctx, vkomp.In(x)),
	)
	fmt.Println(x[0], err)
	close(release)
	err = rt.Taskwait(ctx)
	fmt.Println(y[0], err)
	// Output:
	// 1 <nil>
	// 2 <nil>
}

func ExampleRuntime_TaskwaitNoWait() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	parts, all := make([]int, 4), []bool{false}
	for i := range parts {
		err = errors.Join(err, rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.Out(parts[i : i+1])},
			Body:   func(context.Context) error { parts[i] = i * i; return nil },
		}))
	}
	// One join instead of an item for each part on all later tasks.
	err = errors.Join(err,
		rt.TaskwaitNoWait(ctx, vkomp.In(parts), vkomp.Out(all)),
		rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.In(all)},
			Body:   func(context.Context) error { fmt.Println(parts); return nil },
		}),
		rt.Taskwait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: [0 1 4 9]
}

func ExampleMutexInOutSet() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	sum := []int{0}
	for i := range 100 {
		// In any order, one at a time.
		err = errors.Join(err, rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.MutexInOutSet(sum)},
			Body:   func(context.Context) error { sum[0] += i; return nil },
		}))
	}
	err = errors.Join(err, rt.Taskwait(ctx))
	fmt.Println(sum[0], err)
	// Output: 4950 <nil>
}

func ExampleInOutSet() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	row := make([]int, 8)
	fill := func(from, to, v int) error {
		// The filling tasks run side by side, each in its own part of the row.
		return rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.InOutSet(row)},
			Body: func(context.Context) error {
				for i := from; i < to; i++ {
					row[i] = v
				}
				return nil
			},
		})
	}
	err = errors.Join(fill(0, 4, 1), fill(4, 8, 2),
		rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.In(row)},
			Body:   func(context.Context) error { fmt.Println(row); return nil },
		}),
		rt.Taskwait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1 1 1 1 2 2 2 2]
}

func ExampleInOutAllMemory() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	a, b := []int{0}, []int{0}
	err = errors.Join(
		rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(a)}, Body: func(context.Context) error { a[0] = 1; return nil }}),
		rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(b)}, Body: func(context.Context) error { b[0] = 2; return nil }}),
		rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOutAllMemory()}, Body: func(context.Context) error { fmt.Println(a, b); return nil }}),
		rt.Taskwait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: [1] [2]
}

func ExampleIterate() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	v := make([]int, 6)
	for i := range v {
		err = errors.Join(err, rt.Task(ctx, vkomp.Task{
			Depend: []vkomp.Depend{vkomp.Out(v[i : i+1])},
			Body:   func(context.Context) error { v[i] = 10 * i; return nil },
		}))
	}
	err = errors.Join(err,
		rt.Task(ctx, vkomp.Task{
			// Every other element.
			Depend: vkomp.Iterate(0, len(v), 2, func(i int) vkomp.Depend { return vkomp.In(v[i : i+1]) }),
			Body:   func(context.Context) error { fmt.Println(v[0], v[2], v[4]); return nil },
		}),
		rt.Taskwait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: 0 20 40
}

func ExampleDepobj() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	x := []int{0}
	var object vkomp.Depobj
	task := func(body func(context.Context) error) error {
		return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{object.Depend()}, Body: body})
	}
	err = errors.Join(
		object.Init(vkomp.Out(x)),
		task(func(context.Context) error { x[0] = 7; return nil }),
		object.Update(vkomp.DependIn),
		task(func(context.Context) error { fmt.Println(x[0]); return nil }),
		rt.Taskwait(ctx),
		object.Destroy(),
	)
	if err != nil {
		log.Fatal(err)
	}
	// Output: 7
}

func ExampleIf() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range [][]float32{make([]float32, 10), make([]float32, 10000)} {
		target, err := shaders.SaxpyTarget(saxpy, 2, x, make([]float32, len(x)))
		if err != nil {
			log.Fatal(err)
		}
		// Small amounts of work stay on the host.
		target.If = vkomp.If(len(x) > 1000)
		if err := rt.Target(context.Background(), target); err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(x), rt.Stats().HostRegions, rt.Stats().Dispatches)
	}
	// Output:
	// 10 1 0
	// 10000 1 1
}

func ExampleTarget_dependArgs() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	x, y, z := []float32{1, 2}, []float32{0, 0}, []float32{0, 0}

	// y += 3x and z += 2y: the second reads what the first writes, as their arguments already
	// say.
	first, err := shaders.SaxpyTarget(saxpy, 3, x, y)
	if err != nil {
		log.Fatal(err)
	}
	second, err := shaders.SaxpyTarget(saxpy, 2, y, z)
	if err != nil {
		log.Fatal(err)
	}
	for _, target := range []vkomp.Target{first, second} {
		target.NoWait, target.DependArgs = true, true
		if err := rt.Target(ctx, target); err != nil {
			log.Fatal(err)
		}
	}
	err = rt.Taskwait(ctx)
	fmt.Println(z, err)
	// Output: [6 12] <nil>
}

func ExampleRuntime_SetDefaultDevice() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	err = rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
		// For this task and those that it generates from here on.
		if err := rt.SetDefaultDevice(ctx, rt.InitialDevice()); err != nil {
			return err
		}
		fmt.Println("in the task:", rt.DefaultDevice(ctx).IsInitial())
		return nil
	}})
	err = errors.Join(err, rt.Taskwait(ctx))
	fmt.Println("outside:", rt.DefaultDevice(ctx).IsInitial(), err)
	// Output:
	// in the task: true
	// outside: false <nil>
}

func ExampleRuntime_CloseContext() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var answer vkomp.Event
	if err := rt.Task(ctx, vkomp.Task{Label: "ask", Detach: &answer, Body: func(context.Context) error { return nil }}); err != nil {
		log.Fatal(err)
	}

	// The task cannot complete before its event is fulfilled.
	patience, end := context.WithTimeout(ctx, time.Millisecond)
	defer end()
	err = rt.CloseContext(patience) // names the task "ask"
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	err = answer.Fulfill()
	fmt.Println(err, rt.Close())
	// Output:
	// true
	// <nil> <nil>
}

// A server runs each request in an undeferred task: requests that use the same storage do not wait
// for each other, and each has its own failures.
func ExampleTask_request() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	scratch := []int{0}
	serve := func(ctx context.Context, name string, fail error) error {
		return rt.Task(ctx, vkomp.Task{Label: name, If: vkomp.If(false), Body: func(ctx context.Context) error {
			step := func(err error) vkomp.Task {
				return vkomp.Task{Label: "step", Depend: []vkomp.Depend{vkomp.InOut(scratch)}, Body: func(context.Context) error { return err }}
			}
			if err := errors.Join(rt.Task(ctx, step(fail)), rt.Task(ctx, step(nil))); err != nil {
				return err
			}
			return rt.Taskwait(ctx)
		}})
	}
	fmt.Println(serve(context.Background(), "a", errors.New("no such item")))
	fmt.Println(serve(context.Background(), "b", nil))
	// Output:
	// vkomp: task "a": vkomp: task "step": no such item (1 dependent tasks not run)
	// <nil>
}
