package vkomp

import (
	"strconv"
	"strings"

	"github.com/vkomp/vkomp/sched"
)

// debug holds the settings of VKOMP_DEBUG, which choose among ways that are all right, so
// that tests can run each of them.
type debug struct {
	// noPushDescriptors binds buffers through descriptor pools even if the device has push
	// descriptors.
	noPushDescriptors bool
	// noSynchronizationChecks turns the synchronization checks of Options.Validation off.
	noSynchronizationChecks bool
	// placement chooses the queue of a command, seed is that of a random choice.
	placement sched.Placement
	seed      uint64
}

// debugSettings are the settings with the values that they take; a number has none.
var debugSettings = map[string][]string{
	"pushdescriptors": {"1", "0"},
	"syncchecks":      {"1", "0"},
	"placement":       {"finish", "random"},
	"seed":            nil,
}

// debug reads VKOMP_DEBUG, a list of settings such as "placement=random,seed=7"; a later
// one takes precedence.
func (e environment) debug() (d debug, err error) {
	const variable = "VKOMP_DEBUG"
	value, trimmed := e.get(variable)
	if trimmed == "" {
		return d, nil
	}
	for setting := range strings.SplitSeq(trimmed, ",") {
		name, to, _ := strings.Cut(strings.TrimSpace(setting), "=")
		values, known := debugSettings[name]
		if !known {
			return debug{}, malformed(variable, value, "settings of pushdescriptors, syncchecks, placement and seed")
		}
		if name == "seed" {
			if d.seed, err = strconv.ParseUint(to, 10, 64); err != nil {
				return debug{}, malformed(variable, value, "a non-negative integer for seed")
			}
			continue
		}
		second := to == values[1]
		if !second && to != values[0] {
			return debug{}, malformed(variable, value, values[0]+" or "+values[1]+" for "+name)
		}
		switch name {
		case "pushdescriptors":
			d.noPushDescriptors = second
		case "syncchecks":
			d.noSynchronizationChecks = second
		case "placement":
			d.placement = sched.PlaceByFinish
			if second {
				d.placement = sched.PlaceRandom
			}
		}
	}
	return d, nil
}
