package trace

// A timestamp costs about as much as a short launch. So launches share timestamps that follow each other
// level by level, each alone on its level, of the same kernel and with as many workgroups, once it is
// known that they are short: there is one timestamp before the first of them and one behind the last,
// and each has an equal part of the time between.

const (
	// mostShared is the largest number of launches between two timestamps.
	mostShared = 32
	// shortLaunch is how many nanoseconds a launch that shares timestamps has taken at most.
	shortLaunch = 5_000
	// mostKinds bounds the number of kinds of launches of which the time is known.
	mostKinds = 4096
)

// launch is a kind of launches: those of a kernel with so many workgroups.
type launch struct {
	kernel string
	teams  uint64
}

// kind returns the kind of a launch.
func (st *stamp) kind() launch { return launch{st.label, st.amount} }

// shares reports whether a launch can have a part of the time of those in s.run, of the levels just
// before.
func (s *Stamps) shares(st *stamp) bool {
	first := s.run[0]
	if !st.launch || !first.launch || len(s.run) == mostShared || first.kind() != st.kind() {
		return false
	}
	if len(s.run) == 1 {
		took, known := s.took[st.kind()]
		s.sharing = known && took <= s.short
	}
	return s.sharing
}

// measured notes how many ticks a launch of a kind has taken.
func (s *Stamps) measured(of launch, ticks uint64) {
	if len(s.took) >= mostKinds {
		clear(s.took)
	}
	s.took[of] = ticks
}
