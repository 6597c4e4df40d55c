package vkomp

import (
	"strconv"
	"strings"

	"github.com/vkomp/vkomp/sched"
)

// debug holds the settings of VKOMP_DEBUG, which are for tests: they choose among ways that
// are all right.
type debug struct {
	// placement chooses the queue of a command, seed is that of a random choice.
	placement sched.Placement
	seed      uint64
	// late is sched.Options.Late, and general sched.Options.General.
	late    uint64
	general bool
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
		name, to, _ := strings.Cut(strings.ToLower(setting), "=")
		name, to = strings.TrimSpace(name), strings.TrimSpace(to)
		switch {
		case name == "placement" && to == "finish":
			d.placement = sched.PlaceByFinish
		case name == "placement" && to == "random":
			d.placement = sched.PlaceRandom
		case name == "placement":
			return debug{}, malformed(variable, value, "finish or random for placement")
		case name == "seed":
			if d.seed, err = strconv.ParseUint(to, 10, 64); err != nil {
				return debug{}, malformed(variable, value, "a non-negative integer for seed")
			}
		case name == "late":
			if d.late, err = strconv.ParseUint(to, 10, 64); err != nil {
				return debug{}, malformed(variable, value, "a number of bytes for late")
			}
		case name == "path" && (to == "general" || to == "any"):
			d.general = to == "general"
		case name == "path":
			return debug{}, malformed(variable, value, "general or any for path")
		default:
			return debug{}, malformed(variable, value, "settings of placement, seed, late and path")
		}
	}
	return d, nil
}
