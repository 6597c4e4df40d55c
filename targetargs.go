package vkomp

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk/spirv"
)

func checkArgs(args []Arg, labels *itemLabels) error {
	for k := range args {
		if err := args[k].check(labels.of(k)); err != nil {
			return err
		}
	}
	return nil
}

// checkValue returns an error if a value argument, of which there are i before it, is of another size than the member of the
// push constants that it fills, or has integers where that has floating-point numbers, or the other way round. How many values
// there are is checked with the launch.
func (k *sharedKernel) checkValue(i int, a *Arg) error {
	t := a.at.elem
	if a.kind != argValue || t == nil || i >= len(k.accepted) { // the type of a saved value is not known
		return nil
	}
	if first := k.accepted[i].Load(); first != nil && *first == t {
		return nil
	}
	if m := &k.shader.Values()[i]; !m.Holds(int(t.Size())) || !fills(t, m) {
		return fmt.Errorf("%w: value %d is of type %s, %d bytes, push-constant member %q of kernel %q is of kind %s", ErrInvalidLaunch, i, t, t.Size(), m.Name, k.name, m.Type())
	}
	first := t // allocated only here
	k.accepted[i].CompareAndSwap(nil, &first)
	return nil
}

// fills reports whether values of a type can be meant for a push-constant member, by the kind of their scalars where these are
// of the same size. Go has no floating-point numbers of less than 4 bytes: a program passes their bits as integers.
func fills(t reflect.Type, m *spirv.Member) bool {
	for t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if t.Size() != uintptr(m.Width) || m.Width < 4 {
		return true
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return m.Kind == spirv.ScalarFloat
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return m.Kind != spirv.ScalarFloat
	}
	return true
}

// arguments evaluates the arguments of a target region that runs k on d, which is not the initial device.
func (c *clauses) arguments(k *sharedKernel, args []Arg, d *device) error {
	total, bound := 0, false
	for i := range args {
		switch a := &args[i]; {
		case a.isValue():
			total += len(a.bytes())
			bound = bound || a.kind == argAddress
		default:
			bound = bound || a.kind != argMap || a.image() != nil
		}
	}
	if bound {
		c.Buffers = c.buffers[:0]
	}
	c.bytes = slices.Grow(c.bytes, total)
	for i := range args {
		a, label := &args[i], argumentLabels.of(i)
		item := -1
		switch a.kind {
		case argMap, argImplicit, argAddress:
			item = len(c.Enter)
			c.Enter = append(c.Enter, memory.Map{})
			if err := a.setMapped(&c.Enter[item], label); err != nil {
				return err
			}
			if image := a.image(); image != nil {
				var err error
				if c.Images, err = image.addTo(c.Images, &c.Enter, a, label, c.member); err != nil {
					return err
				}
			}
		case argPointer, argDevicePtr, argDeviceAddr:
			if err := a.reaches(d, label); err != nil {
				return err
			}
			if a.kind == argPointer && a.at.onVulkan() {
				c.Pointers = append(c.Pointers, a.at.p)
			}
		}
		if a.kind == argAddress {
			c.Addresses = append(c.Addresses, sched.Address{Value: len(c.Values), Map: item})
		}
		if a.isValue() {
			if err := k.checkValue(len(c.Values), a); err != nil {
				return err
			}
			from := len(c.bytes)
			c.bytes = append(c.bytes, a.bytes()...)
			c.Values = append(c.Values, c.bytes[from:len(c.bytes):len(c.bytes)])
			continue
		}
		if !bound {
			continue
		}
		b := sched.Buffer{Map: item, ToEnd: a.kind == argImplicit || a.kind == argDevicePtr}
		if a.kind == argDevicePtr || a.kind == argDeviceAddr {
			b.Pointer = a.at.p
		}
		if a.kind == argDeviceAddr {
			b.Size = uint64(a.size)
		}
		c.Buffers = append(c.Buffers, b)
	}
	return nil
}

// member adds the item for a member of a mapped value, which has no binding.
func (c *clauses) member(a *Arg, label string) error {
	m, err := a.entering(label)
	c.Enter = append(c.Enter, m)
	return err
}

// setMapped sets m, which is zero, to the item that a target region maps for the argument.
func (a *Arg) setMapped(m *memory.Map, label string) error {
	if a.kind == argMap {
		if err := a.enters(label); err != nil {
			return err
		}
		return a.setItem(m, label)
	}
	err := a.setItem(m, label)
	m.Size = 0
	return err
}

// reaches returns an error for a pointer that is not valid on d.
func (a *Arg) reaches(d *device, label string) error {
	p := &a.at
	switch a.kind {
	case argDevicePtr, argDeviceAddr:
	case argPointer:
		if p.d == nil {
			return d.rt.owns(p)
		}
	default:
		return nil
	}
	if a.kind == argDeviceAddr && a.size < 0 {
		return fmt.Errorf("%w: %s: no such number of elements", ErrInvalidArgument, label)
	}
	if err := d.rt.owns(p); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	switch {
	case p.IsNil() && a.kind == argDeviceAddr && a.size == 0:
	case p.IsNil():
		return fmt.Errorf("%w: %s is nil", ErrInvalidPointer, label)
	case p.elsewhere(d):
		return fmt.Errorf("%w: %s: %v is no memory of device %d", ErrInvalidDevice, label, *p, d.number)
	}
	return nil
}

// hostArg is an argument of a Host variant.
type hostArg struct {
	Arg
	// storage is the host storage of a slice or of a pointer's target.
	storage memory.Section
}

// hostArg returns the argument in the form that a Host variant gets.
func (a *Arg) hostArg(rt *Runtime, label string) (hostArg, error) {
	if err := a.reaches(rt.InitialDevice().d, label); err != nil {
		return hostArg{}, err
	}
	h := hostArg{Arg: *a}
	switch a.kind {
	case argMap:
		m, err := a.entering(label)
		if err != nil {
			return hostArg{}, err
		}
		h.storage = m.Section
	case argImplicit, argAddress:
		h.storage = memory.Section{Ptr: a.at.host.Ptr, Size: uint64(a.size)}
	case argValue:
	default:
		size := uint64(0)
		if a.kind == argDeviceAddr {
			size = uint64(a.size)
		}
		if a.at.IsNil() {
			break
		}
		at, err := rt.endpoint(&a.at, 0, size)
		if err != nil {
			return hostArg{}, fmt.Errorf("%s: %w", label, err)
		}
		h.storage = at.host
		if a.kind == argDeviceAddr {
			h.storage.Size = size
		}
	}
	return h, nil
}

// dependOnArgs adds a depend item for each slice argument.
func (c *clauses) dependOnArgs(k *sharedKernel, args []Arg) {
	binding := -1
	for i := range args {
		a := &args[i]
		if !a.isValue() {
			binding++
		}
		if a.kind != argMap && a.kind != argImplicit && a.kind != argAddress {
			continue
		}
		kind := tasks.DependInOut
		if a.kind == argMap && a.mapType == memory.MapTo || a.kind != argAddress && k.shader != nil && k.shader.ReadOnly(binding) {
			kind = tasks.DependIn
		}
		section := a.at.host
		if a.part() != nil {
			section, _ = a.contiguous() // otherwise the argument is refused elsewhere
		}
		c.Depend = append(c.Depend, tasks.Depend{Kind: kind, Ptr: section.Ptr, Size: section.Size})
		for k := range a.members() {
			m := a.member(k)
			kind := tasks.DependInOut
			if m.mapType == memory.MapTo {
				kind = tasks.DependIn
			}
			c.Depend = append(c.Depend, tasks.Depend{Kind: kind, Ptr: m.at.host.Ptr, Size: m.at.host.Size})
		}
	}
}
