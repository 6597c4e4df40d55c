package vk

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The ABI check runs only if Vulkan's headers are installed. This test checks that it
// covers everything.
func TestABICheckLeavesNothingOut(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	header := read("vkabi.h")
	checked := map[string]bool{}
	for _, line := range strings.Split(read("abicheck/abi_check.c"), "\n") {
		checked[line] = true
	}
	want := func(line string) {
		t.Helper()
		if !checked[line] {
			t.Errorf("abicheck/abi_check.c lacks %s", line)
		}
		delete(checked, line)
	}
	values := regexp.MustCompile(`(?m)^\tVKO_(\w+) = `).FindAllStringSubmatch(header, -1)
	for _, v := range values {
		want("VALUE(" + v[1] + ");")
	}
	structs := regexp.MustCompile(`(?s)typedef struct vko(\w+) \{\n(.*?)\n\} vko(\w+);`).FindAllStringSubmatch(header, -1)
	member := regexp.MustCompile(`(\w+)(?:\[\d+\])?;`)
	members := 0
	for _, s := range structs {
		if s[1] != s[3] {
			t.Errorf("structure %s is called %s", s[1], s[3])
		}
		want("STRUCT(" + s[1] + ");")
		for _, line := range strings.Split(s[2], "\n") {
			name := member.FindStringSubmatch(line)[1]
			if !strings.HasPrefix(name, "reserved") {
				want("MEMBER(" + s[1] + ", " + name + ");")
				members++
			}
		}
	}
	if n := strings.Count(header, "typedef struct"); len(structs) != n || members < n {
		t.Errorf("read %d of %d structures, %d members", len(structs), n, members)
	}
	if n := strings.Count(header, "\tVKO_"); len(values) != n {
		t.Errorf("read %d of %d values", len(values), n)
	}
	for line := range checked {
		for _, macro := range []string{"VALUE(", "STRUCT(", "MEMBER("} {
			if strings.HasPrefix(line, macro) {
				t.Errorf("abicheck/abi_check.c checks what vkabi.h lacks: %s", line)
			}
		}
	}
}

// C and Go read the same words, so the constants must agree.
func TestEncoderHasTheStreamsConstants(t *testing.T) {
	encoder, err := os.ReadFile("encode.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int{
		"OP_BARRIER": int(OpBarrier), "OP_DISPATCH": int(OpDispatch), "OP_COPY": int(OpCopy), "OP_FILL": int(OpFill),
		"OP_TIMESTAMP": int(OpTimestamp), "STAMP_WORDS": stampWords,
		"BARRIER_WORDS": barrierWords, "DISPATCH_WORDS": dispatchWords, "COPY_WORDS": copyWords,
		"FILL_WORDS": fillWords, "RANGE_WORDS": rangeWords, "REGION_WORDS": regionWords,
		"MAX_UNORDERED_REGIONS": maxUnorderedRegions,
	} {
		found := regexp.MustCompile(`\t` + name + ` = (\d+),`).FindSubmatch(encoder)
		if found == nil || string(found[1]) != strconv.Itoa(value) {
			t.Errorf("%s: encode.c has %q, stream.go %d", name, found, value)
		}
	}
}
