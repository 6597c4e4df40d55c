package ompt

import (
	"math/bits"
	"strconv"
	"strings"
)

// TaskFlag is ompt_task_flag_t, a set of flags: the kind of a task.
type TaskFlag uint32

const (
	TaskInitial    TaskFlag = 0x1         // ompt_task_initial
	TaskImplicit   TaskFlag = 0x2         // ompt_task_implicit
	TaskExplicit   TaskFlag = 0x4         // ompt_task_explicit
	TaskTarget     TaskFlag = 0x8         // ompt_task_target
	TaskTaskwait   TaskFlag = 0x10        // ompt_task_taskwait, OpenMP 5.1
	TaskImporting  TaskFlag = 0x0200_0000 // ompt_task_importing, OpenMP 6.0
	TaskExporting  TaskFlag = 0x0400_0000 // ompt_task_exporting, OpenMP 6.0
	TaskUndeferred TaskFlag = 0x0800_0000 // ompt_task_undeferred
	TaskUntied     TaskFlag = 0x1000_0000 // ompt_task_untied
	TaskFinal      TaskFlag = 0x2000_0000 // ompt_task_final
	TaskMergeable  TaskFlag = 0x4000_0000 // ompt_task_mergeable
	TaskMerged     TaskFlag = 0x8000_0000 // ompt_task_merged
)

// String returns the names of the flags in the specification, joined by "|".
func (f TaskFlag) String() string { return spellSet(taskFlagNames, f, "ompt_task_") }

var taskFlagNames = map[TaskFlag]string{
	TaskInitial: "initial", TaskImplicit: "implicit", TaskExplicit: "explicit", TaskTarget: "target",
	TaskTaskwait: "taskwait", TaskImporting: "importing", TaskExporting: "exporting",
	TaskUndeferred: "undeferred", TaskUntied: "untied", TaskFinal: "final",
	TaskMergeable: "mergeable", TaskMerged: "merged",
}

// MapFlag is ompt_target_map_flag_t, a set of flags: how an item is mapped.
type MapFlag uint32

const (
	MapFlagTo       MapFlag = 0x1  // ompt_target_map_flag_to
	MapFlagFrom     MapFlag = 0x2  // ompt_target_map_flag_from
	MapFlagAlloc    MapFlag = 0x4  // ompt_target_map_flag_alloc
	MapFlagRelease  MapFlag = 0x8  // ompt_target_map_flag_release
	MapFlagDelete   MapFlag = 0x10 // ompt_target_map_flag_delete
	MapFlagImplicit MapFlag = 0x20 // ompt_target_map_flag_implicit
	// OpenMP 5.2.
	MapFlagAlways  MapFlag = 0x40  // ompt_target_map_flag_always
	MapFlagPresent MapFlag = 0x80  // ompt_target_map_flag_present
	MapFlagClose   MapFlag = 0x100 // ompt_target_map_flag_close
	MapFlagShared  MapFlag = 0x200 // ompt_target_map_flag_shared
)

// String returns the names of the flags in the specification, joined by "|".
func (f MapFlag) String() string { return spellSet(mapFlagNames, f, "ompt_target_map_flag_") }

var mapFlagNames = map[MapFlag]string{
	MapFlagTo: "to", MapFlagFrom: "from", MapFlagAlloc: "alloc", MapFlagRelease: "release",
	MapFlagDelete: "delete", MapFlagImplicit: "implicit", MapFlagAlways: "always",
	MapFlagPresent: "present", MapFlagClose: "close", MapFlagShared: "shared",
}

// spellSet returns the names of the flags in a set, lowest first. Flags without a name are
// numbers, and the empty set is "0".
func spellSet[T ~uint32](names map[T]string, set T, prefix string) string {
	if set == 0 {
		return "0"
	}
	var members []string
	for rest := uint32(set); rest != 0; rest &= rest - 1 {
		member := uint32(1) << bits.TrailingZeros32(rest)
		if name, ok := names[T(member)]; ok {
			members = append(members, prefix+name)
		} else {
			members = append(members, "0x"+strconv.FormatUint(uint64(member), 16))
		}
	}
	return strings.Join(members, "|")
}
