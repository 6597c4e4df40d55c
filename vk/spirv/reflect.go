package spirv

import (
	"cmp"
	"math"
	"slices"
)

// Execution modes that give the size of a workgroup.
const (
	modeLocalSize   = 17
	modeLocalSizeID = 38
)

// collectMode records an execution mode that gives the size of a workgroup.
func (p *parser) collectMode(in instruction) error {
	function, mode, sizes := in.operands[0], in.operands[1], in.operands[2:]
	if in.opcode == opExecutionMode && mode != modeLocalSize || in.opcode == opExecutionModeID && mode != modeLocalSizeID {
		return nil
	}
	if len(sizes) != 3 {
		return in.errorf("%d dimensions of a workgroup, not 3", len(sizes))
	}
	if first, ok := p.modes[function]; ok {
		return in.errorf("entry point %%%d has a local size already, at word %d", function, first)
	}
	p.modes[function] = in.word
	p.module.SizeByID = p.module.SizeByID || in.opcode == opExecutionModeID
	return nil
}

// reflectEntryPoints is the last pass.
func (p *parser) reflectEntryPoints() error {
	workgroupSize, err := p.findWorkgroupSize()
	if err != nil {
		return err
	}
	for _, v := range p.variables {
		d := p.decorations.of(idKey(v.id))
		if v.class.isDescriptor() && d.has(decorationDescriptorSet) && d.has(decorationBinding) {
			p.module.Descriptors = append(p.module.Descriptors, Descriptor{d.descriptorSet, d.binding})
		}
	}
	specConstants, err := p.collectSpecConstants()
	if err != nil {
		return err
	}
	type key struct {
		name  string
		model ExecutionModel
	}
	seen := make(map[key]bool)
	reflected := make(map[uint32]EntryPoint) // by function
	w := walker{parser: p, visited: make([]uint32, len(p.functions)), used: make([]variableUse, len(p.variables))}
	for _, word := range p.entryPoints {
		in := p.at(word)
		model, id := ExecutionModel(in.operands[0]), in.operands[1]
		name := literalString(in.operands[2:])
		if seen[key{name, model}] {
			return in.errorf("a second %v entry point named %.64q", model, name)
		}
		seen[key{name, model}] = true
		e, known := reflected[id]
		switch {
		case model != ModelGLCompute:
			e = EntryPoint{}
		case !known:
			if e, err = w.reflect(in, id); err != nil {
				return err
			}
			if err := p.setLocalSize(in, &e, id, workgroupSize); err != nil {
				return err
			}
			e.SpecConstants = specConstants
			reflected[id] = e
		}
		e.Name, e.Model = name, model
		p.module.EntryPoints = append(p.module.EntryPoints, e)
	}
	return nil
}

// findWorkgroupSize returns the components of the constant decorated BuiltIn
// WorkgroupSize, nil without one.
func (p *parser) findWorkgroupSize() (instruction, error) {
	var found instruction
	for _, word := range p.composites {
		in := p.at(word)
		if d := p.decorations.of(idKey(in.operands[1])); !d.has(decorationBuiltIn) || d.builtIn != builtInWorkgroupSize {
			continue
		}
		switch {
		case found.operands != nil:
			return found, in.errorf("a second WorkgroupSize, after the one at word %d", found.word)
		case len(in.operands) != 2+3:
			return found, in.errorf("WorkgroupSize has %d components, not 3", len(in.operands)-2)
		}
		found = in
	}
	return found, nil
}

// setLocalSize determines the workgroup size of an entry point. in is its OpEntryPoint,
// function the id of its function.
func (p *parser) setLocalSize(in instruction, e *EntryPoint, function uint32, workgroupSize instruction) error {
	source, ids := workgroupSize, []uint32(nil)
	if workgroupSize.operands != nil {
		ids = workgroupSize.operands[2:]
	} else {
		word, ok := p.modes[function]
		if !ok {
			name := literalString(in.operands[2:])
			return in.errorf("compute entry point %.64q has no local size", name)
		}
		source = p.at(word)
		ids = source.operands[2:]
	}
	for i, id := range ids {
		if source.opcode == opExecutionMode {
			e.LocalSize[i] = id // a literal
		} else {
			c, err := p.constantOf(source, id)
			if err != nil {
				return err
			}
			v, ok := c.value(nil)
			if !ok || v > math.MaxUint32 {
				return source.errorf("dimension %d is not a number of 32 bits", i)
			}
			e.LocalSize[i], e.size[i] = uint32(v), c
			if len(c.nodes) == 1 {
				e.LocalSizeSpec[i] = c.nodes[0].spec
			}
		}
		if e.LocalSize[i] == 0 && !e.size[i].specialized {
			return source.errorf("dimension %d of the local size is 0", i)
		}
	}
	return nil
}

// walker unites the summaries of the functions that are reachable from an entry point.
type walker struct {
	*parser
	round   uint32        // counts entry points
	visited []uint32      // by function: 2*round while it is open, 2*round+1 when it is done
	used    []variableUse // by variable
	order   []uint32      // variables used in this round
	stack   []frame
}

type variableUse struct {
	round  uint32
	access access
}

// frame is a function on the walker's stack, and the index of its next call.
type frame struct {
	function uint32
	next     int
}

// reflect sets the fields of an entry point that depend on its function.
func (w *walker) reflect(in instruction, id uint32) (e EntryPoint, err error) {
	root := w.functionIndex.get(id)
	if root == 0 {
		return e, in.errorf("%%%d is no function", id)
	}
	w.round++
	w.order = w.order[:0]
	w.stack = w.stack[:0]
	w.open(root-1, &e)
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		f := &w.functions[top.function]
		if top.next == len(f.calls) {
			w.visited[top.function] = 2*w.round + 1
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		call := f.calls[top.next]
		top.next++
		switch w.visited[call.function] {
		case 2 * w.round:
			return e, w.at(call.word).errorf("%%%d calls itself", w.functions[call.function].id)
		case 2*w.round + 1:
		default:
			w.open(call.function, &e)
		}
	}
	return e, w.describe(&e)
}

// open pushes a function on the stack and adds its own uses.
func (w *walker) open(function uint32, e *EntryPoint) {
	w.visited[function] = 2 * w.round
	w.stack = append(w.stack, frame{function: function})
	f := &w.functions[function]
	e.UsesAddresses = e.UsesAddresses || f.addresses
	e.Loops = e.Loops || f.loops
	for _, u := range f.uses {
		used := &w.used[u.variable]
		if used.round != w.round {
			*used = variableUse{round: w.round}
			w.order = append(w.order, u.variable)
		}
		used.access |= u.access
	}
}

// describe converts the variables that the walk has found to the entry point's interface.
func (w *walker) describe(e *EntryPoint) error {
	slices.Sort(w.order)
	var push *variable
	var views []view
	for _, i := range w.order {
		v := &w.variables[i]
		switch {
		case v.class == classInput:
			d := w.decorations.of(idKey(v.id))
			if d.has(decorationBuiltIn) && d.builtIn == builtInNumWorkgroups {
				e.UsesNumWorkgroups = true
			}
		case v.class == classWorkgroup:
			id, err := w.pointee(*v)
			if err != nil {
				return err
			}
			e.SharedBytes = saturatingAdd(e.SharedBytes, w.plainSizeOf(id))
		case v.class == classPushConstant:
			if push != nil {
				return w.at(v.word).errorf("a second PushConstant variable of one entry point, after %%%d", push.id)
			}
			push = v
			block, err := w.pushConstants(*v)
			if err != nil {
				return err
			}
			e.PushConstants = block
		case v.class.isDescriptor():
			b, err := w.binding(*v)
			if err != nil {
				return err
			}
			b.setAccess(w.used[i].access)
			views = append(views, view{Binding: b, word: v.word})
			if w.listed++; w.listed > maxListed {
				return w.at(v.word).errorf("the entry points list more than %d bindings", maxListed)
			}
		}
	}
	var err error
	e.Bindings, err = w.uniteViews(views)
	return err
}

// view is a variable described as a binding; several variables may share a binding.
type view struct {
	Binding
	word int // offset of its OpVariable
}

// setAccess sets how an entry point accesses a binding.
func (b *Binding) setAccess(a access) {
	b.Read = a&accessRead != 0
	b.Written = a&accessWrite != 0 && b.Kind.writable()
	b.ReadOnly = b.NonWritable || !b.Written
	b.WriteOnly = b.NonReadable || !b.Read
}

// uniteViews sorts bindings and unites those with the same set and binding number.
func (w *walker) uniteViews(views []view) ([]Binding, error) {
	slices.SortStableFunc(views, func(a, b view) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Binding.Binding, b.Binding.Binding))
	})
	var united []Binding
	for i, v := range views {
		if i == 0 || views[i-1].Set != v.Set || views[i-1].Binding.Binding != v.Binding.Binding {
			united = append(united, v.Binding)
			continue
		}
		last := &united[len(united)-1]
		kind, ok := unitedKind(last.Kind, v.Kind)
		if !ok {
			return nil, w.at(v.word).errorf("set %d binding %d is a %v, and a %v for another variable", v.Set, v.Binding.Binding, v.Kind, last.Kind)
		}
		last.Kind = kind
		last.unite(v.Binding)
	}
	return united, nil
}

// unite adds another variable of the same descriptor.
func (b *Binding) unite(view Binding) {
	if b.Name == "" {
		b.Name = view.Name
	}
	b.Read = b.Read || view.Read
	b.Written = b.Written || view.Written
	b.NonWritable = b.NonWritable && view.NonWritable
	b.NonReadable = b.NonReadable && view.NonReadable
	b.ReadOnly = b.ReadOnly && view.ReadOnly
	b.WriteOnly = b.WriteOnly && view.WriteOnly
	if b.Stride != view.Stride {
		b.Stride = 0
	}
	b.MinSize = max(b.MinSize, view.MinSize)
	if b.Count != 0 {
		b.Count = max(b.Count, view.Count)
	}
	if view.Count == 0 {
		b.Count = 0
	}
}

// unitedKind returns the kind of descriptor for variables of both kinds. An image and a
// sampler may share a combined one.
func unitedKind(a, b BindingKind) (BindingKind, bool) {
	if a == b {
		return a, true
	}
	combinable := func(k BindingKind) bool {
		return k == SampledImage || k == Sampler || k == CombinedImageSampler
	}
	return CombinedImageSampler, combinable(a) && combinable(b)
}
