package transfer

// Kind says what a transfer does.
type Kind uint8

const (
	// CopyToDevice copies Host to device memory at Dst.
	CopyToDevice Kind = iota
	// CopyToHost copies device memory at Src to Host.
	CopyToHost
	// CopyWithin copies device memory at Src to Dst, which must not overlap.
	CopyWithin
	// Fill sets device memory at Dst to Value.
	Fill
	// UpdateTo copies Host to its corresponding storage when the task runs (target update to). It
	// does nothing if Host is not present then.
	UpdateTo
	// UpdateFrom copies Host from its corresponding storage in the same way (target update from).
	UpdateFrom

	// CopyIn copies an item of a map to its corresponding storage when the task enters. Requests
	// do not have this kind and the following ones: the scheduler adds them.
	CopyIn
	// CopyOut copies an item of a map from its corresponding storage when the task ends.
	CopyOut
	// Attach writes a pointer into the image that a block has.
	Attach
)

// FromHost reports whether a transfer of the kind reads host storage.
func (k Kind) FromHost() bool {
	return k == CopyToDevice || k == UpdateTo || k == CopyIn || k == Attach
}

// ToHost reports whether a transfer of the kind writes host storage.
func (k Kind) ToHost() bool { return k == CopyToHost || k == UpdateFrom || k == CopyOut }

// within reports whether a transfer of the kind has device memory on both sides, or fills it.
func (k Kind) within() bool { return k == CopyWithin || k == Fill }

// Updates reports whether the transfer is an update, whose device memory is found in the presence
// table when the task enters.
func (k Kind) Updates() bool { return k == UpdateTo || k == UpdateFrom }

// phase returns when transfers of the kind are made.
func (k Kind) phase() Phase {
	switch {
	case k == CopyIn:
		return AtEntry
	case k == CopyOut:
		return AtExit
	case k.ToHost():
		return ToHost
	}
	return ToDevice
}

// Phase says when in the course of its task a transfer is made. The commands of one phase come
// after those of the phase before.
type Phase uint8

const (
	// AtEntry has the copies of maps at the beginning of the construct.
	AtEntry Phase = iota
	// ToDevice has requested transfers that change device memory, and attachments of pointers.
	// The kernel comes after them.
	ToDevice
	// ToHost has requested transfers to the host.
	ToHost
	// AtExit has the copies of maps at the end of the construct that were foreseen at its entry.
	AtExit
	// Late has the copies of maps at the end of the construct that were not foreseen.
	Late
)

// phases is a set of phases, as bits.
type phases uint8

func (s phases) has(p Phase) bool { return s&(1<<p) != 0 }
func (s *phases) add(p Phase)     { *s |= 1 << p }
